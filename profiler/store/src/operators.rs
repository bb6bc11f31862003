//! The label `operator`: what a sample's stack tells when it is asked, where other labels were attached when it was taken.
//!
//! In: a store, and questions that name [`LabelKey::Operator`] among the labels that select or group. Out: the answers,
//! made of the store's call trees for the same question without it: each sample is put to an operator by the frames from
//! the root to its leaf ([`emberscope_model::OperatorWalk`]), so that windows of any age can be asked. Questions that do not name it go to
//! the store as they are, and so do series, of which a store reads the stacks itself; those that are answered without
//! stacks cannot name it. Besides the answer the store's tree is held. How walks ended is not in a tree: `ends` and `truncated` of an answer that selects by
//! operator are those of the selection without that condition.

use super::cut::cut;
use super::disk::DiskUsage;
use super::door::{Store, StoreUsage, passed_on};
use super::error::StoreError;
use super::methods;
use super::values::{LabelValue, LabelledSeries, prefix_value, sort_values};
use emberscope_model::{
    Answer, Detail, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, Node, Pauses, ProcessRecord,
    Quality, Query, Selection, SparkFact, SparkFacts, Summary, TimeRange, Tree, Window,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tree::parted;

mod parted;
mod sums;
mod tree;

pub(crate) use parted::Parted;
pub use sums::{OperatorSum, operator_sums};

/// A store that can be asked for operators, too.
pub struct ByOperator<'a>(&'a dyn Store);

impl<'a> ByOperator<'a> {
    /// The same store.
    pub fn new(store: &'a dyn Store) -> Self {
        Self(store)
    }

    /// Refuses what is answered without stacks.
    fn without_stacks(selection: &Selection, by: &[LabelKey]) -> Result<(), StoreError> {
        let mut keys = by.iter().chain(selection.matchers.iter().map(|matcher| &matcher.key));
        match keys.any(|key| *key == LabelKey::Operator) {
            true => Err(StoreError::WithoutStacks),
            false => Ok(()),
        }
    }
}

/// What is left of the quality where samples were left out, as far as a tree tells.
fn narrowed(quality: Quality, tree: &Tree, labels: usize) -> Quality {
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    let (mut samples, mut frames, mut unnamed) = (0, 0, BTreeMap::new());
    let (mut unnamed_frames, mut depths) = (0, Vec::with_capacity(tree.nodes.len()));
    for (at, node) in tree.nodes.iter().enumerate() {
        let depth = if at == 0 { 0 } else { depths.get(node.parent as usize).map_or(0, |depth| depth + 1) };
        depths.push(depth);
        add(&mut samples, node.self_count);
        if depth > labels {
            add(&mut frames, node.total_count);
            if let Some(reason) = node.frame.unknown {
                add(&mut unnamed_frames, node.total_count);
                add(unnamed.entry(reason.slug()).or_default(), node.total_count);
            }
        }
    }
    Quality { samples, frames, unnamed_frames, unnamed, ..quality }
}

impl Store for ByOperator<'_> {
    passed_on!();

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        let Some(asked) = Parted::of(query) else { return self.0.merge(query) };
        let mut answer = self.0.merge(&asked.query)?;
        answer.tree = parted(&answer.tree, &asked)?;
        if !asked.matchers.is_empty() {
            answer.quality = narrowed(answer.quality, &answer.tree, query.group.len());
        }
        Ok(answer)
    }
    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        match Parted::of(query) {
            None => self.0.merge_largest(query, max_nodes),
            Some(_) => Ok(cut(self.merge(query)?, max_nodes)),
        }
    }
    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        let query = Query { group: Vec::new(), ..query.clone() };
        if Parted::of(&query).is_none() {
            return self.0.methods(&query);
        }
        let detail = Detail { kinds: true, ..query.detail };
        Ok(methods::of_tree(self.merge(&Query { detail, ..query })?))
    }
    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let query = Query { group: Vec::new(), ..query.clone() };
        if Parted::of(&query).is_none() {
            return self.0.summary(&query);
        }
        let Answer { range, windows, quality, .. } = self.merge(&query)?;
        Ok(Summary { range, windows, quality })
    }
    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        Self::without_stacks(&query.selection, &[])?;
        self.0.totals(query)
    }
    fn values(&self, query: &Query, key: LabelKey) -> Result<Vec<LabelValue>, StoreError> {
        let asked = Query { group: vec![key], ..query.clone() };
        if Parted::of(&asked).is_none() {
            return self.0.values(query, key);
        }
        let tree = self.merge(&asked)?.tree;
        let of_key = |node: &Node| {
            let value = prefix_value(&node.frame, key)?;
            (value != super::limits::NO_VALUE).then(|| LabelValue {
                value: value.into(),
                count: node.total_count,
                weight: node.total_weight,
            })
        };
        let below_root = tree.nodes.iter().skip(1).filter(|node| node.parent == 0);
        let mut values: Vec<LabelValue> = below_root.filter_map(of_key).collect();
        sort_values(&mut values);
        Ok(values)
    }
    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        self.0.series(query, step, by)
    }
    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        Self::without_stacks(selection, by)?;
        self.0.ledger(range, selection, by)
    }
    fn pauses(&self, range: TimeRange, selection: &Selection) -> Result<Pauses, StoreError> {
        Self::without_stacks(selection, &[])?;
        self.0.pauses(range, selection)
    }
}

#[cfg(test)]
mod tests;
