//! How large an answer may be, and what it may cost.

use std::time::Duration;

/// Blocks that are read at once on a large machine, one for two CPUs: each takes some 10 MB while it is read.
const MAX_THREADS: usize = 4;

/// How large an answer may be, and what it may cost.
#[derive(Clone, Copy, Debug)]
pub struct AnswerLimits {
    /// Nodes of a call tree, each some 100 bytes while it is made; rows of a table of methods.
    pub nodes: usize,
    /// Label sets of totals and of the ledger; values of a label.
    pub label_sets: usize,
    /// Points of all series together.
    pub points: usize,
    /// How long a query may take; asked between two blocks.
    pub time: Duration,
    /// Bytes of blocks' files that it may read.
    pub bytes: u64,
    /// Blocks that are read at once, each on a thread of its own.
    pub threads: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        let threads =
            std::thread::available_parallelism().map_or(1, |cpus| (cpus.get() / 2).clamp(1, MAX_THREADS));
        Self {
            nodes: 1_000_000,
            label_sets: 100_000,
            points: 200_000,
            time: Duration::from_secs(25),
            bytes: 4 << 30,
            threads,
        }
    }
}

/// What stands for the value of a label that is not set, in prefix frames: `stage=(none)`. Plain
/// `stage=` reads as if something had been cut off, and a word alone could be a value.
pub const NO_VALUE: &str = "(none)";
