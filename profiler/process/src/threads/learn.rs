//! Names into what threads do: the kernel's names, and those learned otherwise.
//!
//! In: a name as bytes of anything, or a comm. Out: what the thread does. What the kernel said stands; what the
//! JVM's memory says is better than a comm. A process may name so many new tasks a minute; more fold.

use super::class::class_of;
use super::helper::works_for_its_maker;
use super::label::Task;
use super::name::{self, TaskId, TaskName};
use super::state::{Doing, Source, Thread};
use super::table::{Owner, OwnerKind, Threads};
use emberscope_model::{Pid, ThreadClass, Tid};

/// Threads without a name that are told of at once.
const MAX_NAMELESS: usize = 1024;

impl Threads {
    /// A name that was read from the JVM's memory. `start_ns` is the thread's beginning, 0 if not known.
    /// What the kernel said of the thread stands.
    pub fn learn(&mut self, owner: &Owner<'_>, tid: Tid, start_ns: u64, name: &[u8]) {
        let Some(parsed) = self.learnable(owner.pid, tid, start_ns, Source::Memory) else { return };
        let doing = self.read_name(owner, parsed, name);
        self.learned(tid, doing, Source::Memory);
    }

    /// A thread's comm, from /proc/PID/task/TID/comm: the weakest source.
    pub fn learn_comm(&mut self, owner: &Owner<'_>, tid: Tid, comm: &[u8]) {
        let class = class_of(&String::from_utf8_lossy(comm), owner.role);
        if let Some(thread) = self.thread_mut(tid)
            && thread.pid == owner.pid
            && matches!(thread.doing, Doing::Lost(_))
        {
            // All that can be known of it until it is named again.
            thread.doing = Doing::Lost(class);
            self.nameless.remove(&(owner.pid, tid));
            return;
        }
        let Some(thread) = self.learnable(owner.pid, tid, 0, Source::Comm) else { return };
        // A thread without a name has its maker's comm.
        if thread.born_to.is_some() {
            return;
        }
        let doing = match name::parse_comm(comm) {
            TaskName::Idle => Doing::Idle(None),
            TaskName::Unrecognised => Doing::Task(Task::Unknown),
            _ => Doing::Other(class),
        };
        self.learned(tid, doing, Source::Comm);
    }

    /// Nothing is known of a JVM's thread, and its comm would tell something: a thread that works for the task
    /// of its maker has its maker's comm until it is named.
    pub fn is_new(&self, owner: &Owner<'_>, tid: Tid) -> bool {
        let known = self.thread(tid).filter(|t| t.pid == owner.pid);
        let told = |t: &Thread| t.source != Source::None || t.doing != Doing::Nameless || t.born_to.is_some();
        owner.kind == OwnerKind::Jvm && tid != owner.pid && !known.is_some_and(told)
    }

    /// Threads that were sampled, or had something to book, while their name was not known: for the caller to
    /// learn their names. Told once each.
    pub fn take_nameless(&mut self) -> Vec<(Pid, Tid)> {
        self.nameless.drain().collect()
    }

    /// A thread whose name is asked for.
    pub(super) fn want_name(&mut self, pid: Pid, tid: Tid) {
        if self.nameless.len() < MAX_NAMELESS {
            self.nameless.insert((pid, tid));
        }
    }

    /// What a thread that was `thread` does under a name, which is counted. `thread.doing` is `Lost` where it
    /// may have had other names meanwhile.
    pub(super) fn read_name(&mut self, owner: &Owner<'_>, thread: Thread, name: &[u8]) -> Doing {
        let was = thread.doing;
        match name::parse(name) {
            TaskName::Running(id) => Doing::Task(self.admit(owner, id, was.own_task())),
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
                    (Doing::Lost(ThreadClass::Task), _) => Doing::Task(Task::Unknown),
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

    fn admit(&mut self, owner: &Owner<'_>, id: TaskId, last: Option<Task>) -> Task {
        if last == Some(Task::Known(id)) {
            return Task::Known(id);
        }
        let (now, limits) = (self.now_ns, self.limits);
        let a_minute =
            if owner.tenant.spark { limits.tasks_a_minute } else { limits.tasks_a_minute_elsewhere };
        if self.processes.get_mut(&owner.pid).is_some_and(|p| p.budget.take(now, a_minute)) {
            return Task::Known(id);
        }
        self.counters.folded += 1;
        Task::Folded
    }

    /// The thread as it is, if a name from `source` may replace what is known.
    fn learnable(&mut self, pid: Pid, tid: Tid, start_ns: u64, source: Source) -> Option<Thread> {
        self.nameless.remove(&(pid, tid));
        let known = self.thread(tid).filter(|t| t.is(pid, start_ns));
        let may = known.is_none_or(|t| t.source <= source && t.seq == 0 && t.unheard.is_none());
        // Another incarnation that has not ended is the newer one.
        if !may || self.thread(tid).is_some_and(|t| !t.is(pid, start_ns) && t.ended_ns.is_none()) {
            return None;
        }
        Some(self.incarnation(pid, tid, start_ns, self.now_ns).clone())
    }

    fn learned(&mut self, tid: Tid, doing: Doing, source: Source) {
        if let Some(thread) = self.thread_mut(tid) {
            (thread.doing, thread.source) = (doing, source);
            self.counters.learned += 1;
        }
    }
}
