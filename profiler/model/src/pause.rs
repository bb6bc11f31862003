//! Pauses of JVMs: when all threads of one stood still, and what for.

use super::{LabelSet, WallTime};
use std::sync::Arc;

/// A pause, of a window or of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Labels of the JVM's process.
    pub labels: Arc<LabelSet>,
    /// When threads began to be stopped, wall clock.
    pub began: WallTime,
    /// From then until they went on, nanoseconds.
    pub length_ns: u64,
    /// Name of the operation, as the JVM's log has it (`G1CollectForAllocation`); empty: not known.
    pub cause: Arc<str>,
}

/// Pauses of a time range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The pauses, by their begin.
    pub pauses: Vec<Pause>,
    /// Pauses that are kept and did not fit into the answer: shorter ones than those that did.
    pub left_out: u64,
}
