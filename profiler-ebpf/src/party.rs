//! PySpark's processes, as the programs know them: an executor's JVM, its Python daemon, the workers.

/// Processes of PySpark on the whole node, at most: executors, Python daemons and workers. 300 KiB: 80 bytes an entry, 16 a
/// bucket.
pub const MAX_PARTIES: u32 = 3072;

/// Of these, those whose threads are watched beside [`crate::MAX_WATCHED`] processes of runtimes.
pub const MAX_SPARK_PYTHONS: u32 = 2048;

/// Threads that run a task, or feed a worker for one, at most, in executors alone. 1.1 MiB.
pub const MAX_TASK_THREADS: u32 = 8192;

/// What a process of PySpark's is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyKind {
    /// A JVM that runs tasks.
    Executor = 1,
    /// The Python process that forks workers.
    Daemon = 2,
    /// A Python process that works for one task at a time.
    Worker = 3,
}

/// A process of PySpark's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// A [`PartyKind`].
    pub kind: u32,
    /// Pid of the executor's JVM.
    pub executor: u32,
    /// A worker's task, as it was announced last; 0: none.
    pub task: TaskThread,
    /// The address of a worker's main thread in the kernel, since it was bound first.
    pub main: u64,
}

impl Party {
    /// A process of this kind that works for no task yet.
    pub const fn new(kind: PartyKind, executor: u32) -> Self {
        Self { kind: kind as u32, executor, task: TaskThread::NONE, main: 0 }
    }
}

/// A task, by the thread that runs it: no two tasks of a node have the same, as each task gives its thread a name.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskThread {
    /// The thread.
    pub tid: u32,
    /// Number of the name that the task gave it.
    pub seq: u32,
}

impl TaskThread {
    /// No task.
    pub const NONE: Self = Self { tid: 0, seq: 0 };
}

const _: () = {
    assert!(size_of::<Party>() == 24);
    assert!(size_of::<TaskThread>() == 8);
};
