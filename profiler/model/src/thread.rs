//! Threads: what they are called, what they are for, and what the kernel has on their account.

use super::{FastMap, LabelSet, Pid, Tid, TimeRange};
use std::sync::Arc;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $slug:literal;)+) => {
        /// What a thread of a JVM is for. A closed list: every sample of a JVM has exactly one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ThreadClass { $($(#[$doc])* $variant,)+ }
        impl ThreadClass {
            /// All classes, in the order in which tables list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The value of the label `thread_class`.
            pub const fn slug(self) -> &'static str { match self { $(Self::$variant => $slug,)+ } }
            /// The class of this name.
            pub fn from_slug(slug: &str) -> Option<Self> { match slug { $($slug => Some(Self::$variant),)+ _ => None } }
        }
    };
}

classes! {
    /// Runs Spark's tasks.
    Task = "task";
    /// Collects garbage of the JVM.
    Gc = "gc";
    /// Compiles Java methods (JIT).
    Jit = "jit";
    /// Any other thread of the virtual machine itself.
    Vm = "vm";
    /// Spark's remote calls.
    Rpc = "rpc";
    /// Moves blocks and shuffle data.
    Shuffle = "shuffle";
    /// Schedules, listens, fetches results: what only a driver has.
    Driver = "driver";
    /// Works for Spark SQL: broadcasts, subqueries, streaming queries.
    Sql = "sql";
    /// Heartbeats and the executor's watchers.
    Heartbeat = "heartbeat";
    /// Feeds Python workers and piped programs, and watches them.
    Python = "python";
    /// Web and other servers.
    Server = "server";
    /// Does anything else.
    Other = "other";
}

macro_rules! accounts {
    ($($(#[$doc:meta])* $field:ident;)+) => {
        /// What the kernel has on a thread's account since the thread began, or a difference of two such.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Accounts { $($(#[$doc])* pub $field: u64,)+ }
        impl Accounts {
            /// What was added since `earlier`; never below 0.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.saturating_sub(earlier.$field),)+ }
            }
            /// Adds another thread's, or another stretch's.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
            }
        }
    };
}

accounts! {
    /// Time on a CPU, nanoseconds: `se.sum_exec_runtime`, which a running thread's ticks and switches
    /// bring up to date.
    cpu_ns;
    /// Time runnable but not running, nanoseconds: `sched_info.run_delay`.
    run_delay_ns;
    /// User time, nanoseconds, as the kernel's ticks count it: `utime`. Its proportion to `system_ns` is
    /// what tells; the exact sum is `cpu_ns`.
    user_ns;
    /// Kernel time, nanoseconds, by ticks: `stime`.
    system_ns;
    /// Times that the thread gave up the CPU: `nvcsw`.
    voluntary_switches;
    /// Times that the CPU was taken from the thread: `nivcsw`.
    involuntary_switches;
    /// Page faults without I/O: `min_flt`.
    minor_faults;
    /// Page faults with I/O: `maj_flt`.
    major_faults;
    /// Bytes fetched from storage: `ioac.read_bytes`; 0 where the kernel does not count them.
    read_bytes;
    /// Bytes sent to storage: `ioac.write_bytes`.
    written_bytes;
    /// Time that a task's thread slept until a Python process of its executor woke it, nanoseconds: a part of the time
    /// in which it was blocked. 0 where the kernel side does not measure it.
    python_wait_ns;
    /// Time that a task's thread was runnable while its cgroup had used up its quota of CPU time, nanoseconds: a part
    /// of `run_delay_ns`. 0 where waits are not sampled, or the kernel does not tell.
    throttled_ns;
    /// Time in which the thread's JVM stood still at safepoints, nanoseconds, whatever the thread did then: code that is
    /// not Java's goes on. 0 where pauses are not seen.
    paused_ns;
}

/// Why a [`RawThread`] came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadCause {
    /// The thread named itself.
    Named,
    /// The thread ended.
    Ended,
    /// We asked for all threads of the watched processes.
    Asked,
    /// The thread is a PySpark worker's main thread, and exchanged data with the thread of a task other than before.
    Bound {
        /// The task's thread.
        tid: Tid,
        /// The number of the name that the task gave it.
        seq: u32,
    },
    /// The thread is a PySpark worker's main thread, and its task is over: what it does until its next such record, or until it
    /// is bound, is still for that task.
    Outlived,
}

/// A thread's name, or its accounts, at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawThread {
    /// When that was, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// When the thread began, nanoseconds of CLOCK_MONOTONIC; 0 where the kernel does not tell.
    pub start_ns: u64,
    /// Process of the thread.
    pub pid: Pid,
    /// Id of the thread.
    pub tid: Tid,
    /// Sequence number of the thread's name from now on, the one that samples carry; 0: never seen being named.
    pub name_seq: u32,
    /// The number before; differs from what was last heard where a record was lost.
    pub previous_seq: u32,
    /// Why the record came up.
    pub cause: ThreadCause,
    /// Named: the name as it was given, of any bytes, cut at [`profiler_ebpf::MAX_NAME`]. Else empty.
    pub name: Box<[u8]>,
    /// The thread's accounts; None where this kernel's type information does not say where they are.
    pub accounts: Option<Accounts>,
}

/// Exact sums over stretches of threads' lives, in one window or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerSums {
    /// What the threads used.
    pub accounts: Accounts,
    /// Wall time that passed, nanoseconds: [`Accounts::cpu_ns`], [`Accounts::run_delay_ns`], and the
    /// rest, in which the threads were blocked.
    pub wall_ns: u64,
    /// Times that a thread took this name: for a task's own thread, 1.
    pub begun: u64,
}

impl LedgerSums {
    /// Adds the sums of other stretches.
    pub fn add(&mut self, other: &Self) {
        self.accounts.add(&other.accounts);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.begun = self.begun.saturating_add(other.begun);
    }
    /// All but the wall time in which the threads were blocked, and that wall time; pauses of their JVM are of the latter.
    pub fn without_waiting(&self) -> (Self, Self) {
        let waited = self.blocked_ns();
        let paused = Accounts { paused_ns: self.accounts.paused_ns, ..Accounts::default() };
        let busy = Self {
            wall_ns: self.wall_ns - waited,
            accounts: Accounts { paused_ns: 0, ..self.accounts },
            begun: self.begun,
        };
        (busy, Self { wall_ns: waited, accounts: paused, begun: 0 })
    }
    /// Wall time neither on a CPU nor waiting for one, nanoseconds.
    pub fn blocked_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.accounts.cpu_ns).saturating_sub(self.accounts.run_delay_ns)
    }
    /// Time runnable but not running, nanoseconds: while there was no CPU for it, and while its cgroup was throttled.
    pub fn queued_and_throttled_ns(&self) -> (u64, u64) {
        let throttled = self.accounts.throttled_ns.min(self.accounts.run_delay_ns);
        (self.accounts.run_delay_ns - throttled, throttled)
    }
    /// CPU time in user mode and in the kernel, nanoseconds: the exact sum split in the proportion of
    /// the ticks, as /proc/PID/stat does (`cputime_adjust`, kernel/sched/cputime.c, Linux 6.18). Without
    /// a tick all of it is user time.
    pub fn user_and_system_ns(&self) -> (u64, u64) {
        let Accounts { cpu_ns, user_ns, system_ns, .. } = self.accounts;
        let ticks = u128::from(user_ns) + u128::from(system_ns);
        let system = u128::from(cpu_ns) * u128::from(system_ns) / ticks.max(1);
        let system = u64::try_from(system).unwrap_or(cpu_ns).min(cpu_ns);
        (cpu_ns - system, system)
    }
}

/// One line of a window's ledger: what threads with these labels used in it.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    /// Whose the line is: a process's labels and its thread's.
    pub labels: Arc<LabelSet>,
    /// What these threads used.
    pub sums: LedgerSums,
    /// From the first stretch's start to the last one's end, wall clock. A stretch that began in an
    /// earlier window reaches back there.
    pub seen: TimeRange,
}

impl LedgerRow {
    /// Lines of equal labels put together, in the order of the first of each.
    pub fn merged(lines: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut places: FastMap<Arc<LabelSet>, usize> = FastMap::default();
        let mut merged: Vec<Self> = Vec::new();
        for line in lines {
            let at = *places.entry(line.labels.clone()).or_insert(merged.len());
            match merged.get_mut(at) {
                Some(known) => {
                    known.sums.add(&line.sums);
                    known.seen.cover(&line.seen);
                }
                None => merged.push(line),
            }
        }
        merged.shrink_to_fit();
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_add_up() {
        let mut sums = LedgerSums::default();
        assert_eq!(sums.user_and_system_ns(), (0, 0));
        sums.accounts.cpu_ns = 1_001;
        assert_eq!(sums.user_and_system_ns(), (1_001, 0));
        (sums.accounts.user_ns, sums.accounts.system_ns) = (8_000_000, 4_000_000);
        let (user, system) = sums.user_and_system_ns();
        assert_eq!((user + system, system), (1_001, 333));
        sums.accounts = Accounts { cpu_ns: u64::MAX, system_ns: u64::MAX, user_ns: 1, ..sums.accounts };
        let (user, system) = sums.user_and_system_ns();
        assert_eq!(user + system, u64::MAX);
    }

    #[test]
    fn throttled_time_is_a_part_of_the_run_delay() {
        let mut sums = LedgerSums::default();
        (sums.accounts.run_delay_ns, sums.accounts.throttled_ns) = (7, 5);
        assert_eq!(sums.queued_and_throttled_ns(), (2, 5));
        // Read at another moment than the run delay.
        sums.accounts.throttled_ns = 8;
        assert_eq!(sums.queued_and_throttled_ns(), (0, 7));
    }

    #[test]
    fn classes_have_names_of_their_own() {
        for class in ThreadClass::ALL {
            assert_eq!(ThreadClass::from_slug(class.slug()), Some(*class));
        }
        assert_eq!(ThreadClass::ALL.len(), 12);
    }
}
