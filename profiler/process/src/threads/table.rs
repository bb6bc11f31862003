//! The table of threads: what each does, and so the labels of its samples.
//!
//! In: namings and ends ([`Threads::on_thread`], in `book`), forks, execs, exits, and names known otherwise.
//! Out: a sample's labels. A sample carries its name's number; only a name with that number counts, so that
//! a lost record makes `unknown` of a sample and never the wrong task. A tid stands for one incarnation: a
//! fork, an exec or another start time makes another. At most [`Limits::threads`] are kept.

use super::budget::Budget;
use super::class::class_of;
use super::counters::{ThreadCounters, UnknownFormats};
use super::label::{LabelCache, ThreadLabel};
use super::state::{Bound, Doing, Thread};
use emberscope_model::{
    FastMap, FastSet, LabelSet, Pid, RawTask, Refusals, Role, TaskEvent, Tenant, Tid, shrink,
};
use std::sync::Arc;

/// How long a thread that ended is kept: its samples may be on their way.
const LINGER_NS: u64 = 5_000_000_000;

/// Processes kept of those that tasks' threads started.
const MAX_STARTED: usize = 1024;

/// How many threads and label sets are kept, and how many tasks a process may bring.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads; each takes some 250 bytes. A JVM has 30 to 500.
    pub threads: usize,
    /// Label sets with a task in them, of all processes; each takes some 600 bytes and is kept for a minute
    /// after its last use.
    pub label_sets: usize,
    /// New tasks of a process in a minute.
    pub tasks_a_minute: u32,
    /// The same of a process that has no role in Spark: a program with a Spark of its own in it, or one that only names its
    /// threads so.
    pub tasks_a_minute_elsewhere: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 20_000, label_sets: 16_384, tasks_a_minute: 12_000, tasks_a_minute_elsewhere: 3_000 }
    }
}

/// What a process's threads are, and so how their labels are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// A JVM's: their names tell.
    Jvm,
    /// A PySpark worker's: they work for the task that its main thread is bound to.
    Worker,
    /// The Python daemon's, which forks workers: they work for no task.
    Daemon,
    /// Any other process's: its labels are theirs.
    Other,
}

impl OwnerKind {
    /// Whether the process is PySpark's, on an executor.
    pub(super) fn is_python(self) -> bool {
        matches!(self, Self::Worker | Self::Daemon)
    }
}

/// The process of a thread, as the registry knows it.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The process's id.
    pub pid: Pid,
    /// The process's labels, shared.
    pub labels: &'a Arc<LabelSet>,
    /// What the process is to Spark.
    pub role: Role,
    /// What its threads are, and so how their labels are found.
    pub kind: OwnerKind,
    /// Whose share of the table its threads take.
    pub tenant: Tenant,
}

impl Owner<'_> {
    /// Whether its threads may run tasks: executors', and a driver's in local mode.
    pub(super) fn may_run_tasks(&self) -> bool {
        matches!(self.role, Role::Executor | Role::Driver)
    }
}

/// A process that has threads in the table.
#[derive(Debug)]
pub(super) struct Process {
    pub threads: usize,
    pub budget: Budget,
    pub tenant: Tenant,
}

/// All threads that are known. Used by one thread.
#[derive(Debug)]
pub struct Threads {
    pub(super) limits: Limits,
    /// No thread that began before this is known to have been watched from its beginning.
    pub(super) whole_since_ns: u64,
    pub(super) counters: ThreadCounters,
    /// Boxed: an empty place of the map takes 16 bytes and not 300, and a flood of threads leaves nearly half of them empty.
    pub(super) threads: FastMap<Tid, Box<Thread>>,
    pub(super) processes: FastMap<Pid, Process>,
    /// Processes that a task's thread started, and that task.
    pub(super) started: FastMap<Pid, Bound>,
    labels: LabelCache,
    pub(super) nameless: FastSet<(Pid, Tid)>,
    pub(super) unknown_formats: UnknownFormats,
    pub(super) now_ns: u64,
    /// Threads thrown out and tasks folded, by whose they were.
    pub(super) evicted: Refusals,
    pub(super) folded: Refusals,
}

impl Threads {
    /// An empty table. `started_ns` is when the daemon began to watch, CLOCK_MONOTONIC: of a thread that began later
    /// all accounts are booked.
    pub fn new(limits: Limits, started_ns: u64) -> Self {
        Self {
            limits,
            whole_since_ns: started_ns,
            counters: ThreadCounters::default(),
            threads: FastMap::default(),
            processes: FastMap::default(),
            started: FastMap::default(),
            labels: LabelCache::default(),
            nameless: FastSet::default(),
            unknown_formats: UnknownFormats::default(),
            now_ns: started_ns,
            evicted: Refusals::default(),
            folded: Refusals::default(),
        }
    }

    /// The labels of a sample of this thread that carries the number `name_seq`: its process's with its
    /// class, and its task's if it runs one.
    pub fn labels(&mut self, owner: &Owner<'_>, tid: Tid, name_seq: u32) -> Arc<LabelSet> {
        if owner.kind.is_python() {
            let label = self.python_label(owner, tid, name_seq);
            return self.shared(owner, label);
        }
        let may = owner.may_run_tasks();
        let label = match self.thread(tid).filter(|t| t.pid == owner.pid) {
            Some(thread) => {
                let before = thread.before.filter(|(seq, _)| *seq == name_seq);
                let doing = match before {
                    _ if thread.seq == name_seq => thread.doing,
                    Some((_, doing)) => doing,
                    None => Doing::Lost(thread.doing.class()),
                };
                let label = doing.label(thread.born_to, may);
                if matches!(doing, Doing::Nameless | Doing::Lost(_)) {
                    self.counters.samples_nameless += 1;
                    self.want_name(owner.pid, tid);
                }
                label
            }
            None if owner.kind == OwnerKind::Other => return owner.labels.clone(),
            None if tid == owner.pid && name_seq == 0 => {
                ThreadLabel { class: class_of("main", owner.role), task: None }
            }
            None => {
                self.counters.samples_nameless += 1;
                self.want_name(owner.pid, tid);
                Doing::Nameless.label(None, may)
            }
        };
        self.shared(owner, label)
    }

    /// A fork, exec or exit, of any process.
    pub fn on_task(&mut self, task: &RawTask) {
        self.now_ns = self.now_ns.max(task.time_ns);
        match task.event {
            TaskEvent::Fork { parent_pid, parent_tid } => {
                self.remove(task.tid);
                if parent_pid != task.pid {
                    self.on_start(task, (parent_pid, parent_tid));
                    return;
                }
                let made_by = self.thread(parent_tid).filter(|t| t.pid == task.pid);
                if let Some(born_to) = made_by.and_then(|t| {
                    t.doing.task().or(match t.doing {
                        Doing::Nameless => t.born_to,
                        _ => None,
                    })
                }) {
                    let mut thread = Thread::new(task.pid, 0, task.time_ns);
                    thread.born_to = Some(born_to);
                    self.insert(task.tid, thread);
                }
            }
            TaskEvent::Exec => self.on_exec(task.pid),
            TaskEvent::Exit => {
                if task.tid == task.pid {
                    self.started.remove(&task.pid);
                }
                if let Some(thread) = self.thread_mut(task.tid) {
                    thread.ended_ns.get_or_insert(task.time_ns);
                }
            }
        }
    }

    /// A thread of another process started this one.
    fn on_start(&mut self, task: &RawTask, (parent_pid, parent_tid): (Pid, Tid)) {
        self.started.remove(&task.pid);
        let made_by = self.thread(parent_tid).filter(|t| t.pid == parent_pid);
        if let Some(Thread { doing: Doing::Task(_), seq, .. }) = made_by
            && self.started.len() < MAX_STARTED
        {
            let bound = Bound { tid: parent_tid, seq: *seq, since_ns: task.time_ns, outlived: false };
            self.started.insert(task.pid, bound);
        }
    }

    /// The labels of a process changed: those made of the old ones are not given out any more.
    pub fn relabel(&mut self, from: &LabelSet) {
        self.labels.forget_process(from);
    }

    /// The threads of processes that are over are over as well: of thousands that end at once not each exit is told. To be
    /// called before each [`Threads::tick`].
    pub fn end_of(&mut self, is_over: impl Fn(Pid) -> bool) {
        let over: FastSet<Pid> = self.processes.keys().copied().filter(|pid| is_over(*pid)).collect();
        if over.is_empty() {
            return;
        }
        for thread in self.threads.values_mut().filter(|thread| over.contains(&thread.pid)) {
            thread.ended_ns.get_or_insert(self.now_ns);
        }
    }

    /// Forgets what is over. To be called about once a second.
    pub fn tick(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.drop_threads(|t| t.ended_ns.is_some_and(|at| now_ns.saturating_sub(at) > LINGER_NS));
        shrink(&mut self.threads);
        shrink(&mut self.processes);
        self.labels.sweep(now_ns);
    }

    /// What the table counted since the start, and how much it holds now.
    pub fn counters(&self) -> ThreadCounters {
        ThreadCounters {
            threads: self.threads.len() as u64,
            label_sets: self.labels.len() as u64,
            ..self.counters
        }
    }

    /// What was refused for want of room, and of whom, by table.
    pub fn refusals(&self) -> [(&'static str, &Refusals); 2] {
        [("threads", &self.evicted), ("thread_labels", &self.folded)]
    }

    /// The last few texts that begin like Spark's names and go on otherwise, escaped.
    pub fn unknown_formats(&self) -> impl Iterator<Item = &str> {
        self.unknown_formats.iter()
    }

    /// The shared set of these labels.
    pub(super) fn shared(&mut self, owner: &Owner<'_>, label: ThreadLabel) -> Arc<LabelSet> {
        let of = (owner.labels, owner.tenant);
        let (labels, folded) = self.labels.get(of, label, self.now_ns, &self.limits);
        if folded {
            self.counters.folded += 1;
            self.folded.add(owner.tenant);
        }
        labels
    }
}
