//! What the store knows of a stretch of time, but for the rows themselves: windows, label sets, groups of
//! rows, processes. A part (in memory) fills it window by window, a block reads it from its files, and
//! queries are answered from it the same way.
//!
//! Everything refers to everything by its place in a list: a window, a label set, a group is a number.

mod groups;
mod labels;
mod packed;
mod stacks;

pub(super) use groups::Groups;
pub(super) use labels::{Labels, NO_TEXT, Set, THREAD_KEYS, TextId};
pub(super) use packed::Packed;
pub(super) use stacks::{StackLine, StackNode, Stacks};

use emberscope_model::{
    LedgerSums, LostCounts, ProcessRecord, SampleKind, StackEnd, TimeRange, UnknownReason, WallTime,
};
use std::sync::Arc;

/// A closed window.
#[derive(Clone, Debug)]
pub(super) struct WindowFacts {
    pub range: TimeRange,
    pub partial: bool,
    pub lost: LostCounts,
    /// Processes that were seen in the window: places in [`Facts::records`].
    pub records: Vec<u32>,
}

/// The rows of one label set in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    pub window: u32,
    pub set: u32,
    pub kind: SampleKind,
    /// What more than half of the group's rows weigh per sample, or 0. A row's weight is `count * period + rest`, modulo 2^64.
    pub period: u64,
    /// Samples of all rows.
    pub count: u64,
    /// Weight of all samples, saturating: nanoseconds or bytes, by kind.
    pub weight: u64,
    /// Frames of all samples.
    pub frames: u64,
    /// Samples with an approximate frame.
    pub approximate: u64,
}

/// Something of the quality of an answer that most groups have none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flaw {
    /// Samples whose walk ended so; the root is not told.
    End(StackEnd),
    /// Frames without a name.
    Unnamed(UnknownReason),
}

/// How often a group has a flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlawCount {
    pub group: u32,
    pub flaw: Flaw,
    pub count: u64,
}

/// A process as it was known in some windows. Its labels are those of the set.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub set: u32,
    /// The process as it was known, but for its labels: those are the set's.
    pub process: ProcessRecord,
}

/// A line of a window's ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LedgerLine {
    pub window: u32,
    pub set: u32,
    pub sums: LedgerSums,
    pub seen: TimeRange,
}

/// A pause of a JVM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PauseLine {
    /// The window in which it began.
    pub window: u32,
    pub set: u32,
    pub began: WallTime,
    pub length_ns: u64,
    /// Empty: not known.
    pub cause: Arc<str>,
}

/// All that is known of a stretch of time, but for the ledger and the rows.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub labels: Labels,
    pub windows: Vec<WindowFacts>,
    pub groups: Groups,
    /// Flaws, in the order of groups.
    pub flaws: Vec<FlawCount>,
    pub records: Vec<Record>,
}

impl Facts {
    /// From the start of the first window to the end of the last.
    pub fn span(&self) -> Option<TimeRange> {
        span(self.windows.iter().map(|window| window.range))
    }
}

/// What all ranges lie in.
pub(super) fn span(ranges: impl Iterator<Item = TimeRange>) -> Option<TimeRange> {
    ranges.reduce(|mut all, one| {
        all.cover(&one);
        all
    })
}
