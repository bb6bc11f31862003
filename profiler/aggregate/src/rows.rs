//! The rows of one open window: (labels, stack, kind) -> how often and how much, bounded.
//!
//! Over the limit detail folds and no sample is lost. Whose detail: of the tenants that hold more than their share
//! ([`Excess`]), their new rows and, where another needs room, the rows that were sampled least; a tenant that holds no
//! more than his share keeps all. How, in this order: first the stack becomes the overflow stack (the labels stay);
//! then, when a sixteenth of the limit is taken by such rows, only the labels that say whose it is stay; then, after a
//! further sixteenth, the labels become the overflow labels. So a table holds at most 9/8 of the limit, plus one row
//! for each kind of sample.

use emberscope_model::{Excess, FastMap, FastSet, LabelKey, LabelSet, LabelSetBuilder, SampleKind, Tenant};
use std::hash::Hash;
use std::sync::Arc;

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The kind.
    pub kind: SampleKind,
    /// How many samples it is: 1, or 0 of what weighs at another one's stack. A sum rests on as many stacks.
    pub samples: u64,
    /// How much, in the unit of the kind.
    pub weight: u64,
    /// How much of the kind that is made of samples of this one ([`SampleKind::derived`]); 0 where there is none.
    pub derived: u64,
}

/// What was counted under one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) weight: u64,
    pub(super) derived: u64,
}

impl Sum {
    /// Of one sample.
    pub(super) fn of(counts: Counts) -> Self {
        Self { count: counts.samples, weight: counts.weight, derived: counts.derived }
    }

    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.weight = self.weight.saturating_add(more.weight);
        self.derived = self.derived.saturating_add(more.derived);
    }
}

/// Labels, stack, kind.
pub(super) type RowKey<S> = (Arc<LabelSet>, S, SampleKind);

/// What is left of a sample's detail when its row is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The labels; the stack is the overflow stack.
    Labels,
    /// At most the labels that say whose the sample is.
    Nothing,
}

/// Where detail folds to.
#[derive(Clone, Debug)]
pub(super) struct Overflow<S> {
    pub(super) max_rows: usize,
    pub(super) stack: S,
    pub(super) labels: Arc<LabelSet>,
    pub(super) tenant: fn(&S) -> Tenant,
    /// For how many rows of `max_rows` one with this stack counts.
    pub(super) cost: fn(&S) -> usize,
}

/// The rows of a window.
#[derive(Debug)]
pub(super) struct Rows<S> {
    rows: FastMap<RowKey<S>, Sum>,
    /// For how many of the limit the rows count that have all their detail.
    whole: usize,
    /// How many rows are folded.
    folded: usize,
    /// Who was found to hold more than his share: new rows of his fold while the table is full.
    crowding: FastSet<Tenant>,
}

impl<S: Clone + Eq + Hash> Rows<S> {
    pub(super) fn new() -> Self {
        Self { rows: FastMap::default(), whole: 0, folded: 0, crowding: FastSet::default() }
    }

    /// Counts a sample; `folded` hears of each row whose detail had to go for it, and of its samples.
    pub(super) fn add(
        &mut self,
        key: RowKey<S>,
        sum: Sum,
        overflow: &Overflow<S>,
        mut folded: impl FnMut(Tenant, Kept, u64),
    ) {
        // Most samples: one look-up.
        if let Some(known) = self.rows.get_mut(&key) {
            return known.add(sum);
        }
        let (tenant, cost) = ((overflow.tenant)(&key.1), (overflow.cost)(&key.1));
        let fits = |rows: &Self| rows.whole + cost <= overflow.max_rows;
        if fits(self) || self.makes_room(tenant, overflow, &mut folded) && fits(self) {
            self.whole += cost;
            return self.put(key, sum);
        }
        folded(tenant, self.fold(key, sum, overflow), 1);
    }

    fn put(&mut self, key: RowKey<S>, more: Sum) {
        self.rows.entry(key).or_default().add(more);
    }

    /// Folds an eighth of the rows, of those who hold too much; false if this tenant is one of them.
    fn makes_room(
        &mut self,
        tenant: Tenant,
        overflow: &Overflow<S>,
        folded: &mut impl FnMut(Tenant, Kept, u64),
    ) -> bool {
        if self.crowding.contains(&tenant) {
            return false;
        }
        let whole = self.rows.iter().filter(|((_, stack, _), _)| *stack != overflow.stack);
        let mut order: Vec<_> =
            whole.map(|(key, sum)| (sum.count, (overflow.tenant)(&key.1), key.clone())).collect();
        let room = overflow.max_rows - (overflow.max_rows / 8).max(1).min(overflow.max_rows);
        let mut excess =
            Excess::over(room, order.iter().map(|(_, who, key)| (*who, (overflow.cost)(&key.1))));
        if excess.take(&tenant, 0) {
            self.crowding.insert(tenant);
            return false;
        }
        order.sort_by_key(|(count, ..)| *count);
        for (_, tenant, key) in order {
            let cost = (overflow.cost)(&key.1);
            if excess.take(&tenant, cost)
                && let Some(sum) = self.rows.remove(&key)
            {
                self.whole -= cost;
                folded(tenant, self.fold(key, sum, overflow), sum.count);
            }
        }
        true
    }

    /// Counts under what is left of a key.
    fn fold(&mut self, key: RowKey<S>, sum: Sum, overflow: &Overflow<S>) -> Kept {
        let spare = overflow.max_rows / 8;
        let key = (key.0, overflow.stack.clone(), key.2);
        let Some(key) = self.put_within(key, sum, spare / 2) else { return Kept::Labels };
        let key = (Arc::new(whose(&key.0)), key.1, key.2);
        if let Some(key) = self.put_within(key, sum, spare) {
            self.put_within((overflow.labels.clone(), key.1, key.2), sum, usize::MAX);
        }
        Kept::Nothing
    }

    /// Adds to the folded row, or makes it while there are fewer than `limit`; else gives the key back.
    fn put_within(&mut self, key: RowKey<S>, sum: Sum, limit: usize) -> Option<RowKey<S>> {
        let new = !self.rows.contains_key(&key);
        if new && self.folded >= limit {
            return Some(key);
        }
        self.folded += usize::from(new);
        self.put(key, sum);
        None
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (RowKey<S>, Sum)> {
        self.rows.into_iter()
    }
}

/// Of a process's labels those that tell whose it is: a flood of processes, threads or tasks has one such set.
fn whose(labels: &LabelSet) -> LabelSet {
    use LabelKey::{App, AppName, Container, Deploy, Executor, Node, Role, User};
    let keys = [Node, Deploy, App, AppName, User, Role, Executor, Container];
    let of = |set: LabelSetBuilder, key| set.set(key, labels.get(key));
    keys.into_iter().fold(LabelSetBuilder::new(), of).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn labels(pid: u32) -> Arc<LabelSet> {
        Arc::new(LabelSetBuilder::new().set(LabelKey::Pid, pid.to_string()).build())
    }

    /// Stacks are numbers; those from a million on are user 65534's, those from two on are Spark's.
    fn tenant(stack: &u64) -> Tenant {
        let uid = if *stack / 1_000_000 == 1 { 65534 } else { 0 };
        Tenant { spark: *stack / 1_000_000 == 2, uid, group: 0 }
    }

    #[test]
    fn detail_folds_and_no_sample_is_lost() {
        let overflow = Overflow { max_rows: 16, stack: u64::MAX, labels: labels(0), tenant, cost: |_| 1 };
        let sum = Sum { count: 1, weight: 10, derived: 3 };
        let mut rows = Rows::new();
        let mut lost = [0u64; 2];
        for i in 0..10_000u64 {
            let key = (labels(1 + (i % 50) as u32), i % 400, SampleKind::Cpu);
            rows.add(key, sum, &overflow, |_, kept, samples| lost[kept as usize] += samples);
        }
        let rows: Vec<_> = rows.into_iter().collect();
        assert!(rows.len() <= 16 + 2 + 1, "{}", rows.len());
        assert_eq!(rows.iter().map(|r| r.1.count).sum::<u64>(), 10_000);
        assert_eq!(rows.iter().map(|r| r.1.weight).sum::<u64>(), 100_000);
        assert_eq!(rows.iter().map(|r| r.1.derived).sum::<u64>(), 30_000);
        assert!(lost.iter().all(|&n| n > 0) && lost.iter().sum::<u64>() < 10_000, "{lost:?}");
        let folded: u64 = rows.iter().filter(|r| r.0.1 == u64::MAX).map(|r| r.1.count).sum();
        assert_eq!(folded, lost.iter().sum::<u64>());
    }

    #[test]
    fn a_flooders_rows_fold_and_not_his_neighbours() {
        let overflow = Overflow { max_rows: 800, stack: u64::MAX, labels: labels(0), tenant, cost: |_| 1 };
        let mut rows = Rows::new();
        let mut lost: BTreeMap<Tenant, u64> = BTreeMap::new();
        let mut add = |labels: &Arc<LabelSet>, stack| {
            let key = (labels.clone(), stack, SampleKind::Cpu);
            let sum = Sum { count: 1, weight: 1, derived: 0 };
            rows.add(key, sum, &overflow, |who, _, samples| *lost.entry(who).or_default() += samples);
        };
        for i in 0..50_000u64 {
            // A fork storm with endless stacks, and a job that begins when the table is full.
            add(&labels(10_000 + i as u32), 1_000_000 + i);
            if i >= 10_000 {
                add(&labels(1), 2_000_000 + i % 300);
                add(&labels(2), i % 70);
            }
        }
        let flooder = tenant(&1_000_000);
        assert_eq!(lost.keys().copied().collect::<Vec<_>>(), [flooder]);
        let rows: Vec<_> = rows.into_iter().collect();
        assert!(rows.len() <= 900 + 1, "{}", rows.len());
        assert_eq!(rows.iter().map(|r| r.1.count).sum::<u64>(), 130_000);
        let of = |from| rows.iter().filter(move |r| r.0.1 / 1_000_000 == from).map(|r| r.1.count);
        assert_eq!((of(2).count(), of(2).sum::<u64>()), (300, 40_000));
        assert_eq!((of(0).count(), of(0).sum::<u64>()), (70, 40_000));
    }
}
