//! The rows of one open window: (labels, stack, kind) -> how often and how much, bounded.
//!
//! Over the limit detail folds in a stated order and no sample is lost: first the stack becomes the
//! overflow stack (the labels stay), then, when a further eighth of the limit is taken by such rows,
//! the labels become the overflow labels. So a table holds at most 9/8 of the limit, plus one row for
//! each kind of sample.

use crate::model::{FastMap, LabelSet, SampleKind};
use std::hash::Hash;
use std::sync::Arc;

/// What was counted under one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) weight: u64,
}

/// Labels, stack, kind.
pub(super) type RowKey<S> = (Arc<LabelSet>, S, SampleKind);

/// What became of a sample's detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All of it.
    Whole,
    /// The labels; the stack is the overflow stack.
    Labels,
    /// Neither.
    Nothing,
}

/// Where detail folds to.
#[derive(Clone, Debug)]
pub(super) struct Overflow<S> {
    pub(super) max_rows: usize,
    pub(super) stack: S,
    pub(super) labels: Arc<LabelSet>,
}

/// The rows.
#[derive(Debug)]
pub(super) struct Rows<S>(FastMap<RowKey<S>, Sum>);

impl<S: Clone + Eq + Hash> Rows<S> {
    pub(super) fn new() -> Self {
        Self(FastMap::default())
    }

    pub(super) fn add(&mut self, key: RowKey<S>, weight: u64, overflow: &Overflow<S>) -> Kept {
        let key = match self.add_within(key, weight, overflow.max_rows) {
            None => return Kept::Whole,
            Some(key) => key,
        };
        let spare = overflow.max_rows.saturating_add(overflow.max_rows / 8);
        let key = (key.0, overflow.stack.clone(), key.2);
        let key = match self.add_within(key, weight, spare) {
            None => return Kept::Labels,
            Some(key) => key,
        };
        let key = (overflow.labels.clone(), overflow.stack.clone(), key.2);
        self.add_within(key, weight, usize::MAX);
        Kept::Nothing
    }

    /// Adds to the row, or makes it while there are fewer than `limit`; else gives the key back.
    fn add_within(&mut self, key: RowKey<S>, weight: u64, limit: usize) -> Option<RowKey<S>> {
        if self.0.len() >= limit && !self.0.contains_key(&key) {
            return Some(key);
        }
        let sum = self.0.entry(key).or_default();
        sum.count += 1;
        sum.weight = sum.weight.saturating_add(weight);
        None
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (RowKey<S>, Sum)> {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LabelKey, LabelSetBuilder};

    fn labels(pid: u32) -> Arc<LabelSet> {
        Arc::new(LabelSetBuilder::new().set(LabelKey::Pid, pid.to_string()).build())
    }

    #[test]
    fn detail_folds_and_no_sample_is_lost() {
        let overflow = Overflow { max_rows: 16, stack: u64::MAX, labels: labels(0) };
        let mut rows = Rows::new();
        let mut kept = [0u64; 3];
        for i in 0..10_000u64 {
            let key = (labels(1 + (i % 50) as u32), i % 400, SampleKind::Cpu);
            kept[rows.add(key, 10, &overflow) as usize] += 1;
        }
        let rows: Vec<_> = rows.into_iter().collect();
        assert!(rows.len() <= 16 + 2 + 1, "{}", rows.len());
        assert_eq!(rows.iter().map(|r| r.1.count).sum::<u64>(), 10_000);
        assert_eq!(rows.iter().map(|r| r.1.weight).sum::<u64>(), 100_000);
        assert!(kept.iter().all(|&n| n > 0) && kept.iter().sum::<u64>() == 10_000, "{kept:?}");
        let folded: u64 = rows.iter().filter(|r| r.0.1 == u64::MAX).map(|r| r.1.count).sum();
        assert_eq!(folded, kept[Kept::Labels as usize] + kept[Kept::Nothing as usize]);
    }
}
