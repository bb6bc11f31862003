//! How windows are cut and bounded, and what they count.

use emberscope_model::{LabelSet, Tenant};
use std::sync::Arc;
use std::time::Duration;

/// How windows are cut and bounded.
#[derive(Clone, Debug)]
pub struct WindowsConfig<S> {
    /// Length of a window; at least a second.
    pub length: Duration,
    /// How long after its end a window waits for late samples.
    pub grace: Duration,
    /// Rows of one open window with all their detail.
    pub max_rows: usize,
    /// The stack of samples over that limit.
    pub overflow_stack: S,
    /// The labels of such samples, where even keeping their own takes too many rows.
    pub overflow_labels: Arc<LabelSet>,
    /// Who pays for a stack: whose process had it.
    pub tenant: fn(&S) -> Tenant,
    /// For how many of `max_rows` a row with this stack counts, by the memory that it holds.
    pub cost: fn(&S) -> usize,
}

/// What happened to samples and windows since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounters {
    /// Samples that were added.
    pub samples: u64,
    /// Samples and stretches of the ledger whose window had closed; counted in the oldest open one.
    pub late: u64,
    /// Samples and stretches stamped far ahead of the clock; counted in the newest window.
    pub ahead: u64,
    /// Samples that lost their stack to the limit of rows.
    pub folded_stacks: u64,
    /// Samples that lost stack and labels to the limit of rows.
    pub folded_labels: u64,
    /// Lines of the ledger that lost their labels to the limit of rows.
    pub folded_ledger: u64,
    /// Pauses of JVMs that are not listed for want of room.
    pub unlisted_pauses: u64,
    /// Steps of the wall clock, suspends included.
    pub clock_steps: u64,
}
