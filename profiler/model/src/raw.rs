//! Events as the kernel gave them: numbers and addresses, no names.

use super::{Pid, RawThread, SampleKind, StackEnd, Tid};
use profiler_ebpf::UserFrame;

/// One sample. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// When the sample was taken.
    pub time_ns: u64,
    /// How much the sample counts for, in the unit of `kind`.
    pub weight: u64,
    /// Key of the [`RawStack`]: its `hash`.
    pub stack: u64,
    /// Process that was sampled.
    pub pid: Pid,
    /// Thread that was sampled.
    pub tid: Tid,
    /// Number of the CPU.
    pub cpu: u32,
    /// Sequence number of the thread's name; 0: never seen.
    pub name_seq: u32,
    /// What the sample counts.
    pub kind: SampleKind,
    /// Of a named event its slot, of a disk's request a [`profiler_ebpf::BlockWay`]; else 0.
    pub slot: u16,
    /// Of a disk's request the disk, as the kernel numbers it; of an allocation the bytes of the object itself, `u32::MAX` where
    /// it has as many or more, 0 where that is not known; of a wait how many waits the sample sums up, at least 1; else 0.
    pub detail: u32,
    /// The sample interrupted the kernel.
    pub kernel_mode: bool,
}

/// A wait that is over, or several short ones in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawWait {
    /// The end of the wait, how long it lasted, where; everything else as it was at the beginning.
    pub sample: RawSample,
    /// When the wait began, or the first of several; nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// The sample sums up several waits.
    pub several: bool,
    /// The stack was walked for this wait, and not for another one.
    pub walked: bool,
}

/// A pause of a JVM that is over: its threads were stopped at a safepoint and went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPause {
    /// When it began, nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When it ended, nanoseconds of CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Address of the virtual table of its first operation, in the process; 0: not known.
    pub operation: u64,
    /// Process of the JVM.
    pub pid: Pid,
}

/// A stack of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStack {
    /// Key: hash over pid and frames.
    pub hash: u64,
    /// When the stack was taken, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Process whose stack this is.
    pub pid: Pid,
    /// Kernel addresses, leaf first.
    pub kernel: Box<[u64]>,
    /// User frames, leaf first.
    pub user: Box<[UserFrame]>,
    /// How the user half ended.
    pub end: StackEnd,
    /// Generation of the process's runtime: deferred frames mean the same as long as this is the same; 0: not known.
    pub generation: u64,
}

/// What happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// The process replaced its program.
    Exec,
    /// The task was made, by this process and thread.
    Fork {
        /// Process that made it.
        parent_pid: Pid,
        /// Thread that made it.
        parent_tid: Tid,
    },
    /// The task ended.
    Exit,
}

/// A task replaced its program, was made, or ended: exec, fork, exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTask {
    /// When that happened, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Process of the task.
    pub pid: Pid,
    /// Thread that the task is.
    pub tid: Tid,
    /// What happened to the task.
    pub event: TaskEvent,
}

/// Anything that comes out of the ring buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEvent {
    /// A sample.
    Sample(RawSample),
    /// A wait that is over.
    Wait(RawWait),
    /// A pause of a JVM that is over.
    Pause(RawPause),
    /// A stack, before the first sample of an epoch that has it.
    Stack(RawStack),
    /// A task replaced its program, was made, or ended.
    Task(RawTask),
    /// A thread was named or ended, or its accounts were asked for.
    Thread(RawThread),
    /// Code of a file was mapped at `[start, end)`.
    Mmap {
        /// When the file was mapped, nanoseconds of CLOCK_MONOTONIC.
        time_ns: u64,
        /// Process that mapped the file.
        pid: Pid,
        /// First address of the mapping.
        start: u64,
        /// One past the last address.
        end: u64,
    },
}
