//! The reader of a JVM's tables, threads and strings, on any memory: no panic, no hang, names of bounded
//! length. The input is the memory; an address's lower 16 bits say where in it, so that most pointers lead
//! somewhere. Its first 160 bytes are what the exported symbols point to.
#![cfg_attr(fuzzing, no_main)]

use emberscope_hotspot::View;
use emberscope_hotspot::vm_structs::{SYMBOLS, VmStructs};
use emberscope_target::memory::{Memory, Pages, ReadError};
use libfuzzer_sys::fuzz_target;

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
    let address_of = |name: &str| SYMBOLS.iter().position(|s| *s == name).map(|at| 8 * at as u64);
    let plain = VmStructs::read(&memory, &address_of);
    let paged = VmStructs::read(&Pages::of(&memory), &address_of);
    if let (Ok(plain), Ok(paged)) = (plain, paged) {
        assert_eq!(plain.len(), paged.len());
    }
    if let Ok(view) = View::read(&memory, &address_of) {
        let _ = view.string_layout(&memory);
        let _ = (view.owner(&memory, 0x40), view.anonymous_owner(&memory, 0x40));
        if let Ok(all) = view.threads(&memory) {
            assert!(all.threads.iter().all(|t| t.name.len() <= 256));
        }
    }
});
