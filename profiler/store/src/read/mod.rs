//! Answers from what the store holds, part by part and block by block, the newest first.
//!
//! In: a [`View`] of each that shares an instant with the asked range. Out: one answer. Which windows and
//! label sets are meant is found in the facts; rows are read only for a call tree. The answers are those of
//! [`super::answer`], which has the windows themselves.

mod budget;
mod lists;
mod merge;
mod methods;
mod sums;
mod values;

pub(super) use budget::{Budget, was_read};
pub(super) use lists::{LedgerLines, Processes, Series, Totals};
pub(super) use merge::{Merge, Quantities};
pub(super) use methods::MethodSums;
pub(super) use sums::{SlotSum, Sums};
pub(super) use values::Values;

use super::StoreError;
use super::facts::{Facts, LedgerLine, Stacks};
use super::flat::Shape;
use super::part::Part;
use crate::AnswerLimits;
use emberscope_model::{Detail, LostCounts, Quality, Query, TimeRange};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// No slot: the group is not selected.
pub(super) const UNSELECTED: u32 = u32::MAX;

/// An answer that views are added to, whichever holds them.
pub(super) trait Summing<'q>: Sized + Send {
    /// What comes of it.
    type Answer;
    /// Of no view yet.
    fn new(query: &'q Query, limits: &AnswerLimits) -> Self;
    /// Adds a view.
    fn add(&mut self, view: &dyn View) -> Result<(), StoreError>;
    /// Adds what another has of other views.
    fn join(&mut self, other: Self) -> Result<(), StoreError>;
    /// The answer; `length` is a window's.
    fn finish(self, length: Duration) -> Self::Answer;
    /// What an answer rests on.
    fn quality(answer: &mut Self::Answer) -> &mut Quality;
}

/// Something that holds windows.
pub(super) trait View {
    /// What it knows of them.
    fn facts(&self) -> &Facts;
    /// Its stacks.
    fn stacks(&self) -> Result<StacksRef<'_>, StoreError>;
    /// The tree of all its stacks.
    fn shape(&self, detail: Detail) -> Result<Arc<Shape>, StoreError> {
        Ok(Arc::new(Shape::of(&*self.stacks()?, detail)))
    }
    /// The rows of all groups with a slot, by slot and stack. A slot for each group; `slots` in all.
    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError>;
    /// How many rows it has.
    fn rows(&self) -> u64;
    /// Its ledger.
    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError>;
}

/// Stacks that are lent, or held together.
pub(super) enum StacksRef<'a> {
    Lent(&'a Stacks),
    Held(Arc<Stacks>),
}

impl Deref for StacksRef<'_> {
    type Target = Stacks;
    fn deref(&self) -> &Stacks {
        match self {
            Self::Lent(stacks) => stacks,
            Self::Held(stacks) => stacks,
        }
    }
}

/// A ledger that is lent, or was read for this query.
pub(super) enum LedgerRef<'a> {
    Lent(&'a [LedgerLine]),
    Read(Vec<LedgerLine>),
}

impl Deref for LedgerRef<'_> {
    type Target = [LedgerLine];
    fn deref(&self) -> &[LedgerLine] {
        match self {
            Self::Lent(lines) => lines,
            Self::Read(lines) => lines,
        }
    }
}

impl View for Part {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn stacks(&self) -> Result<StacksRef<'_>, StoreError> {
        Ok(StacksRef::Lent(&self.stacks))
    }
    fn shape(&self, detail: Detail) -> Result<Arc<Shape>, StoreError> {
        Ok(self.shapes.of(&self.stacks, detail))
    }
    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError> {
        let mut sums = Sums::new(slots, self.stacks.stacks.len());
        for (group, slot) in of_group.iter().enumerate().filter(|(_, slot)| **slot != UNSELECTED) {
            for row in self.rows(group as u32) {
                sums.add(*slot, row.stack, row.count, row.weight);
            }
        }
        Ok(sums)
    }
    fn rows(&self) -> u64 {
        (0..self.facts.groups.len() as u32).map(|group| u64::from(self.row_count(group))).sum()
    }
    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError> {
        Ok(LedgerRef::Lent(&self.ledger))
    }
}

/// Which windows an answer holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    range: Option<TimeRange>,
    /// How many.
    pub windows: usize,
    /// What was lost in them.
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

    /// Adds the windows of another.
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
