//! What is known of one thread.

use super::label::{Task, ThreadLabel};
use emberscope_model::{Accounts, Pid, ThreadClass, Tid};

/// What a thread does, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// No name is known.
    Nameless,
    /// The thread runs a task.
    Task(Task),
    /// The thread waits for the next task; it ran this one before.
    Idle(Option<Task>),
    /// The thread works for the task that its maker ran.
    Helper(ThreadClass, Task),
    /// Anything else. A pool's thread that has not run a task has class `task`.
    Other(ThreadClass),
    /// The thread was named, and the name did not come. The class is what it seems to be.
    Lost(ThreadClass),
}

impl Doing {
    /// The task in whose service the thread is, now.
    pub fn task(&self) -> Option<Task> {
        match self {
            Self::Task(task) | Self::Helper(_, task) => Some(*task),
            Self::Lost(ThreadClass::Task) => Some(Task::Unknown),
            Self::Nameless | Self::Idle(_) | Self::Other(_) | Self::Lost(_) => None,
        }
    }
    /// The task that the thread itself runs, or ran last.
    pub fn own_task(&self) -> Option<Task> {
        match self {
            Self::Task(task) => Some(*task),
            Self::Idle(task) => *task,
            Self::Lost(ThreadClass::Task) => Some(Task::Unknown),
            Self::Nameless | Self::Helper(..) | Self::Other(_) | Self::Lost(_) => None,
        }
    }
    pub fn class(&self) -> ThreadClass {
        match self {
            Self::Nameless => ThreadClass::Other,
            Self::Task(_) | Self::Idle(_) => ThreadClass::Task,
            Self::Helper(class, _) | Self::Other(class) | Self::Lost(class) => *class,
        }
    }
    /// Labels of a sample taken now. `born_to` and `may_run_tasks` say what a thread without a name is.
    pub fn label(&self, born_to: Option<Task>, may_run_tasks: bool) -> ThreadLabel {
        let task = match self {
            Self::Nameless => born_to.or(may_run_tasks.then_some(Task::Unknown)),
            Self::Lost(_) => Some(Task::Unknown),
            Self::Task(_) | Self::Idle(_) | Self::Helper(..) | Self::Other(_) => self.task(),
        };
        ThreadLabel { class: self.class(), task }
    }
}

/// Where a name is from; a later one of the same or a higher rank replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    None,
    /// The 15 bytes of /proc/PID/task/TID/comm.
    Comm,
    /// The JVM's memory.
    Memory,
    /// The kernel's record of the naming.
    Kernel,
}

/// To which task a PySpark worker is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The thread that runs the task.
    pub tid: Tid,
    /// The number of the name that the task gave it: with another, the task is over.
    pub seq: u32,
    /// Since when the worker is bound to it, CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// The task is over, and the worker's main thread cleans up after it.
    pub outlived: bool,
}

/// What is known of one incarnation of a thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub pid: Pid,
    /// When it began; 0 while that is not known.
    pub start_ns: u64,
    /// Number of its name.
    pub seq: u32,
    pub doing: Doing,
    pub source: Source,
    /// Number of the name before, and what that was: a sample may have been taken before a naming and come
    /// up after it.
    pub before: Option<(u32, Doing)>,
    /// Task of the thread that made it.
    pub born_to: Option<Task>,
    /// Of a PySpark worker's main thread: the thread of the task that it works for.
    pub bound: Option<Bound>,
    /// What is booked so far, and until when.
    pub booked: Option<(Accounts, u64)>,
    /// A number that was seen and whose naming was not (yet).
    pub unheard: Option<u32>,
    /// Bookings wait once for a thread without a name to get one.
    pub waited: bool,
    /// When the thread ended, CLOCK_MONOTONIC.
    pub ended_ns: Option<u64>,
    /// When the thread was last heard of, CLOCK_MONOTONIC.
    pub heard_ns: u64,
}

impl Thread {
    pub fn new(pid: Pid, start_ns: u64, now_ns: u64) -> Self {
        Self {
            pid,
            start_ns,
            seq: 0,
            doing: Doing::Nameless,
            source: Source::None,
            before: None,
            born_to: None,
            bound: None,
            booked: None,
            unheard: None,
            waited: false,
            ended_ns: None,
            heard_ns: now_ns,
        }
    }
    /// Whether a record with this process and start can be of this incarnation.
    pub fn is(&self, pid: Pid, start_ns: u64) -> bool {
        self.pid == pid && (self.start_ns == start_ns || self.start_ns == 0 || start_ns == 0)
    }
}
