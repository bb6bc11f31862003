//! Named stacks.

use super::{Frame, StackEnd};
use std::sync::Arc;

/// A named stack, interned per daemon: equal stacks share one allocation, and their frames too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Root first, leaf last; kernel frames, if any, at the leaf end.
    pub frames: Box<[Arc<Frame>]>,
    /// How the walk of the user half ended.
    pub end: StackEnd,
}

impl Stack {
    /// Whether the user half does not reach the thread's first frame.
    pub fn truncated(&self) -> bool {
        !matches!(self.end, StackEnd::Root | StackEnd::KernelThread)
    }
    /// How many frames have no name.
    pub fn unnamed(&self) -> usize {
        self.frames.iter().filter(|f| f.unknown.is_some()).count()
    }
}
