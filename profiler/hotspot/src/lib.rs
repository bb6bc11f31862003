//! HotSpot read from outside, without its help: a JVM's process in, facts about it out.
//!
//! [`Jvm`] finds the libjvm.so of a process, says where in that file a thread's renaming can be seen
//! ([`emberscope_model::NameProbe`]), and reads, from the JVM's memory alone, its threads with their names and how it
//! lays out Strings. Works on JDK 8 to 25 and every collector, by what vmStructs tells; asks nothing of the JVM,
//! stops nothing, writes nothing. What cannot be read is a [`JvmProblem`], never a guess. Reads may wait
//! for the target's memory, at most a second unless that lies on a file system of its own making: give
//! them a thread of their own.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod code_layout;
#[cfg(test)]
mod fake;
mod fields;
mod flags;
mod heap;
mod libjvm;
mod names;
mod operations;
mod probe_place;
mod problem;
mod runtime;
mod strings;
mod stub_fields;
#[cfg(test)]
mod tests;
mod threads;
mod tids;
mod unloads;
pub mod vm_structs;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as slots;
#[cfg(target_arch = "x86_64")]
use x86_64 as slots;

pub use code_layout::layout;
use emberscope_model::{StringLayout, Tid};
use emberscope_target::memory::{Pages, ProcessMemory};
use emberscope_target::open;
use emberscope_target::same_process;
pub use libjvm::{Libjvm, LibjvmFiles};
pub use names::java_text::{array as array_name, class as class_name, fold, plain as plain_name, signature};
pub use names::{Batch, JavaFrame, JvmFacts, Limits, Namer, NamerCounts, Texts, Unnamed};
pub use problem::JvmProblem;
pub use runtime::HotSpot;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
pub use threads::{JavaThread, Snapshot, View};
pub use unloads::Counters;
use vm_structs::VmStructs;

/// The Java threads of a JVM, by their ids here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadNames {
    /// Threads and what Java calls them, as far as `profiler_ebpf::MAX_NAME` bytes reach; any characters.
    pub names: Vec<(Tid, String)>,
    /// Threads whose name could not be read soundly at this moment.
    pub unreadable: u32,
}

/// A JVM's process, opened once.
#[derive(Debug)]
pub struct Jvm {
    /// The directory `/proc/PID`: stays with the process, whoever gets its pid later.
    dir: OwnedFd,
    libjvm: Libjvm,
    /// Memory of the address space that the process had when it was first needed.
    memory: OnceLock<ProcessMemory>,
}

impl Jvm {
    /// Finds the libjvm.so of the process in `process_dir` (`/proc/PID`) that began at `start_ticks` (0: whichever it
    /// is). Reads none of the process's memory.
    ///
    /// # Errors
    /// [`JvmProblem::Gone`]: the process ended, or another has its pid. Else as [`Libjvm::find`].
    pub fn open(process_dir: &Path, start_ticks: u64, files: &LibjvmFiles) -> Result<Self, JvmProblem> {
        let dir = open::root(process_dir)?;
        let path = path_of(&dir);
        if !same_process(&path, start_ticks) {
            return Err(JvmProblem::Gone);
        }
        let libjvm = Libjvm::find(process_dir, &path, files)?;
        Ok(Self { dir, libjvm, memory: OnceLock::new() })
    }

    /// The libjvm.so of the process.
    pub fn libjvm(&self) -> &Libjvm {
        &self.libjvm
    }

    /// The process's memory. Once the process runs another program, nothing can be read of it.
    ///
    /// # Errors
    /// [`JvmProblem::Gone`]: the process ended. [`JvmProblem::Denied`]: that takes CAP_SYS_PTRACE.
    /// [`JvmProblem::Exhausted`]: no descriptor or no memory is left. [`JvmProblem::Nonsense`]: any other error of
    /// opening it.
    pub fn memory(&self) -> Result<&ProcessMemory, JvmProblem> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let memory = ProcessMemory::open(&path_of(&self.dir))?;
        Ok(self.memory.get_or_init(|| memory))
    }

    /// The JVM's threads and their names, as they are now.
    ///
    /// # Errors
    /// As [`View::read`] and [`View::threads`]. [`JvmProblem::Gone`], [`JvmProblem::File`]: the kernel's list of
    /// threads cannot be read. [`JvmProblem::Nonsense`]: most of the threads are none that the kernel knows.
    pub fn thread_names(&self) -> Result<ThreadNames, JvmProblem> {
        let path = path_of(&self.dir);
        let snapshot = self.view()?.threads(self.memory()?)?;
        let ours = tids::by_own_id(&path)?;
        let (mut unreadable, mut known, mut ended) = (snapshot.unreadable, 0, 0);
        let mut names = Vec::new();
        for thread in snapshot.threads {
            let Some(tid) = ours.get(&thread.tid) else {
                ended += 1;
                continue;
            };
            known += 1;
            if !thread.unsure || tids::kernel_agrees(&path, *tid, &thread.name) {
                names.push((*tid, thread.name));
            } else {
                unreadable += 1;
            }
        }
        // A pool's threads may end at once, but those that stay are more.
        if ended > 64 + known {
            return Err(JvmProblem::Nonsense("its threads are not those that the kernel knows"));
        }
        Ok(ThreadNames { names, unreadable })
    }

    /// How the JVM lays out Strings.
    ///
    /// # Errors
    /// As [`View::read`] and [`View::string_layout`].
    pub fn string_layout(&self) -> Result<StringLayout, JvmProblem> {
        self.view()?.string_layout(self.memory()?)
    }

    /// Hands the JVM's memory and its description of itself to `read`. The tables are read anew each time, some
    /// milliseconds: they take more memory than is worth keeping.
    ///
    /// # Errors
    /// As [`Self::memory`] and [`VmStructs::read`], and what `read` fails with.
    pub fn with<T>(
        &self,
        read: impl FnOnce(&ProcessMemory, &VmStructs) -> Result<T, JvmProblem>,
    ) -> Result<T, JvmProblem> {
        let memory = self.memory()?;
        let vm = VmStructs::read(&Pages::of(memory), &|symbol| self.libjvm.address(symbol))?;
        read(memory, &vm)
    }

    /// Makes what names the JVM's frames.
    ///
    /// # Errors
    /// As [`Self::memory`], [`VmStructs::read`] and [`Namer::read`].
    pub fn namer(&self, limits: Limits) -> Result<Namer, JvmProblem> {
        let pages = Pages::of(self.memory()?);
        let vm = VmStructs::read(&pages, &|symbol| self.libjvm.address(symbol))?;
        Ok(Namer::read(&pages, &vm, limits)?.with_stubs(self.libjvm.stubs()))
    }

    /// Where the JVM's threads and their names are. Read anew each time, as the tables are.
    fn view(&self) -> Result<View, JvmProblem> {
        View::read(self.memory()?, &|symbol| self.libjvm.address(symbol))
    }
}

fn path_of(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}
