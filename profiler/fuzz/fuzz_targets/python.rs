//! The reader of an interpreter's structures, code objects and tables of lines, on any memory: no panic, no hang, names of
//! bounded length. The input is the memory; an address's lower 16 bits say where in it, so that most pointers lead
//! somewhere. Its first byte says which release.
#![cfg_attr(fuzzing, no_main)]

use emberscope_cpython::{Codes, Libraries, Offsets, check, told};
use emberscope_target::memory::{Memory, ReadError};
use emberscope_target::text::MAX_NAME;
use libfuzzer_sys::fuzz_target;
use std::convert::Infallible;

struct Input<'a>(&'a [u8]);

impl Memory for Input<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let start = (address & 0xffff) as usize;
        // Whole pages can be read, as in a process.
        if start + into.len() > self.0.len().next_multiple_of(4096) {
            return Err(ReadError::Fault);
        }
        for (to, at) in into.iter_mut().zip(start..) {
            *to = self.0.get(at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let memory = Input(bytes);
    let minor = 8 + bytes.first().copied().unwrap_or(0) % 7;
    let Some(table) = Offsets::of(minor) else { return };
    let offsets = told(&memory, 0, minor, table.clone()).unwrap_or(table);
    let _ = check(&memory, (0, 1, minor), &offsets, Libraries::UNTOLD);
    // Code objects that pass for sound: their checksum is what it is.
    for code in (0..256u64).step_by(64) {
        let word = |offset: u16| memory.u64(code + u64::from(offset)).unwrap_or(0);
        let Ok(fields) = offsets.fields(|at| Ok::<_, Infallible>(word(at)));
        let codes = Codes { memory: &memory, code_type: word(8), offsets: &offsets };
        if let Ok(Some(read)) = codes.read(code, fields.checksum()) {
            assert!(read.name.len() <= MAX_NAME + 3 && read.file.len() <= 4096 + 3);
        }
        let _ = codes.line(code, fields.checksum(), code);
    }
});
