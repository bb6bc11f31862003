//! Windows: what was counted in ten seconds.

use super::{DropReason, LabelSet, LedgerRow, ProcessRecord, SampleKind, Stack, TimeRange};
use std::sync::Arc;

/// One line of a window: the same labels and the same stack.
#[derive(Clone, Debug)]
pub struct Row {
    /// Who.
    pub labels: Arc<LabelSet>,
    /// Where in the code.
    pub stack: Arc<Stack>,
    /// What is counted.
    pub kind: SampleKind,
    /// How many samples.
    pub count: u64,
    /// Their weights' sum, in the unit of `kind`.
    pub weight: u64,
}

/// What was lost on the whole node during a window, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCounts(pub [u64; DropReason::COUNT]);

impl LostCounts {
    /// Count of one reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }
    /// Samples lost: those that never came up at all.
    pub fn samples(&self) -> u64 {
        self.get(DropReason::RingFullSample) + self.get(DropReason::NoScratch)
    }
    /// What was lost since `earlier`; never below 0.
    pub fn since(&self, earlier: &LostCounts) -> LostCounts {
        LostCounts(std::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }
    /// Adds another's counts.
    pub fn add(&mut self, other: &LostCounts) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b;
        }
    }
}

/// A closed window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Aligned to the wall clock, except where the clock was stepped: then the window ends at the step
    /// and the next begins there, and windows may share an instant.
    pub range: TimeRange,
    /// The rows; no two with the same labels, stack and kind.
    pub rows: Vec<Row>,
    /// What threads used in it, exactly, whether sampled or not; no two lines with the same labels. Empty
    /// where the kernel does not tell.
    pub ledger: Vec<LedgerRow>,
    /// Processes sampled in it.
    pub processes: Vec<Arc<ProcessRecord>>,
    /// What was lost meanwhile.
    pub lost: LostCounts,
    /// It was cut short (start, stop, or a step of the clock).
    pub partial: bool,
}
