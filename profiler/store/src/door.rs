//! [`Store`], the room's door: what is asked of it, wherever it keeps its windows.

use super::cut::cut;
use super::disk::DiskUsage;
use super::error::StoreError;
use super::methods;
use super::values::{LabelValue, LabelledSeries, sort_values};
use emberscope_model::{
    Answer, Detail, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, Pauses, ProcessRecord, Query,
    Selection, SparkFact, SparkFacts, Summary, TimeRange, Window,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Keeps windows and answers queries over them.
pub trait Store: Send + Sync {
    /// Takes a closed window. The oldest windows go when the limits are passed.
    fn append(&self, window: Window);
    /// From the start of the oldest window to the end of the newest; None when there is none.
    fn span(&self) -> Option<TimeRange>;
    /// Length of a window: answers are rounded to it.
    fn window_length(&self) -> Duration;
    /// One merged tree of all selected samples. The answer holds the windows that share an instant with the
    /// asked range, whole; its range is theirs, or the asked one in whole windows where there is none.
    /// A prefix frame of `group` reads `key=(none)` where the label is not set.
    ///
    /// # Errors
    /// The tree has more nodes than it may ([`StoreError::TooLarge`]), the query costs more than it may
    /// ([`StoreError::TooLong`], [`StoreError::TooMuch`]), nobody waits for it any more ([`StoreError::Unwanted`]), or
    /// what has the files does not answer ([`StoreError::Away`]). Files that cannot be read are set aside, and the
    /// answer tells what it lacks; only where more and more of them turn up it is [`StoreError::Unreadable`].
    fn merge(&self, query: &Query) -> Result<Answer, StoreError>;
    /// As [`Store::merge`], with the largest nodes only, one at the least: what goes from under a node is one node `other`
    /// there, which counts to none. And how many nodes went.
    ///
    /// # Errors
    /// As [`Store::merge`].
    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        Ok(cut(self.merge(query)?, max_nodes))
    }
    /// The methods of all selected samples, over the same windows as [`Store::merge`]; `group` does not matter. What
    /// it holds grows with the methods, so it answers where a tree would be too large.
    ///
    /// # Errors
    /// As [`Store::merge`]; [`StoreError::TooLarge`] where there are more methods than may be.
    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        let detail = Detail { kinds: true, ..query.detail };
        Ok(methods::of_tree(self.merge(&Query { detail, group: Vec::new(), ..query.clone() })?))
    }
    /// What [`Store::merge`] would answer, without the tree: tables need only this, and a store can tell
    /// it without walking a stack.
    ///
    /// # Errors
    /// As [`Store::merge`].
    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let answer = self.merge(query)?;
        Ok(Summary { range: answer.range, windows: answer.windows, quality: answer.quality })
    }
    /// Sums by label set, over the windows that `query` touches, sorted. `group` does not matter.
    ///
    /// # Errors
    /// As [`Store::merge`]; [`StoreError::TooLarge`] where there are more label sets than may be.
    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError>;
    /// Values of one label with their sums, over the windows that `query` touches: most samples first, then by text.
    /// What does not have the label is not told.
    ///
    /// # Errors
    /// As [`Store::merge`]; [`StoreError::TooLarge`] where there are more values than may be.
    fn values(&self, query: &Query, key: LabelKey) -> Result<Vec<LabelValue>, StoreError> {
        let mut sums: HashMap<Arc<str>, (u64, u64)> = HashMap::new();
        for total in self.totals(query)? {
            let Some((_, value)) = total.labels.iter().find(|(known, _)| *known == key) else { continue };
            let sum = sums.entry(value.clone()).or_default();
            *sum = (sum.0.saturating_add(total.count), sum.1.saturating_add(total.weight));
        }
        let value = |(value, (count, weight))| LabelValue { value, count, weight };
        let mut values: Vec<LabelValue> = sums.into_iter().map(value).collect();
        sort_values(&mut values);
        Ok(values)
    }
    /// Sums by step and by the labels `by`, sorted by these. Steps begin at multiples of `step`, which
    /// is at least a window; a window counts in the step in which it begins. Where no window begins
    /// there is no point; where one does, a series without samples has a zero.
    ///
    /// # Errors
    /// As [`Store::merge`]; [`StoreError::TooLarge`] where there are more points than may be.
    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError>;
    /// Exact sums by the labels `by`, over the windows that share an instant with the range, sorted by
    /// these labels.
    ///
    /// # Errors
    /// As [`Store::merge`]; [`StoreError::TooLarge`] where there are more label sets than may be.
    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError>;
    /// Pauses of JVMs whose process is selected, in windows that share an instant with the range: the longest, where there
    /// are more than may be.
    ///
    /// # Errors
    /// As [`Store::merge`].
    fn pauses(&self, _: TimeRange, _: &Selection) -> Result<Pauses, StoreError> {
        Ok(Pauses::default())
    }
    /// Processes sampled in the range whose labels are selected, each as last known.
    fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>>;
    /// What Spark says of applications is kept with the newest windows, where it is new to them. False: it is not kept,
    /// for there is no window yet.
    fn learn(&self, _: &[SparkFact]) -> bool {
        false
    }
    /// What Spark said of an application while the windows of a range were made, and up to an hour after.
    ///
    /// # Errors
    /// As [`Store::merge`].
    fn spark_facts(&self, _app: &str, _: TimeRange) -> Result<SparkFacts, StoreError> {
        Ok(SparkFacts::default())
    }
    /// Labels became known late (a driver's app id): rows, ledger lines and processes whose labels are
    /// those of the process `from`, whatever their thread's ([`LabelSet::is_of_process`]), get `to`'s and
    /// keep their thread's.
    fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>);
    /// This process ([`LabelSet::is_of_process`]) turned out to be of an application that is not kept: its
    /// rows, ledger lines and records go.
    fn forget(&self, labels: &LabelSet);
    /// What the store holds: windows, bytes, and windows that the limits turned away.
    fn usage(&self) -> StoreUsage;
    /// What the store has on the disk, and how that goes; None when it has nothing to do with a disk.
    fn disk(&self) -> Option<DiskUsage> {
        None
    }
}

/// What a store that stands before another one passes on as it is: all that no label is asked of.
macro_rules! passed_on {
    () => {
        fn append(&self, window: Window) {
            self.0.append(window);
        }
        fn span(&self) -> Option<TimeRange> {
            self.0.span()
        }
        fn window_length(&self) -> Duration {
            self.0.window_length()
        }
        fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
            self.0.processes(range, selection)
        }
        fn learn(&self, facts: &[SparkFact]) -> bool {
            self.0.learn(facts)
        }
        fn spark_facts(&self, app: &str, range: TimeRange) -> Result<SparkFacts, StoreError> {
            self.0.spark_facts(app, range)
        }
        fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>) {
            self.0.relabel(from, to);
        }
        fn forget(&self, labels: &LabelSet) {
            self.0.forget(labels);
        }
        fn usage(&self) -> StoreUsage {
            self.0.usage()
        }
        fn disk(&self) -> Option<DiskUsage> {
            self.0.disk()
        }
    };
}
pub(super) use passed_on;

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Windows that are kept.
    pub windows: usize,
    /// Bytes of memory that they take with what is cached of blocks, estimated.
    pub bytes: usize,
    /// Windows dropped since start because the limit of bytes was reached.
    pub dropped_for_bytes: u64,
    /// Windows dropped since start because they were too old.
    pub dropped_for_age: u64,
    /// Windows dropped since start because the disk was full.
    pub dropped_for_full: u64,
    /// Facts of Spark's that were taken since start.
    pub facts: u64,
    /// How often a fact of Spark's was turned away since start: it was too long, or there was no room.
    pub facts_refused: u64,
}
