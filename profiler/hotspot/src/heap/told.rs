//! What the kernel program is told of a heap.

use super::{ClassWord, Heap, References};
use profiler_ebpf::{ClassWordKind, LockLayout};

impl References {
    /// What narrow references count from, their shift, and 1; of others all zero.
    pub fn narrow(self) -> (u64, u8, u8) {
        match self {
            Self::Narrow { base, shift } => (base, shift, 1),
            Self::Wide | Self::Mapped | Self::Coloured => (0, 0, 0),
        }
    }
}

impl Heap {
    /// The layout of locks with what it has of the heap: how references and classes are told. None where something is out of
    /// bounds.
    pub fn told(&self, layout: LockLayout) -> Option<LockLayout> {
        let (base, shift, narrow) = self.references.narrow();
        let (kind, word, class_from, class_base, class_shift) = match self.class_word {
            ClassWord::Pointer { offset } => (ClassWordKind::Pointer, offset, 0, 0, 0),
            ClassWord::Narrow { offset, base, shift } => (ClassWordKind::Narrow, offset, 0, base, shift),
            ClassWord::InMark { from, base, shift } => (ClassWordKind::InMark, 0, from, base, shift),
        };
        // The first field of an object stands behind its header, where its size allows (fieldLayoutBuilder.cpp).
        let (header, size) = (u64::from(self.array_length_offset), if narrow == 1 { 4 } else { 8 });
        Some(LockLayout {
            base,
            class_base,
            bad_mask: self.bad_mask,
            exclusive_owner: u16::try_from(header.next_multiple_of(size)).ok()?,
            class_word: u16::try_from(word).ok()?,
            class_kind: kind as u8,
            class_shift,
            class_from,
            narrow,
            shift,
            coloured: u8::from(self.references == References::Coloured),
            ..layout
        })
    }
}
