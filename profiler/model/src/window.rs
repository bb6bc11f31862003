//! Windows: what was counted in ten seconds.

use super::{DropReason, LabelSet, LedgerRow, Pause, ProcessRecord, SampleKind, Stack, TimeRange};
use std::sync::Arc;

/// One line of a window: the same labels and the same stack.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose samples these are.
    pub labels: Arc<LabelSet>,
    /// Where in the code the samples were taken.
    pub stack: Arc<Stack>,
    /// What the samples count.
    pub kind: SampleKind,
    /// How many samples.
    pub count: u64,
    /// Sum of their weights, in the unit of `kind`.
    pub weight: u64,
}

/// What was lost on the whole node during a window, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCounts(pub [u64; DropReason::COUNT]);

impl LostCounts {
    /// How much was lost for one reason.
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
    /// Adds the counts of another stretch.
    pub fn add(&mut self, other: &LostCounts) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b;
        }
    }
}

/// A closed window, as the aggregation hands it to the store.
#[derive(Clone, Debug)]
pub struct Window {
    /// Aligned to the wall clock, except where the clock was stepped: then the window ends at the step
    /// and the next begins there, and windows may share an instant.
    pub range: TimeRange,
    /// The rows; no two with the same labels, stack and kind.
    pub rows: Vec<Row>,
    /// What threads used in the window, exactly, whether sampled or not; no two lines with the same labels. Empty
    /// where the kernel does not tell.
    pub ledger: Vec<LedgerRow>,
    /// Pauses of JVMs that began in the window, as far as they are listed.
    pub pauses: Vec<Pause>,
    /// Processes that were sampled in the window.
    pub processes: Vec<Arc<ProcessRecord>>,
    /// What was lost on the node during the window.
    pub lost: LostCounts,
    /// The window was cut short (start, stop, or a step of the clock).
    pub partial: bool,
}
