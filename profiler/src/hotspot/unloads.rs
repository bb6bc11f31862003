//! How many classes a JVM has unloaded: what tells whether a `Method*` can be another's by now.
//!
//! In: the JVM's performance counters, in its own memory (perfMemory.hpp, perfData.hpp: a prologue, then entries,
//! little endian on x86-64; JDK 8 to 25). Out: the count, and since when it has been that. The counter goes up
//! before any memory of the class is freed (`ClassLoadingService::notify_class_unloaded`). With
//! `-XX:-UsePerfData` there is none, and nothing is known.

use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use crate::target::memory::{Memory, ReadError, at};

const NAME: &[u8] = b"java.cls.unloadedClasses";
/// `PERFDATA_MAGIC` as its bytes lie.
const MAGIC: u32 = u32::from_le_bytes([0xca, 0xfe, 0xc0, 0xc0]);
/// JDK 25 has 250 to 400 counters.
const MAX_ENTRIES: u32 = 4096;
/// Counters take 32 KB (`PerfDataMemorySize`).
const MAX_BYTES: u64 = 1 << 20;

/// The count of one JVM.
#[derive(Debug, Default)]
pub struct Unloads {
    counter: Option<u64>,
    count: Option<u64>,
    /// CLOCK_MONOTONIC, nanoseconds.
    since_ns: u64,
}

impl Unloads {
    /// Finds the counter; a JVM without it is fine.
    pub fn find<M: Memory>(memory: &M, vm: &VmStructs) -> Self {
        Self { counter: counter(memory, vm).ok().flatten(), ..Self::default() }
    }

    /// Reads it. True when the count is not what it was. `now` is asked afterwards.
    pub fn read<M: Memory>(&mut self, memory: &M, now: impl FnOnce() -> u64) -> bool {
        let count = self.counter.and_then(|counter| memory.u64(counter).ok());
        if count == self.count {
            return false;
        }
        // Nothing was ever unloaded: so it has been from the start.
        self.since_ns = if count == Some(0) { 0 } else { now() };
        self.count = count;
        true
    }

    /// Whether there is such a count.
    pub fn is_known(&self) -> bool {
        self.count.is_some()
    }

    /// Nothing was unloaded from this instant to the last [`Unloads::read`]; true where nobody knows.
    pub fn none_since(&self, ns: u64) -> bool {
        self.count.is_none() || self.since_ns <= ns
    }
}

fn counter<M: Memory>(memory: &M, vm: &VmStructs) -> Result<Option<u64>, JvmProblem> {
    let start = vm.address("PerfMemory::_start").ok_or(JvmProblem::Missing("its performance counters"))?;
    let start = memory.u64(start)?;
    if start == 0 || memory.u32(start)? != MAGIC {
        return Ok(None);
    }
    let used = u64::from(memory.u32(at(start, 8)?)?).min(MAX_BYTES);
    let (mut offset, entries) = (u64::from(memory.u32(at(start, 24)?)?), memory.u32(at(start, 28)?)?);
    for _ in 0..entries.min(MAX_ENTRIES) {
        let entry = at(start, offset)?;
        let length = u64::from(memory.u32(entry)?);
        if length < 20 || offset + length > used {
            return Ok(None);
        }
        let (name_at, data_at) =
            (u64::from(memory.u32(at(entry, 4)?)?), u64::from(memory.u32(at(entry, 16)?)?));
        if name_at < length && data_at + 8 <= length && is_name(memory, at(entry, name_at)?)? {
            return Ok(Some(entry + data_at));
        }
        offset += length;
    }
    Ok(None)
}

fn is_name<M: Memory>(memory: &M, address: u64) -> Result<bool, ReadError> {
    Ok(memory.c_string(address, NAME.len())?.is_some_and(|name| name == NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct One(Cell<u64>);
    impl Memory for One {
        fn read(&self, _: u64, into: &mut [u8]) -> Result<(), ReadError> {
            into.copy_from_slice(&self.0.get().to_le_bytes());
            Ok(())
        }
    }

    #[test]
    fn since_when_nothing_was_unloaded() {
        let (memory, mut unloads) = (One(Cell::new(0)), Unloads { counter: Some(8), ..Unloads::default() });
        assert!(unloads.read(&memory, || 50));
        assert!(unloads.none_since(0), "nothing ever was");
        memory.0.set(3);
        assert!(unloads.read(&memory, || 70));
        assert!(!unloads.none_since(69) && unloads.none_since(70));
        assert!(!unloads.read(&memory, || 90));
        assert!(unloads.none_since(70), "still the same");
        let mut unknown = Unloads::default();
        assert!(!unknown.read(&memory, || 1) && unknown.none_since(0) && !unknown.is_known());
    }
}
