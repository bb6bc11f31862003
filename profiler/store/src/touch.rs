//! What a question touches: when, whose, and which files of a block.

use super::block::table_of;
use emberscope_model::{LabelKey, Query, Selection, TimeRange};
use std::time::Duration;

/// What a question reads of a block, beside the rows that only some need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Label sets, windows, sums by label set.
    Facts,
    /// Facts, and stacks.
    Trees,
    /// Facts, and the ledger.
    Ledger,
    /// Facts, and pauses.
    Pauses,
    /// Facts, and what Spark says.
    Spark,
    /// All files.
    All,
}

impl Needs {
    /// Whether a block's file is surely read.
    pub fn file(self, file: &str) -> bool {
        match table_of(file) {
            _ if self == Self::All => true,
            "samples" => false,
            "stacks" | "nodes" | "frames" | "merged" => self == Self::Trees,
            "ledger" => self == Self::Ledger,
            "pauses" => self == Self::Pauses,
            "spark" => self == Self::Spark,
            _ => true,
        }
    }
}

/// Labels that tell tasks apart.
const OF_TASKS: [LabelKey; 3] = [LabelKey::TaskIndex, LabelKey::TaskAttempt, LabelKey::Task];

/// What a question touches.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// The time that is asked for.
    pub range: TimeRange,
    /// Whose samples.
    pub selection: &'a Selection,
    /// The answer tells tasks apart, or selects by them.
    pub of_tasks: bool,
    /// The answer tells apart what lies so far apart in time.
    pub step: Option<Duration>,
    /// The files of a block that are read.
    pub needs: Needs,
}

impl<'a> Touch<'a> {
    /// What a query touches whose answer tells apart the labels `by`.
    pub(super) fn of(query: &'a Query, by: &[LabelKey], needs: Needs) -> Self {
        Self::within(query.range, &query.selection, by, needs)
    }

    pub(super) fn within(range: TimeRange, selection: &'a Selection, by: &[LabelKey], needs: Needs) -> Self {
        let mut keys = by.iter().chain(selection.matchers.iter().map(|matcher| &matcher.key));
        let of_tasks = keys.any(|key| OF_TASKS.contains(key));
        Self { range, selection, of_tasks, step: None, needs }
    }
}
