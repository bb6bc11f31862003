//! How many classes a JVM has unloaded: what tells whether a `Method*` can be another's by now. And how much it has
//! compiled: what tells whether there can be other code at an address.
//!
//! In: the JVM's performance counters, in its own memory (perfMemory.hpp, perfData.hpp: a prologue, then entries,
//! little endian on x86-64; JDK 8 to 25). Out: the count, which is read with each stack and again with its names. The
//! count goes up before any memory of the class is freed (`ClassLoadingService::notify_class_unloaded`). With
//! `-XX:-UsePerfData` there is none, and nothing is known.

use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, at};

const UNLOADS: &[u8] = b"java.cls.unloadedClasses";
/// Goes up when a compilation has ended (`CompileBroker::collect_statistics`).
const COMPILES: &[u8] = b"sun.ci.totalCompiles";
/// `PERFDATA_MAGIC` as its bytes lie.
const MAGIC: u32 = u32::from_le_bytes([0xca, 0xfe, 0xc0, 0xc0]);
/// JDK 25 has 250 to 400 counters.
const MAX_ENTRIES: u32 = 4096;
/// Counters take 32 KB (`PerfDataMemorySize`).
const MAX_BYTES: u64 = 1 << 20;

/// The count of one JVM, as it was read last.
#[derive(Debug, Default)]
pub struct Unloads {
    counter: Option<u64>,
    count: Option<u64>,
}

impl Unloads {
    /// Finds the counter; a JVM without it is fine.
    pub fn find<M: Memory>(memory: &M, vm: &VmStructs) -> Self {
        Self { counter: Counters::find(memory, vm).unloads, count: None }
    }

    /// The count of a counter that is there.
    #[cfg(test)]
    pub fn at(counter: u64) -> Self {
        Self { counter: Some(counter), count: None }
    }

    /// Reads the count. True when it is not what it was.
    pub fn read<M: Memory>(&mut self, memory: &M) -> bool {
        let count = self.counter.and_then(|counter| memory.u64(counter).ok());
        std::mem::replace(&mut self.count, count) != count
    }

    /// Whether there is such a count.
    pub fn is_known(&self) -> bool {
        self.count.is_some()
    }

    /// Whether the count is what it was when a stack was recorded, as [`profiler_ebpf::StackRecord`] has it.
    pub fn is(&self, recorded: u64) -> bool {
        self.count.is_some_and(|count| count.wrapping_add(1) == recorded)
    }
}

/// Where a JVM keeps its counts, 8 bytes each; None where it has no such count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Address of the count of classes that the JVM has unloaded.
    pub unloads: Option<u64>,
    /// Address of the count of compilations that have ended.
    pub compiles: Option<u64>,
}

impl Counters {
    /// Looks for the counters; a JVM without any is fine.
    pub fn find<M: Memory>(memory: &M, vm: &VmStructs) -> Self {
        let mut found = Self::default();
        // What was found before an entry that cannot be read is right.
        let _ = found.look(memory, vm);
        found
    }

    fn look<M: Memory>(&mut self, memory: &M, vm: &VmStructs) -> Result<(), JvmProblem> {
        let start =
            vm.address("PerfMemory::_start").ok_or(JvmProblem::Missing("its performance counters"))?;
        let start = memory.u64(start)?;
        if start == 0 || memory.u32(start)? != MAGIC {
            return Ok(());
        }
        let used = u64::from(memory.u32(at(start, 8)?)?).min(MAX_BYTES);
        let (mut offset, entries) = (u64::from(memory.u32(at(start, 24)?)?), memory.u32(at(start, 28)?)?);
        for _ in 0..entries.min(MAX_ENTRIES) {
            let entry = at(start, offset)?;
            let length = u64::from(memory.u32(entry)?);
            if length < 20 || offset + length > used {
                return Ok(());
            }
            let (name_at, data_at) =
                (u64::from(memory.u32(at(entry, 4)?)?), u64::from(memory.u32(at(entry, 16)?)?));
            if name_at < length && data_at + 8 <= length {
                let name = memory.c_string(at(entry, name_at)?, UNLOADS.len())?;
                let place = match name.as_deref() {
                    Some(UNLOADS) => Some(&mut self.unloads),
                    Some(COMPILES) => Some(&mut self.compiles),
                    _ => None,
                };
                if let Some(place) = place {
                    place.get_or_insert(entry + data_at);
                }
            }
            if self.unloads.is_some() && self.compiles.is_some() {
                return Ok(());
            }
            offset += length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_target::memory::ReadError;
    use std::cell::Cell;

    struct One(Cell<u64>);
    impl Memory for One {
        fn read(&self, _: u64, into: &mut [u8]) -> Result<(), ReadError> {
            into.copy_from_slice(&self.0.get().to_le_bytes());
            Ok(())
        }
    }

    #[test]
    fn the_count_of_a_stack_and_the_one_of_now() {
        let (memory, mut unloads) = (One(Cell::new(0)), Unloads { counter: Some(8), count: None });
        assert!(unloads.read(&memory) && unloads.is(1) && !unloads.is(0), "0 is not known");
        assert!(!unloads.read(&memory));
        memory.0.set(3);
        assert!(unloads.read(&memory) && unloads.is(4) && !unloads.is(1));
        let mut unknown = Unloads::default();
        assert!(!unknown.read(&memory) && !unknown.is_known() && !unknown.is(0) && !unknown.is(1));
    }
}
