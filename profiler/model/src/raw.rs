//! Events as the kernel gave them: numbers and addresses, no names.

use super::{Pid, RawThread, SampleKind, StackEnd, Tid};
use profiler_ebpf::UserFrame;

/// One sample. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// When.
    pub time_ns: u64,
    /// How much, in the unit of `kind`.
    pub weight: u64,
    /// Key of its [`RawStack`].
    pub stack: u64,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU.
    pub cpu: u32,
    /// Sequence number of the thread's name; 0: never seen.
    pub name_seq: u32,
    /// What it counts.
    pub kind: SampleKind,
    /// It interrupted the kernel.
    pub kernel_mode: bool,
}

/// A wait that is over, or several short ones in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawWait {
    /// Its end, how long it lasted, where; everything else as it was at the beginning.
    pub sample: RawSample,
    /// When it began, or the first of them.
    pub began_ns: u64,
    /// Several.
    pub several: bool,
}

/// A stack of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStack {
    /// Key: hash over pid and frames.
    pub hash: u64,
    /// When it was taken, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Process it belongs to.
    pub pid: Pid,
    /// Kernel addresses, leaf first.
    pub kernel: Box<[u64]>,
    /// User frames, leaf first.
    pub user: Box<[UserFrame]>,
    /// How the user half ended.
    pub end: StackEnd,
    /// The process's runtime's: deferred frames mean the same as long as it is the same; 0: not known.
    pub generation: u64,
}

/// What happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// It replaced its program.
    Exec,
    /// It was made, by this process and thread.
    Fork {
        /// Making process.
        parent_pid: Pid,
        /// Making thread.
        parent_tid: Tid,
    },
    /// The thread ended.
    Exit,
}

/// exec, fork, exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTask {
    /// When, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// What.
    pub event: TaskEvent,
}

/// Anything that comes out of the ring buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEvent {
    /// A sample.
    Sample(RawSample),
    /// A wait that is over.
    Wait(RawWait),
    /// A stack, before the first sample of an epoch that has it.
    Stack(RawStack),
    /// exec, fork, exit.
    Task(RawTask),
    /// A thread was named or ended, or its accounts were asked for.
    Thread(RawThread),
    /// Code of a file was mapped at `[start, end)`.
    Mmap {
        /// When, CLOCK_MONOTONIC.
        time_ns: u64,
        /// Process.
        pid: Pid,
        /// First address.
        start: u64,
        /// One past the last.
        end: u64,
    },
}
