//! What the kernel's walker must know of a process, as bytes of the runtime's map.
//!
//! All layouts begin with a [`profiler_ebpf::RuntimeHead`], so that the incarnation can be written without knowing the
//! rest.

use profiler_ebpf::{RuntimeHead, RuntimeId};

/// A layout without an incarnation. Two are equal when the walker would do the same by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The runtime whose map it is for.
    pub runtime: RuntimeId,
    bytes: Box<[u8]>,
}

impl Layout {
    /// From the bytes of a runtime's layout; what they have as incarnation is not kept.
    pub fn new(runtime: RuntimeId, bytes: &[u8]) -> Self {
        let mut layout = Self { runtime, bytes: bytes.into() };
        layout.number(0);
        layout
    }

    /// The bytes for the map, with this incarnation.
    pub fn bytes(&self, incarnation: u32) -> Box<[u8]> {
        let mut numbered = self.clone();
        numbered.number(incarnation);
        numbered.bytes
    }

    fn number(&mut self, incarnation: u32) {
        let at = RuntimeHead::INCARNATION_AT;
        if let Some(place) = self.bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&incarnation.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_layouts_differ_by_their_number_only() {
        let bytes = [7u8; 40];
        let (one, other) = (Layout::new(RuntimeId(9), &bytes), Layout::new(RuntimeId(9), &bytes));
        assert_eq!(one, other);
        let (first, second) = (one.bytes(1), one.bytes(2));
        assert_ne!(first, second);
        assert_eq!(Layout::new(RuntimeId(9), &first), Layout::new(RuntimeId(9), &second));
        assert_eq!(first.iter().filter(|byte| **byte != 7).count(), 4);
        Layout::new(RuntimeId(9), &[1, 2]).bytes(3);
    }
}
