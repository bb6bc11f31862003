//! Where a JVM's Java threads are: its list, an array or linked.

use super::MAX_TRIES;
use crate::problem::JvmProblem;
use crate::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, ReadError, at};
use std::collections::HashSet;

/// Threads that are read of one JVM.
const MAX_THREADS: usize = 16_384;

#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Array { list: u64, length: u64, threads: u64 },
    Linked { first: u64, next: u64 },
}

impl List {
    /// By the tables; None where they tell of neither.
    pub(super) fn of(vm: &VmStructs) -> Option<Self> {
        let array = || {
            Some(Self::Array {
                list: vm.address("ThreadsSMRSupport::_java_thread_list")?,
                length: vm.offset("ThreadsList::_length")?,
                threads: vm.offset("ThreadsList::_threads")?,
            })
        };
        let linked = || {
            let (first, next) = (vm.address("Threads::_thread_list")?, vm.offset("JavaThread::_next")?);
            Some(Self::Linked { first, next })
        };
        array().or_else(linked)
    }

    /// Addresses of all JavaThreads.
    pub(super) fn read<M: Memory>(&self, memory: &M) -> Result<Vec<u64>, JvmProblem> {
        match *self {
            Self::Array { list, length, threads } => {
                let mut last = Err(JvmProblem::NotReady);
                for _ in 0..MAX_TRIES {
                    let now = memory.u64(list)?;
                    if now == 0 {
                        return Err(JvmProblem::NotReady);
                    }
                    last = array(memory, now, length, threads);
                    // A list that was replaced meanwhile is freed, its memory anything.
                    if last.is_ok() && memory.u64(list)? == now {
                        break;
                    }
                }
                last
            }
            Self::Linked { first, next } => {
                let (mut all, mut seen) = (Vec::new(), HashSet::new());
                let mut thread = memory.u64(first)?;
                while thread != 0 && all.len() < MAX_THREADS && seen.insert(thread) {
                    all.push(thread);
                    thread = match at(thread, next).and_then(|link| memory.u64(link)) {
                        Ok(next) => next,
                        // It ended and its memory was given back: the rest is seen the next time.
                        Err(ReadError::Fault) => break,
                        Err(error) => return Err(error.into()),
                    };
                }
                Ok(all)
            }
        }
    }
}

fn array<M: Memory>(memory: &M, list: u64, length: u64, threads: u64) -> Result<Vec<u64>, JvmProblem> {
    let count = memory.u32(at(list, length)?)? as usize;
    if count > MAX_THREADS {
        return Err(JvmProblem::Nonsense("too many threads"));
    }
    let first = memory.u64(at(list, threads)?)?;
    let mut bytes = vec![0; 8 * count];
    memory.read(first, &mut bytes)?;
    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
    Ok(words.map(u64::from_le_bytes).filter(|thread| *thread != 0).collect())
}
