//! A stack between capture and the window's end: most of it named, JIT code still an address.

use crate::model::{Frame, StackEnd};
use std::sync::Arc;

/// One frame of a pending stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PendingFrame {
    /// It has its name.
    Named(Arc<Frame>),
    /// Code made at run time, at this address (already one byte back for a return address); a perf map
    /// that is taken at the window's end names it.
    Jit(u64),
}

/// A stack whose JIT frames wait for a map. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingStack {
    /// Root first.
    pub frames: Arc<[PendingFrame]>,
    /// How the user half ended.
    pub end: StackEnd,
}

impl PendingStack {
    /// Whether anything waits for a map.
    pub fn waits(&self) -> bool {
        self.frames.iter().any(|f| matches!(f, PendingFrame::Jit(_)))
    }
}
