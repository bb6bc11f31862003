//! The table of threads: what each does, and so the labels of its samples.
//!
//! In: namings and ends ([`Threads::on_thread`], in `book`), forks, execs, exits, and names known otherwise.
//! Out: a sample's labels. A sample carries its name's number; only a name with that number counts, so that
//! a lost record makes `unknown` of a sample and never the wrong task. A tid stands for one incarnation: a
//! fork, an exec or another start time makes another. At most [`Limits::threads`] are kept.

use super::budget::Budget;
use super::class::class_of;
use super::counters::{ThreadCounters, UnknownFormats};
use super::helper::works_for_its_maker;
use super::label::{LabelCache, Task, ThreadLabel};
use super::name::{self, TaskId, TaskName};
use super::state::{Doing, Source, Thread};
use crate::model::{LabelSet, Pid, RawTask, Role, TaskEvent, ThreadClass, Tid};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How long a thread that ended is kept: its samples may be on their way.
const LINGER_NS: u64 = 5_000_000_000;
/// Threads without a name that are told of at once.
const MAX_NAMELESS: usize = 1024;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads; each takes some 250 bytes. A JVM has 30 to 500.
    pub threads: usize,
    /// Label sets with a task in them, of all processes; each takes some 600 bytes and is kept for a minute
    /// after its last use.
    pub label_sets: usize,
    /// New tasks of a process in a minute.
    pub tasks_a_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 20_000, label_sets: 16_384, tasks_a_minute: 12_000 }
    }
}

/// The process of a thread, as the registry knows it.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its id.
    pub pid: Pid,
    /// Its labels, shared.
    pub labels: &'a Arc<LabelSet>,
    /// What it is to Spark.
    pub role: Role,
    /// It is known to be a JVM. Threads of other processes get their process's labels.
    pub jvm: bool,
}

impl Owner<'_> {
    /// Tasks run in executors, and in a driver in local mode.
    pub(super) fn may_run_tasks(&self) -> bool {
        matches!(self.role, Role::Executor | Role::Driver)
    }
}

/// A process that has threads in the table.
#[derive(Debug)]
struct Process {
    threads: usize,
    budget: Budget,
}

/// All threads that are known. Used by one thread.
#[derive(Debug)]
pub struct Threads {
    pub(super) limits: Limits,
    /// No thread that began before this is known to have been watched from its beginning.
    pub(super) whole_since_ns: u64,
    pub(super) counters: ThreadCounters,
    threads: HashMap<Tid, Thread>,
    processes: HashMap<Pid, Process>,
    labels: LabelCache,
    nameless: HashSet<(Pid, Tid)>,
    unknown_formats: UnknownFormats,
    now_ns: u64,
}

impl Threads {
    /// An empty one. `started_ns` is when the daemon began to watch, CLOCK_MONOTONIC: of a thread that began
    /// later all accounts are booked.
    pub fn new(limits: Limits, started_ns: u64) -> Self {
        Self {
            limits,
            whole_since_ns: started_ns,
            counters: ThreadCounters::default(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            labels: LabelCache::default(),
            nameless: HashSet::new(),
            unknown_formats: UnknownFormats::default(),
            now_ns: started_ns,
        }
    }

    /// The labels of a sample of this thread that carries the number `name_seq`: its process's with its
    /// class, and its task's if it runs one.
    pub fn labels(&mut self, owner: &Owner<'_>, tid: Tid, name_seq: u32) -> Arc<LabelSet> {
        let may = owner.may_run_tasks();
        let label = match self.threads.get(&tid).filter(|t| t.pid == owner.pid) {
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
            None if !owner.jvm => return owner.labels.clone(),
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
                let made_by = self.threads.get(&parent_tid).filter(|t| t.pid == task.pid);
                if parent_pid == task.pid
                    && let Some(born_to) = made_by.and_then(|t| {
                        t.doing.task().or(match t.doing {
                            Doing::Nameless => t.born_to,
                            _ => None,
                        })
                    })
                {
                    let mut thread = Thread::new(task.pid, 0, task.time_ns);
                    thread.born_to = Some(born_to);
                    self.insert(task.tid, thread);
                }
            }
            TaskEvent::Exec => self.on_exec(task.pid),
            TaskEvent::Exit => {
                if let Some(thread) = self.threads.get_mut(&task.tid) {
                    thread.ended_ns.get_or_insert(task.time_ns);
                }
            }
        }
    }

    /// A name that was read from the JVM's memory. `start_ns` is the thread's beginning, 0 if not known.
    /// What the kernel said of the thread stands.
    pub fn learn(&mut self, owner: &Owner<'_>, tid: Tid, start_ns: u64, name: &[u8]) {
        let Some(parsed) = self.learnable(owner.pid, tid, start_ns, Source::Memory) else { return };
        let doing = self.read_name(owner, parsed, name);
        self.learned(tid, doing, Source::Memory);
    }

    /// A thread's comm, from /proc/PID/task/TID/comm: the weakest source.
    pub fn learn_comm(&mut self, owner: &Owner<'_>, tid: Tid, comm: &[u8]) {
        let Some(thread) = self.learnable(owner.pid, tid, 0, Source::Comm) else { return };
        // A thread without a name has its maker's comm.
        if thread.born_to.is_some() {
            return;
        }
        let doing = match name::parse_comm(comm) {
            TaskName::Idle => Doing::Idle(None),
            TaskName::Unrecognised => Doing::Task(Task::Unknown),
            _ => Doing::Other(class_of(&String::from_utf8_lossy(comm), owner.role)),
        };
        self.learned(tid, doing, Source::Comm);
    }

    /// Threads that were sampled, or had something to book, while their name was not known: for the caller to
    /// learn their names. Told once each.
    pub fn take_nameless(&mut self) -> Vec<(Pid, Tid)> {
        self.nameless.drain().collect()
    }

    /// The labels of a process changed: those made of the old ones are not given out any more.
    pub fn relabel(&mut self, from: &LabelSet) {
        self.labels.forget_process(from);
    }

    /// Forgets what is over. To be called about once a second.
    pub fn tick(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.drop_threads(|t| t.ended_ns.is_some_and(|at| now_ns.saturating_sub(at) > LINGER_NS));
        self.labels.sweep(now_ns);
    }

    /// Counts so far.
    pub fn counters(&self) -> ThreadCounters {
        ThreadCounters {
            threads: self.threads.len() as u64,
            label_sets: self.labels.len() as u64,
            ..self.counters
        }
    }

    /// The last few texts that begin like Spark's names and go on otherwise, escaped.
    pub fn unknown_formats(&self) -> impl Iterator<Item = &str> {
        self.unknown_formats.iter()
    }

    /// The shared set of these labels.
    pub(super) fn shared(&mut self, owner: &Owner<'_>, label: ThreadLabel) -> Arc<LabelSet> {
        let (labels, folded) = self.labels.get(owner.labels, label, self.now_ns, &self.limits);
        self.counters.folded += u64::from(folded);
        labels
    }

    /// The incarnation that a record is of; made if it is not there.
    pub(super) fn incarnation(&mut self, pid: Pid, tid: Tid, start_ns: u64, time_ns: u64) -> &mut Thread {
        self.now_ns = self.now_ns.max(time_ns);
        if !self.threads.get(&tid).is_some_and(|t| t.is(pid, start_ns)) {
            self.insert(tid, Thread::new(pid, start_ns, time_ns));
        }
        let thread = self.threads.entry(tid).or_insert_with(|| Thread::new(pid, start_ns, time_ns));
        if thread.start_ns == 0 {
            thread.start_ns = start_ns;
        }
        thread.heard_ns = thread.heard_ns.max(time_ns);
        thread
    }

    /// What a thread that was `thread` does under a name, which is counted.
    pub(super) fn read_name(&mut self, owner: &Owner<'_>, thread: Thread, name: &[u8]) -> Doing {
        let was = thread.doing;
        match name::parse(name) {
            TaskName::Running(id) => Doing::Task(self.admit(owner.pid, id, was.own_task())),
            TaskName::Idle => Doing::Idle(was.own_task()),
            TaskName::Pool => Doing::Other(ThreadClass::Task),
            TaskName::Unrecognised => {
                self.counters.unknown_formats += 1;
                self.unknown_formats.note(name);
                Doing::Task(Task::Unknown)
            }
            TaskName::NotATask => {
                let class = class_of(&String::from_utf8_lossy(name), owner.role);
                match (was, thread.born_to) {
                    // Only what runs in a task can give its thread a name between two of Spark's.
                    (Doing::Task(_), _) => {
                        self.counters.renamed_in_task += 1;
                        was
                    }
                    (Doing::Helper(..), _) => was,
                    (Doing::Nameless, Some(task)) if works_for_its_maker(name) => {
                        self.counters.inherited += 1;
                        Doing::Helper(class, task)
                    }
                    _ => Doing::Other(class),
                }
            }
        }
    }

    /// A thread whose name is asked for.
    pub(super) fn want_name(&mut self, pid: Pid, tid: Tid) {
        if self.nameless.len() < MAX_NAMELESS {
            self.nameless.insert((pid, tid));
        }
    }

    fn admit(&mut self, pid: Pid, id: TaskId, last: Option<Task>) -> Task {
        if last == Some(Task::Known(id)) {
            return Task::Known(id);
        }
        let (now, a_minute) = (self.now_ns, self.limits.tasks_a_minute);
        if self.processes.get_mut(&pid).is_some_and(|p| p.budget.take(now, a_minute)) {
            return Task::Known(id);
        }
        self.counters.folded += 1;
        Task::Folded
    }

    /// The thread as it is, if a name from `source` may replace what is known.
    fn learnable(&mut self, pid: Pid, tid: Tid, start_ns: u64, source: Source) -> Option<Thread> {
        self.nameless.remove(&(pid, tid));
        let known = self.threads.get(&tid).filter(|t| t.is(pid, start_ns));
        let may = known.is_none_or(|t| t.source <= source && t.seq == 0 && t.unheard.is_none());
        // Another incarnation that has not ended is the newer one.
        if !may || self.threads.get(&tid).is_some_and(|t| !t.is(pid, start_ns) && t.ended_ns.is_none()) {
            return None;
        }
        Some(self.incarnation(pid, tid, start_ns, self.now_ns).clone())
    }

    fn learned(&mut self, tid: Tid, doing: Doing, source: Source) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            (thread.doing, thread.source) = (doing, source);
            self.counters.learned += 1;
        }
    }

    /// A process has another program: none of its threads is left but the one that has its id now.
    fn on_exec(&mut self, pid: Pid) {
        if !self.processes.contains_key(&pid) {
            return;
        }
        let main = self.threads.remove(&pid).filter(|t| t.pid == pid);
        self.drop_threads(|t| t.pid == pid);
        self.processes.remove(&pid);
        if let Some(main) = main {
            let fresh = Thread { booked: main.booked, ..Thread::new(pid, main.start_ns, main.heard_ns) };
            self.insert(pid, fresh);
        }
    }

    fn insert(&mut self, tid: Tid, thread: Thread) {
        self.remove(tid);
        if self.threads.len() >= self.limits.threads {
            self.evict();
        }
        let process = self.processes.entry(thread.pid);
        process.or_insert(Process { threads: 0, budget: Budget::new() }).threads += 1;
        self.threads.insert(tid, thread);
    }

    /// Makes room: first those that ended, then the eighth that was not heard of for longest.
    fn evict(&mut self) {
        self.drop_threads(|t| t.ended_ns.is_some());
        let room = (self.limits.threads / 8).max(1);
        if self.threads.len() + room <= self.limits.threads {
            return;
        }
        let mut heard: Vec<u64> = self.threads.values().map(|t| t.heard_ns).collect();
        let (_, until, _) = heard.select_nth_unstable(room.min(self.threads.len()) - 1);
        let until = *until;
        let began = self.threads.values().filter(|t| t.heard_ns <= until).map(|t| t.start_ns).max();
        self.whole_since_ns = self.whole_since_ns.max(began.unwrap_or(0));
        let before = self.threads.len();
        self.drop_threads(|t| t.heard_ns <= until);
        self.counters.threads_evicted += (before - self.threads.len()) as u64;
    }

    fn remove(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.left(thread.pid);
        }
    }

    fn drop_threads(&mut self, mut over: impl FnMut(&Thread) -> bool) {
        let mut left = Vec::new();
        self.threads.retain(|_, thread| {
            let stays = !over(thread);
            if !stays {
                left.push(thread.pid);
            }
            stays
        });
        for pid in left {
            self.left(pid);
        }
    }

    fn left(&mut self, pid: Pid) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
    }

    pub(super) fn thread_mut(&mut self, tid: Tid) -> Option<&mut Thread> {
        self.threads.get_mut(&tid)
    }
}
