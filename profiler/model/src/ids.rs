//! Identifiers of processes and threads.

/// Process id in the initial PID namespace (the kernel's "tgid").
pub type Pid = u32;
/// Thread id in the initial PID namespace (the kernel's "pid").
pub type Tid = u32;

/// One incarnation of a process. A reused pid is another process: it starts at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// Process id in the initial PID namespace.
    pub pid: Pid,
    /// Start time in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)). 0 when the process
    /// was gone before it could be read.
    pub start_ticks: u64,
}
