//! Hostile memory: whatever an interpreter's memory holds, reading it ends, within bounds, with a value or a reason.

use super::check::check;
use super::code::Codes;
use super::debug_offsets;
use super::offsets::{KNOWN, Offsets};
use super::thread::Libraries;
use emberscope_target::memory::{Memory, ReadError};
use emberscope_target::text::MAX_NAME;
use profiler_ebpf::PythonLayout;
use proptest::prelude::*;
use std::cell::Cell;
use std::convert::Infallible;

/// Where the memory is mapped; everywhere else reads fail.
const BASE: u64 = 0x10_0000;

/// A piece of memory, repeated over a megabyte, whose words lead back into it.
#[derive(Debug)]
struct Hostile {
    bytes: Vec<u8>,
    reads: Cell<usize>,
}

impl Hostile {
    fn new(words: &[u64], inside: bool) -> Self {
        // Pointers that lead somewhere are the more interesting ones.
        let word =
            |word: &u64| if inside && !word.is_multiple_of(3) { BASE + word % (1 << 16) * 8 } else { *word };
        Self { bytes: words.iter().flat_map(|w| word(w).to_le_bytes()).collect(), reads: Cell::new(0) }
    }
}

impl Memory for Hostile {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        self.reads.set(self.reads.get() + 1);
        let at = address.checked_sub(BASE).filter(|at| *at < 1 << 20).ok_or(ReadError::Fault)?;
        for (nth, byte) in into.iter_mut().enumerate() {
            *byte = self.bytes[(at as usize + nth) % self.bytes.len()];
        }
        Ok(())
    }
}

fn memories() -> impl Strategy<Value = Hostile> {
    let words = proptest::collection::vec(prop_oneof![any::<u64>(), 0..8u64, Just(1u64 << 32 | 1)], 1..200);
    (words, any::<bool>()).prop_map(|(words, inside)| Hostile::new(&words, inside))
}

proptest! {
    #[test]
    fn layouts_end(memory in memories(), minor in KNOWN, runtime in 0..1u64 << 18, kind: u64) {
        let offsets = Offsets::of(minor).unwrap();
        let _ = check(&memory, (BASE + runtime * 8, kind, minor), &offsets, Libraries::UNTOLD);
        let _ = debug_offsets::told(&memory, BASE + runtime * 8, minor, offsets);
        // A key may be searched in all of `_PyRuntime`, each time with some reads of 64 threads.
        prop_assert!(memory.reads.get() < 2_000_000);
    }

    #[test]
    fn names_are_bounded(memory in memories(), minor in KNOWN, code in 0..1u64 << 17, unit: u64) {
        let offsets = Offsets::of(minor).unwrap();
        let code = BASE + code * 8;
        let word = |offset: u16| memory.u64(code + u64::from(offset)).unwrap_or(0);
        // So that it passes for a code object.
        let Ok(fields) = offsets.fields(|at| Ok::<_, Infallible>(word(at)));
        let codes = Codes { memory: &memory, code_type: word(PythonLayout::TYPE as u16), offsets: &offsets };
        if let Ok(Some(code)) = codes.read(code, fields.checksum()) {
            prop_assert!(code.name.len() <= MAX_NAME + 3 && code.file.len() <= 4096 + 3);
            prop_assert!(!code.name.chars().any(char::is_control));
        }
        codes.line(code, fields.checksum(), unit);
        prop_assert!(codes.read(code, !fields.checksum()).is_err());
        prop_assert!(memory.reads.get() < 100);
    }
}
