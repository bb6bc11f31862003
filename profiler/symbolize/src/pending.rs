//! A stack between capture and the window's end: most of it named, JIT code still on its way to a name.

use super::deferred::Slot;
use super::files::FileSlot;
use emberscope_model::{Frame, StackEnd};
use std::sync::Arc;

/// One frame of a pending stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PendingFrame {
    /// The frame has its name.
    Named(Arc<Frame>),
    /// Code made at run time, at this address (already one byte back for a return address); a perf map
    /// that is taken at the window's end names it.
    Jit(u64),
    /// A frame that the walker knew as a runtime's, and that is being read from the process's memory.
    Deferred(Slot),
    /// Code of a file that is being read: boxed, for few frames are, and all are in memory by the hundred thousand.
    File(Box<InFile>),
}

/// Code of a file that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InFile {
    /// What the file is found to be.
    pub slot: FileSlot,
    /// Where in the file, bytes.
    pub offset: u64,
}

impl PendingFrame {
    /// The frame, if it has its name.
    pub fn named(&self) -> Option<&Frame> {
        match self {
            Self::Named(frame) => Some(frame),
            Self::Jit(_) | Self::Deferred(_) | Self::File(..) => None,
        }
    }
}

/// A stack whose JIT frames wait for their names. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingStack {
    /// The stack's frames, root first.
    pub frames: Arc<[PendingFrame]>,
    /// How the user half of the stack ended.
    pub end: StackEnd,
}

impl PendingStack {
    /// Whether anything waits for a map.
    pub fn waits(&self) -> bool {
        self.frames.iter().any(|f| matches!(f, PendingFrame::Jit(_)))
    }
    /// Whether a file of a frame was on its way when the stack was begun.
    pub fn waits_for_files(&self) -> bool {
        self.frames.iter().any(|f| matches!(f, PendingFrame::File(..)))
    }
    /// Whether any frame has no name yet, but for those of files.
    pub fn unnamed(&self) -> bool {
        self.frames.iter().any(|frame| match frame {
            PendingFrame::Named(_) | PendingFrame::File(..) => false,
            PendingFrame::Jit(_) => true,
            PendingFrame::Deferred(slot) => slot.get().is_none(),
        })
    }
}
