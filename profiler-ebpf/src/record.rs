//! The records of the ring buffer. All integers in native byte order; times are nanoseconds of
//! CLOCK_MONOTONIC (`bpf_ktime_get_ns`); pids and tids are those of the initial PID namespace.

use crate::{RuntimeId, TaskThread};

/// What a record is; the first field of each.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A [`SampleRecord`].
    Sample = 1,
    /// A [`StackRecord`], then its frames.
    Stack = 2,
    /// A [`TaskRecord`]: a process replaced its program.
    Exec = 3,
    /// A [`TaskRecord`]: a process or thread was made.
    Fork = 4,
    /// A [`TaskRecord`]: a thread ended; the process too when `tid == pid` and no other is left.
    Exit = 5,
    /// A [`ThreadRecord`], then the name's bytes: a thread named itself.
    ThreadNamed = 6,
    /// A [`ThreadRecord`]: a thread that was named, or of a watched process, ended.
    ThreadEnded = 7,
    /// A [`ThreadRecord`]: a thread of a watched process, in answer to a request for all.
    ThreadAsked = 8,
    /// A [`BoundRecord`]: a PySpark worker works for another task than before.
    WorkerBound = 9,
    /// A [`WaitRecord`]: a thread stood still.
    Wait = 10,
    /// A [`PauseRecord`]: a JVM stopped its threads and let them go on.
    Pause = 11,
}

/// The head of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// A [`RecordKind`].
    pub kind: u16,
    /// Free for the kind; 0 unless its record says otherwise.
    pub flags: u16,
    /// Bytes of the whole record, this header included.
    pub len: u32,
}

/// One sample. Its stack is named by hash; the stack itself came up in a [`StackRecord`], earlier in
/// the ring and at most two epochs ago.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRecord {
    /// kind = Sample; flags bit 0: the sample hit kernel mode.
    pub header: RecordHeader,
    /// When.
    pub time_ns: u64,
    /// How much, in the unit of `sample_kind`.
    pub weight: u64,
    /// Hash of the stack (pid and all frames), the key of the [`StackRecord`].
    pub stack: u64,
    /// Process (thread group) id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// CPU it ran on.
    pub cpu: u32,
    /// Sequence number of the thread's name; 0: never seen being named.
    pub name_seq: u32,
    /// A [`crate::SampleKindTag`].
    pub sample_kind: u16,
    /// Of a named event its slot, of a disk's request a [`crate::BlockWay`]; else 0.
    pub slot: u16,
    /// Of a disk's request the disk, as the kernel numbers it (`dev_t`: 12 bits of major, 20 of minor); of an allocation the
    /// bytes of the object itself ([`crate::object_bytes`]; 0: not known); of a wait how many waits the record tells, 1 at
    /// least; else 0.
    pub detail: u32,
}

impl SampleRecord {
    /// `header.flags` bit: the sample interrupted the kernel.
    pub const FLAG_KERNEL_MODE: u16 = 1;
}

/// A stack, sent before the first sample of the epoch that has it. `kernel_frames` u64 addresses
/// (leaf first) and then `user_frames` [`UserFrame`]s (leaf first) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackRecord {
    /// kind = Stack.
    pub header: RecordHeader,
    /// The key.
    pub hash: u64,
    /// When it was taken.
    pub time_ns: u64,
    /// Process it belongs to.
    pub pid: u32,
    /// Thread it was first seen on.
    pub tid: u32,
    /// Number of kernel addresses that follow.
    pub kernel_frames: u16,
    /// Number of user frames that follow them.
    pub user_frames: u16,
    /// A [`crate::StackEnd`]: how the user half ended.
    pub end: u8,
    /// Zero.
    pub pad: [u8; 3],
    /// The runtime's: as long as it is the same, a deferred frame means the same; 0: not known. Part of the hash. Of
    /// HotSpot one more than the classes that the JVM had unloaded by then, which may end a `Method*`.
    pub generation: u64,
}

impl StackRecord {
    /// `header.flags` bit: the record of a sample with this stack follows, in the same piece of the ring.
    pub const FLAG_SAMPLE_FOLLOWS: u16 = 1;
}

/// One frame of a user stack. 16 bytes, so that a frame of a managed runtime can carry what makes it
/// nameable after the runtime moved on (a compile id, a bytecode index).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserFrame {
    /// Of a native frame, the instruction's address. A caller's frame holds the return address; the daemon looks up
    /// one byte before it. Else as the runtime says for `kind`.
    pub value: u64,
    /// The runtime's; 0 of a native frame.
    pub cookie: u32,
    /// The runtime's ([`crate::JavaFrameTag`]); 0 of a native frame.
    pub kind: u8,
    /// Bit 0: `value` is a return address (all frames but the interrupted one, and interpreted ones); bit 1: the
    /// frame is a guess.
    pub flags: u8,
    /// The runtime that names it, a [`RuntimeId`]; 0: native.
    pub runtime: u8,
    /// Zero.
    pub pad: u8,
}

impl UserFrame {
    /// `flags` bit: `value` is a return address.
    pub const FLAG_RETURN_ADDRESS: u8 = 1;
    /// `flags` bit: the frame was found by searching the stack for a return address, not by a rule.
    pub const FLAG_GUESSED: u8 = 2;

    /// The runtime that names it.
    pub const fn runtime(&self) -> RuntimeId {
        RuntimeId(self.runtime)
    }
    /// Whether it is an address and no more.
    pub const fn is_native(&self) -> bool {
        self.runtime == RuntimeId::NATIVE.0
    }
}

/// exec, fork, exit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskRecord {
    /// kind = Exec, Fork or Exit.
    pub header: RecordHeader,
    /// When.
    pub time_ns: u64,
    /// Process; for Fork the new task's (equal to `parent_pid` when it is a thread).
    pub pid: u32,
    /// Thread; for Fork the new one.
    pub tid: u32,
    /// Fork: the process that made it. Else 0.
    pub parent_pid: u32,
    /// Fork: the thread that made it. Else 0.
    pub parent_tid: u32,
}

/// A thread: its name's number, and what the kernel has on its account since it began. Units as in
/// `task_struct`: nanoseconds, counts, bytes. For [`RecordKind::ThreadNamed`] `name_len` bytes of name
/// follow, which fill up the record (no terminating zero).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRecord {
    /// kind = ThreadNamed, ThreadEnded or ThreadAsked.
    pub header: RecordHeader,
    /// When.
    pub time_ns: u64,
    /// When the thread began (`task_struct.start_time`, CLOCK_MONOTONIC).
    pub start_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Number of the thread's name from now on; 0: never seen being named.
    pub name_seq: u32,
    /// The number before; the same as `name_seq` unless it was named now.
    pub previous_seq: u32,
    /// `se.sum_exec_runtime`.
    pub cpu_ns: u64,
    /// `sched_info.run_delay`.
    pub run_delay_ns: u64,
    /// `utime`.
    pub user_ns: u64,
    /// `stime`.
    pub system_ns: u64,
    /// `nvcsw`.
    pub voluntary_switches: u64,
    /// `nivcsw`.
    pub involuntary_switches: u64,
    /// `min_flt`.
    pub minor_faults: u64,
    /// `maj_flt`.
    pub major_faults: u64,
    /// `ioac.read_bytes`.
    pub read_bytes: u64,
    /// `ioac.write_bytes`.
    pub written_bytes: u64,
    /// How long it slept, until a Python process of PySpark's woke it, while it ran tasks.
    pub python_wait_ns: u64,
    /// How long it wanted to run while its cgroup was throttled, while it ran tasks: a part of the run delay.
    pub throttled_ns: u64,
    /// How long its JVM stood still at safepoints, since that is seen; of all its threads the same.
    pub paused_ns: u64,
    /// Bytes of the name that follow.
    pub name_len: u32,
    /// Bit 0: the accounts above are there; bit 1: the name was longer than [`crate::MAX_NAME`]; bits 2
    /// and 3: it is in Latin-1 or UTF-16, else as the program gave it.
    pub flags: u32,
}

impl ThreadRecord {
    /// `flags` bit: the accounts could be read.
    pub const FLAG_ACCOUNTS: u32 = 1;
    /// `flags` bit: the name was cut.
    pub const FLAG_NAME_CUT: u32 = 2;
    /// `flags` bit: the name is in Latin-1, as a String keeps it.
    pub const FLAG_NAME_LATIN1: u32 = 4;
    /// `flags` bit: the name is in UTF-16, of the machine's byte order, as a String keeps it.
    pub const FLAG_NAME_UTF16: u32 = 8;
}

/// A PySpark worker's main thread, at the moment at which it exchanged data with a task's thread for the first time since it
/// did with another's, or at which its task is over. The thread has no name: its number stands for the task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundRecord {
    /// kind = WorkerBound; the worker's main thread.
    pub thread: ThreadRecord,
    /// The task; [`TaskThread::NONE`] when the one before is over.
    pub task: TaskThread,
}

impl BoundRecord {
    /// `thread.header.flags` bit: the task before is over, and what the worker does until its next such record is still for it.
    pub const FLAG_OUTLIVED: u16 = 1;
}

/// A wait of a thread, or several short ones in the same place, when it is woken.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitRecord {
    /// header.kind = Wait; the time is that of the end, the weight how long the thread stood still since `began_ns`, and
    /// everything else as it was at the beginning.
    pub sample: SampleRecord,
    /// When it began.
    pub began_ns: u64,
}

impl WaitRecord {
    /// `header.flags` bit: several waits, the first of which began at `began_ns`. None of them was walked.
    pub const FLAG_SEVERAL: u16 = 2;
    /// `header.flags` bit: one wait that was not walked. The stack is that of another.
    pub const FLAG_UNWALKED: u16 = 4;
}

/// A pause of a JVM, when it is over.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseRecord {
    /// kind = Pause.
    pub header: RecordHeader,
    /// When it ended.
    pub time_ns: u64,
    /// When it began.
    pub began_ns: u64,
    /// Address of the virtual table of its first operation, in the process; 0: there was none, or it could not be read.
    pub operation: u64,
    /// Process.
    pub pid: u32,
    /// The VM thread.
    pub tid: u32,
}

const _: () = {
    assert!(size_of::<PauseRecord>() == 40);
    assert!(size_of::<WaitRecord>() == 64);
    assert!(size_of::<ThreadRecord>() == 152);
    assert!(size_of::<BoundRecord>() == 160);
    assert!(size_of::<RecordHeader>() == 8);
    assert!(size_of::<SampleRecord>() == 56);
    assert!(size_of::<StackRecord>() == 48);
    assert!(size_of::<UserFrame>() == 16);
    assert!(size_of::<TaskRecord>() == 32);
};
