//! Answers from what the store holds, part by part and block by block, the newest first.
//!
//! In: a [`View`] of each that shares an instant with the asked range. Out: one answer. Which windows and
//! label sets are meant is found in the facts; rows are read only for a call tree. Tests hold the
//! answers against those of `plain`, which has the windows themselves.

mod budget;
mod lists;
mod merge;
mod methods;
mod operators;
mod pauses;
mod steps;
mod values;

pub(super) use budget::{Budget, was_read};
pub(super) use lists::{LedgerLines, Processes, Series, Totals};
pub(super) use merge::{Merge, Merged, Quantities};
pub(super) use methods::MethodSums;
pub(super) use operators::OperatorSeries;
pub(super) use pauses::PauseLines;
pub(super) use values::Values;

use super::error::StoreError;
use super::facts::Facts;
use super::limits::AnswerLimits;
use super::view::View;
use emberscope_model::{LostCounts, Quality, Query, TimeRange};
use std::time::Duration;

/// An answer that views are added to, whichever holds them.
pub(super) trait Summing<'q>: Sized + Send {
    /// The answer that the sum becomes.
    type Answer;
    /// A sum over no view yet.
    fn new(query: &'q Query, limits: &AnswerLimits) -> Self;
    /// Adds a view.
    fn add(&mut self, view: &dyn View) -> Result<(), StoreError>;
    /// Adds the sum of other views.
    fn join(&mut self, other: Self) -> Result<(), StoreError>;
    /// The answer; `length` is a window's.
    fn finish(self, length: Duration) -> Self::Answer;
    /// What an answer rests on.
    fn quality(answer: &mut Self::Answer) -> &mut Quality;
}

/// Which windows an answer holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    range: Option<TimeRange>,
    /// How many windows the answer holds.
    pub windows: usize,
    /// Samples that were lost in these windows.
    pub lost: LostCounts,
}

impl Covered {
    /// Which of a view's windows share an instant with the range.
    pub fn touch(&mut self, facts: &Facts, range: &TimeRange) -> Vec<bool> {
        let touches = |window: &super::facts::WindowFacts| {
            let touched = !range.is_empty() && window.range.overlaps(range);
            if touched {
                self.windows += 1;
                self.lost.add(&window.lost);
                self.range.get_or_insert(window.range).cover(&window.range);
            }
            touched
        };
        facts.windows.iter().map(touches).collect()
    }

    /// Adds the windows of other views.
    pub fn join(&mut self, other: &Self) {
        self.windows += other.windows;
        self.lost.add(&other.lost);
        if let Some(range) = other.range {
            self.range.get_or_insert(range).cover(&range);
        }
    }

    /// From the first to the last window; where there is none, the asked range in whole windows.
    pub fn range(&self, asked: &TimeRange, length: Duration) -> TimeRange {
        self.range
            .unwrap_or_else(|| TimeRange { from: asked.from.floor(length), until: asked.until.ceil(length) })
    }
}
