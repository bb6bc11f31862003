//! The kernel boundary: what the BPF programs write and the daemon reads.
//!
//! One set of types for both sides: `repr(C)`, integers only, padding written out, sizes asserted at
//! compile time. Everything the programs send goes up through one ring buffer (`EVENTS`), each record opening with a
//! [`RecordHeader`]. Numbers here are stable: a reason or kind is never renumbered, new ones are
//! appended.
#![no_std]

mod allocation;
pub mod arch;
mod cause;
mod counter;
mod party;
mod pause;
mod reason;
mod record;
mod runtime;
mod share;
mod table;
mod tag;
mod waiter;

pub use allocation::{AllocPlace, Allocation, Told, allocation_weight, object_bytes};
pub use cause::{Alike, CAUSES, Cause, LENGTHS, LONG_NS, REFRESH_NS, length_of, together_ns};
pub use counter::{COUNTER_SLOTS, Counter, DROP_SLOTS};
pub use party::{MAX_PARTIES, MAX_SPARK_PYTHONS, MAX_TASK_THREADS, Party, PartyKind, TaskThread};
pub use pause::{MAX_PAUSES_A_SECOND, Standing};
pub use reason::{DropReason, StackEnd};
pub use record::{
    BoundRecord, PauseRecord, RecordHeader, RecordKind, SampleRecord, StackRecord, TaskRecord, ThreadRecord,
    UserFrame, WaitRecord,
};
#[cfg(emberscope_arch = "aarch64")]
pub use runtime::hotspot_arm64;
pub use runtime::{
    BufferLayout, ClassWordKind, CodeFields, CodeHeap, EvalRange, Field, FieldKind, Grouping,
    InstructionKind, JavaFrameTag, JvmLayout, LockLayout, MAX_BLOB_HEAD, MAX_CODE_HEAPS, MAX_EVAL_RANGES,
    MAX_NATIVE_BESIDE_PYTHON, MAX_PYTHON_CODE, MAX_PYTHON_FRAME, OWNER_ID_BITS, PythonFrameTag, PythonLayout,
    PythonPlace, RuntimeHead, RuntimeId, StringLayout,
};
pub use share::{
    GROUPS_AT, Loss, MAX_NAMES_OF_USER, MAX_SPARK_USERS, SHARE_SETS, SHARE_SLOTS, SHARE_WAYS, SPARK_WEIGHT,
    Share, TOTAL_AT,
};
pub use table::{
    CfaRule, CodeRange, FpRule, GRANULE_WORDS, MAX_RANGES, MAX_RULES, MAX_SLABS, MAX_TABLED, NoTable,
    PAGE_SHIFT, ProcessTables, RULE_BITS, ReturnRule, SLAB_GRANULES, SLAB_WORDS, STAMP_WORDS, UnwindRule,
    row,
};
pub use tag::{BlockWay, SampleKindTag};
pub use waiter::{ANEW_NS, FILTER_SLOTS, MAX_WAITERS, Throttled, Waiter, WaiterState, filter_slot};

/// Deepest user stack the kernel keeps, in physical frames. A longer one ends with
/// [`StackEnd::DepthLimit`].
pub const MAX_USER_FRAMES: usize = 512;

/// The same with the functions of Python behind the physical frames: CPython lets a program recurse a thousand calls deep
/// (`sys.getrecursionlimit()`), and half of that is seen in programs that work.
pub const MAX_FRAMES_WITH_PYTHON: usize = 1_024;

/// Deepest user stack on a kernel without `bpf_loop` (before 5.17), where the walk is a bounded loop
/// that the verifier unrolls.
pub const MAX_USER_FRAMES_BOUNDED: usize = 127;

/// Deepest kernel stack, in frames: `kernel.perf_event_max_stack` is 127 unless someone changed it.
pub const MAX_KERNEL_FRAMES: usize = 127;

/// Longest thread name kept, in bytes; Spark's own stay below it.
pub const MAX_NAME: usize = 256;

/// Threads whose names are kept, at most, on the whole node. HotSpot names all its threads: some 50 a JVM, some
/// hundreds in a large executor, so that this is 100 executors of 300, where they are several users'; one user has three
/// quarters (see [`Share`]). 2.8 MiB: 72 bytes an entry, 16 a bucket.
pub const MAX_THREADS: u32 = 32_768;

/// Events that a user may name: each has its own programs.
pub const MAX_NAMED_EVENTS: u32 = 4;

/// Requests of disks that are out and sampled, at most.
pub const MAX_BLOCK_REQUESTS: u32 = 4096;

/// Threads of JVMs whose allocations are added up, at most: those that take a buffer now and then. 0.8 MiB.
pub const MAX_ALLOCATING: u32 = 8192;

/// Nanoseconds between two samples of one tracepoint on one CPU, at least: a thousand a second.
pub const NAMED_GAP_NS: u64 = 1_000_000;

/// Names of one thread that are told in a second (of 2^30 ns), at most. Spark gives a thread two for each
/// task, so that this is tasks of 2 ms. [`MAX_NAMES_OF_USER`] is for all threads of a user.
pub const MAX_NAMES_A_SECOND: u64 = 1000;

/// What is kept of a thread: its name's number, and how many names it had in which second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState(pub u64);

impl ThreadState {
    /// Number of its name.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
    /// Names it had in the second of `now_ns`, CLOCK_MONOTONIC.
    pub const fn names_in(self, now_ns: u64) -> u64 {
        if self.0 >> 42 == Self::second(now_ns) { self.0 >> 32 & 0x3ff } else { 0 }
    }
    /// The state after one more name, of this number.
    pub const fn named(self, number: u32, now_ns: u64) -> Self {
        let names = self.names_in(now_ns);
        let names = if names < 0x3ff { names + 1 } else { names };
        Self(Self::second(now_ns) << 42 | names << 32 | number as u64)
    }
    const fn second(now_ns: u64) -> u64 {
        now_ns >> 30 & 0x3f_ffff
    }
}

/// Processes that are watched, at most, in two tables. 180 KiB.
pub const MAX_WATCHED: u32 = 1024;

/// JVMs whose layout is kept, at most, on the whole node. 350 KiB.
pub const MAX_JVMS: u32 = 1024;

/// Interpreters whose layout is kept, at most, on the whole node: a PySpark executor has one a core. 560 KiB.
pub const MAX_PYTHONS: u32 = 4096;

/// Length of an epoch, in nanoseconds of CLOCK_MONOTONIC: a stack is sent once an epoch, and the
/// daemon may forget a stack that was not sent for two epochs.
pub const EPOCH_NS: u64 = 10_000_000_000;
