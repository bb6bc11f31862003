//! Stacks as keys of a table: by the addresses of their frames.
//!
//! Frames are interned, so two stacks are equal when their frames lie at the same addresses; comparing
//! addresses spares hashing every name of a deep stack for every stack that comes up. The table is asked
//! with borrowed frames, so that a stack that is known costs no allocation.

use emberscope_model::{Frame, Stack, StackEnd};
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What makes a stack: the addresses of its frames, and how it ended.
pub(super) trait StackKey {
    fn parts(&self) -> (&[Arc<Frame>], StackEnd);
}

impl StackKey for (&[Arc<Frame>], StackEnd) {
    fn parts(&self) -> (&[Arc<Frame>], StackEnd) {
        (self.0, self.1)
    }
}

/// An entry of the table of stacks. It holds the frames, so their addresses stay theirs.
#[derive(Debug)]
pub(super) struct StackEntry(pub(super) Arc<Stack>);

impl StackKey for StackEntry {
    fn parts(&self) -> (&[Arc<Frame>], StackEnd) {
        (&self.0.frames, self.0.end)
    }
}

impl<'a> Borrow<dyn StackKey + 'a> for StackEntry {
    fn borrow(&self) -> &(dyn StackKey + 'a) {
        self
    }
}

impl Hash for dyn StackKey + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (frames, end) = self.parts();
        for frame in frames {
            (Arc::as_ptr(frame) as usize).hash(state);
        }
        (frames.len(), end).hash(state);
    }
}

impl PartialEq for dyn StackKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        let ((a, a_end), (b, b_end)) = (self.parts(), other.parts());
        a_end == b_end && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Eq for dyn StackKey + '_ {}

impl Hash for StackEntry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn StackKey).hash(state);
    }
}

impl PartialEq for StackEntry {
    fn eq(&self, other: &Self) -> bool {
        (self as &dyn StackKey) == (other as &dyn StackKey)
    }
}

impl Eq for StackEntry {}
