//! What a store must answer, read off the windows themselves: what tests hold every other way against.
//!
//! In: windows and changes of labels. Out: a [`Store`] that shares no code with the others but the tables of methods.
//! No limits but those of answers.

mod accounts;
mod answer;
mod relabel;
mod rows;
mod tree;

pub(crate) use rows::row_of;

use super::door::{Store, StoreUsage};
use super::error::StoreError;
use super::limits::AnswerLimits;
use super::values::LabelledSeries;
use emberscope_model::{
    Answer, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, ProcessRecord, Query, Selection,
    Summary, TimeRange, Window,
};
use relabel::{Moves, concerns, without};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The length of a window in tests.
const LENGTH: Duration = Duration::from_secs(10);

/// All windows, as they came.
#[derive(Debug, Default)]
pub(super) struct PlainStore {
    windows: Mutex<Vec<Arc<Window>>>,
}

impl PlainStore {
    fn windows(&self) -> MutexGuard<'_, Vec<Arc<Window>>> {
        self.windows.lock().unwrap()
    }

    /// The windows that share an instant with the range.
    fn touched(&self, range: TimeRange) -> Vec<Arc<Window>> {
        let windows = self.windows();
        windows.iter().filter(|w| !range.is_empty() && w.range.overlaps(&range)).cloned().collect()
    }

    /// Changes the windows that have anything of a process.
    fn rewrite(&self, process: &LabelSet, mut change: impl FnMut(&Window) -> Window) {
        for window in self.windows().iter_mut().filter(|window| concerns(window, process)) {
            *window = Arc::new(change(window));
        }
    }
}

impl Store for PlainStore {
    fn append(&self, window: Window) {
        self.windows().push(Arc::new(window));
    }

    fn span(&self) -> Option<TimeRange> {
        let windows = self.windows();
        let from = windows.iter().map(|w| w.range.from).min()?;
        Some(TimeRange { from, until: windows.iter().map(|w| w.range.until).max()? })
    }

    fn window_length(&self) -> Duration {
        LENGTH
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, LENGTH);
        answer::merge(&windows, query, range, &AnswerLimits::default())
    }

    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, LENGTH);
        Ok(Summary { range, windows: windows.len(), quality: answer::quality(&windows, query) })
    }

    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, LENGTH);
        answer::methods(&windows, query, range, &AnswerLimits::default())
    }

    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        answer::totals(&self.touched(query.range), query, &AnswerLimits::default())
    }

    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        answer::series(&self.touched(query.range), query, step.max(LENGTH), by, &AnswerLimits::default())
    }

    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        accounts::ledger(&self.touched(range), selection, by, &AnswerLimits::default())
    }

    fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        answer::processes(&self.touched(range), selection)
    }

    fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>) {
        if *from != **to {
            let mut moves = Moves::new(from, to);
            self.rewrite(from, |window| moves.window(window));
        }
    }

    fn forget(&self, labels: &LabelSet) {
        self.rewrite(labels, |window| without(window, labels));
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage { windows: self.windows().len(), ..StoreUsage::default() }
    }
}
