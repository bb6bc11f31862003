//! Frames that the walker deferred: known to be a runtime's, and named from the process's memory.

use emberscope_model::{Frame, UnknownReason};
use profiler_ebpf::UserFrame;
use std::sync::Arc;

/// A deferred frame, with the generation that its stack was recorded with ([`emberscope_model::RawStack`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeferredFrame {
    /// As the walker sent it; what `kind`, `value` and `cookie` mean is the runtime's.
    pub frame: UserFrame,
    /// The runtime's count then; 0: not known.
    pub generation: u64,
}

/// The frames that one deferred frame stands for (a function and what is inlined in it), root first, or why they are not
/// known. None where it stands for no function.
pub type Answer = Result<Arc<[Frame]>, UnknownReason>;

/// How long a deferred frame's name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// For the process's life: nothing else ever has these words.
    Forever,
    /// For stacks of the same generation; where that is 0, for those of one batch.
    Generation,
}
