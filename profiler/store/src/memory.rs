//! Windows in memory, the oldest dropped when bytes or age reach their limit.
//!
//! In: closed windows, in the order in which they closed. Out: answers ([`super::answer`]) over those
//! that overlap the asked range. A query takes the lock to list its windows and then works without it;
//! windows that are dropped meanwhile live until the query ends.
//!
//! Age is counted from when a window came, by the monotonic clock: a wall clock that jumps a year ahead
//! and back drops nothing. Limits: [`MemoryStoreConfig`], each window dropped is counted.

use super::accounts;
use super::answer;
use super::door::{Store, StoreUsage};
use super::error::StoreError;
use super::limits::AnswerLimits;
use super::methods;
use super::relabel::{Moves, concerns, without};
use super::sizes::Sizes;
use super::values::LabelledSeries;
use emberscope_model::{
    Answer, LabelKey, LabelSet, LabelTotal, LedgerTotal, MethodAnswer, ProcessRecord, Query, Selection,
    Summary, TimeRange, Window,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct MemoryStoreConfig {
    /// Length of a window.
    pub window_length: Duration,
    /// Bytes of all windows, as estimated.
    pub max_bytes: usize,
    /// How long a window is kept.
    pub max_age: Duration,
    /// How large an answer may be.
    pub answers: AnswerLimits,
}

impl Default for MemoryStoreConfig {
    /// Two hours (a query without times asks for one) or 24 MiB, which leaves the rest of the daemon's
    /// 64 MiB to symbols and queries.
    fn default() -> Self {
        Self {
            window_length: Duration::from_secs(10),
            max_bytes: 24 << 20,
            max_age: Duration::from_secs(7_200),
            answers: AnswerLimits::default(),
        }
    }
}

/// A [`Store`] in memory.
#[derive(Debug)]
pub struct MemoryStore {
    config: MemoryStoreConfig,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    windows: VecDeque<KeptWindow>,
    /// Number of the next window.
    next: u64,
    sizes: Sizes,
    dropped_for_bytes: u64,
    dropped_for_age: u64,
}

#[derive(Debug)]
struct KeptWindow {
    number: u64,
    came: Instant,
    window: Arc<Window>,
}

impl Kept {
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.windows.pop_front() {
            self.sizes.remove(&oldest.window);
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(config: MemoryStoreConfig) -> Self {
        Self { config, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic elsewhere leaves at worst an estimate that is off.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_at(&self, mut window: Window, now: Instant) {
        window.rows.shrink_to_fit();
        window.ledger.shrink_to_fit();
        window.processes.shrink_to_fit();
        let mut kept = self.kept();
        kept.sizes.add(&window);
        let number = kept.next;
        kept.next += 1;
        kept.windows.push_back(KeptWindow { number, came: now, window: Arc::new(window) });
        let max_age = self.config.max_age;
        while kept.windows.front().is_some_and(|w| now.saturating_duration_since(w.came) > max_age) {
            kept.drop_oldest();
            kept.dropped_for_age += 1;
        }
        while kept.sizes.bytes() > self.config.max_bytes && !kept.windows.is_empty() {
            kept.drop_oldest();
            kept.dropped_for_bytes += 1;
        }
    }

    /// The windows that share an instant with the range.
    fn touched(&self, range: TimeRange) -> Vec<Arc<Window>> {
        if range.is_empty() {
            return Vec::new();
        }
        let kept = self.kept();
        let windows = kept.windows.iter().map(|w| &w.window);
        windows.filter(|window| window.range.overlaps(&range)).cloned().collect()
    }
}

impl Store for MemoryStore {
    fn append(&self, window: Window) {
        self.append_at(window, Instant::now());
    }

    fn span(&self) -> Option<TimeRange> {
        let kept = self.kept();
        let from = kept.windows.iter().map(|w| w.window.range.from).min()?;
        let until = kept.windows.iter().map(|w| w.window.range.until).max()?;
        Some(TimeRange { from, until })
    }

    fn window_length(&self) -> Duration {
        self.config.window_length
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, self.config.window_length);
        answer::merge(&windows, query, range, &self.config.answers)
    }

    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, self.config.window_length);
        Ok(Summary { range, windows: windows.len(), quality: answer::quality(&windows, query) })
    }

    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        let windows = self.touched(query.range);
        let range = answer::covered(&windows, query.range, self.config.window_length);
        methods::of_windows(&windows, query, range, &self.config.answers)
    }

    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        answer::totals(&self.touched(query.range), query, &self.config.answers)
    }

    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let step = step.max(self.config.window_length);
        answer::series(&self.touched(query.range), query, step, by, &self.config.answers)
    }

    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        accounts::ledger(&self.touched(range), selection, by, &self.config.answers)
    }

    fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        answer::processes(&self.touched(range), selection)
    }

    /// Takes the lock once for each window, so that neither queries nor new windows wait for all.
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
        let kept = self.kept();
        StoreUsage {
            windows: kept.windows.len(),
            bytes: kept.sizes.bytes(),
            dropped_for_bytes: kept.dropped_for_bytes,
            dropped_for_age: kept.dropped_for_age,
            dropped_for_full: 0,
        }
    }
}

impl MemoryStore {
    /// Replaces the windows that have a process's labels, one at a time.
    fn rewrite(&self, process: &LabelSet, mut change: impl FnMut(&Window) -> Window) {
        let mut number = 0;
        loop {
            let mut guard = self.kept();
            let kept = &mut *guard;
            let Some(found) = kept.windows.iter_mut().find(|w| w.number >= number) else { return };
            number = found.number + 1;
            if concerns(&found.window, process) {
                // Added before the old one is taken out, so that what both share stays counted.
                let changed = change(&found.window);
                kept.sizes.add(&changed);
                kept.sizes.remove(&found.window);
                found.window = Arc::new(changed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
