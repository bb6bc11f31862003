//! Pauses of JVMs, one by one: the longest, where there are more than an answer may have.

use super::Covered;
use super::lists::is;
use crate::error::StoreError;
use crate::view::View;
use emberscope_model::{LabelSet, Pause, Pauses, Selection, TimeRange};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// [`crate::Store::pauses`] in the making.
pub(crate) struct PauseLines<'q> {
    range: TimeRange,
    selection: &'q Selection,
    limit: usize,
    found: Vec<Pause>,
    left_out: u64,
}

impl<'q> PauseLines<'q> {
    /// None yet, and `limit` at most.
    pub fn new(range: TimeRange, selection: &'q Selection, limit: usize) -> Self {
        Self { range, selection, limit: limit.max(1), found: Vec::new(), left_out: 0 }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]: the view's pauses cannot be read.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.range);
        if !touched.contains(&true) {
            return Ok(());
        }
        let selected = facts.labels.selected(self.selection);
        let processes = facts.labels.all_processes();
        let mut sets: HashMap<u32, Arc<LabelSet>> = HashMap::new();
        for line in view.pauses()?.iter() {
            if !is(&touched, line.window) || !is(&selected, line.set) {
                continue;
            }
            let labels =
                sets.entry(line.set).or_insert_with(|| Arc::new(facts.labels.set(line.set, &processes)));
            let (labels, cause) = (labels.clone(), line.cause.clone());
            self.found.push(Pause { labels, began: line.began, length_ns: line.length_ns, cause });
            if self.found.len() >= self.limit.saturating_mul(2) {
                self.cut();
            }
        }
        Ok(())
    }

    fn cut(&mut self) {
        if self.found.len() > self.limit {
            self.found.sort_by_key(|pause| Reverse(pause.length_ns));
            self.left_out += (self.found.len() - self.limit) as u64;
            self.found.truncate(self.limit);
        }
    }

    /// The pauses, by their begin.
    pub fn finish(mut self) -> Pauses {
        self.cut();
        self.found.sort_by(|a, b| (a.began, &a.labels).cmp(&(b.began, &b.labels)));
        Pauses { pauses: self.found, left_out: self.left_out }
    }
}
