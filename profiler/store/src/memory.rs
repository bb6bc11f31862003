//! Windows in memory, as one part: for a recording, of which nothing may go, and for tests.
//!
//! In: closed windows, in the order in which they closed. Out: answers over those that overlap the asked range, read as
//! any part's are. A query locks the part while it reads it, and windows that close meanwhile wait. No limit: a
//! recording is as long as its user says, and a row takes two bytes or three.

use super::asking::{Add, Parts, asked_of_parts};
use super::door::{Store, StoreUsage};
use super::error::StoreError;
use super::limits::AnswerLimits;
use super::part::Part;
use super::read::{Merge, Merged, MethodSums};
use super::touch::{Needs, Touch};
use super::values::{LabelValue, LabelledSeries};
use emberscope_model::{
    Answer, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, Missing, ProcessRecord, Query,
    Selection, SparkFact, Summary, TimeRange, Window,
};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// How a store in memory answers.
#[derive(Clone, Copy, Debug)]
pub struct MemoryStoreConfig {
    /// Length of the windows that are appended: answers are rounded to it.
    pub window_length: Duration,
    /// How large an answer may be, and what it may cost.
    pub answers: AnswerLimits,
}

impl Default for MemoryStoreConfig {
    fn default() -> Self {
        Self { window_length: Duration::from_secs(10), answers: AnswerLimits::default() }
    }
}

/// A [`Store`] in memory.
#[derive(Debug)]
pub struct MemoryStore {
    config: MemoryStoreConfig,
    part: RwLock<Part>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(config: MemoryStoreConfig) -> Self {
        Self { config, part: RwLock::default() }
    }

    fn part(&self) -> RwLockReadGuard<'_, Part> {
        self.part.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Part> {
        self.part.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts for MemoryStore {
    fn length(&self) -> Duration {
        self.config.window_length
    }

    fn limits(&self) -> &AnswerLimits {
        &self.config.answers
    }

    fn each(&self, _: &Touch<'_>, add: &mut Add<'_>) -> Result<(), StoreError> {
        add(&*self.part())
    }

    /// A part in memory can always be read.
    fn set_aside(&self, _: &Path, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn missing(&self, _: &Touch<'_>) -> Result<Missing, StoreError> {
        Ok(Missing::default())
    }
}

impl MemoryStore {
    fn merged(&self, query: &Query) -> Result<Merged, StoreError> {
        self.ask_summed::<Merge<'_>>(query, &Touch::of(query, &query.group, Needs::Trees))
    }
}

// What a part gives back for its journal is dropped: there is none.
impl Store for MemoryStore {
    fn append(&self, window: Window) {
        self.change().append(&window);
    }

    fn span(&self) -> Option<TimeRange> {
        self.part().facts.span()
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        Ok(self.merged(query)?.whole())
    }

    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        Ok(self.merged(query)?.largest(max_nodes))
    }

    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        self.ask_summed::<MethodSums<'_>>(query, &Touch::of(query, &[], Needs::Trees))
    }

    asked_of_parts!();

    fn learn(&self, facts: &[SparkFact]) -> bool {
        self.change().learn(facts);
        true
    }

    fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>) {
        self.change().relabel(from, to);
    }

    fn forget(&self, labels: &LabelSet) {
        self.change().forget(labels);
    }

    fn usage(&self) -> StoreUsage {
        let part = self.part();
        StoreUsage { windows: part.facts.windows.len(), bytes: part.bytes(), ..StoreUsage::default() }
    }
}

#[cfg(test)]
mod tests;
