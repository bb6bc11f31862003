//! Which task the threads of PySpark's Python processes work for.
//!
//! In: bindings of workers' main threads ([`ThreadCause::Bound`]), and what the task's thread is called since. Out: the
//! labels of samples, and whose the time between two records is. A worker works for one task at a time; all its threads do.
//! Only a binding to a thread that has still the name that the task gave it counts: else the stage is `unknown`, never that
//! of the task before. But for what the main thread does until it receives something, where the kernel side sees that
//! ([`ThreadCause::Outlived`]): it cleans up after the task before.

use super::label::{Task, ThreadLabel};
use super::state::{Bound, Doing, Source, Thread};
use super::table::{Owner, OwnerKind, Threads};
use emberscope_model::{LedgerSums, Pid, RawThread, ThreadCause, ThreadClass, Tid};

/// What a thread does that works for a task, or for one that is not known.
const UNBOUND: Doing = Doing::Helper(ThreadClass::Python, Task::Unknown);
/// What a thread does that works for no task of its own, but for all.
const OF_NONE: Doing = Doing::Other(ThreadClass::Python);

impl Threads {
    /// Labels of a sample of a Python process's thread.
    pub(super) fn python_label(&mut self, owner: &Owner<'_>, tid: Tid, name_seq: u32) -> ThreadLabel {
        let label = match owner.kind {
            OwnerKind::Worker if tid == owner.pid => self.main_thread(owner, name_seq),
            OwnerKind::Worker => self.bound_now(owner),
            _ => OF_NONE,
        }
        .label(None, true);
        if label.task == Some(Task::Unknown) {
            self.counters.samples_unbound += 1;
        }
        label
    }

    /// What a worker's main thread did with this number.
    fn main_thread(&self, owner: &Owner<'_>, name_seq: u32) -> Doing {
        match self.thread(owner.pid).filter(|thread| thread.pid == owner.pid) {
            Some(thread) if thread.seq == name_seq => {
                let cleans_up = thread.bound.is_some_and(|bound| bound.outlived);
                if cleans_up { thread.doing } else { self.still(thread) }
            }
            Some(Thread { before: Some((seq, doing)), .. }) if *seq == name_seq => *doing,
            None if name_seq == 0 => self.started_for(owner.pid),
            _ => UNBOUND,
        }
    }

    /// What a worker does that has exchanged nothing yet. One that is no fork of a Python daemon was started by its task's
    /// thread (spark.python.use.daemon=false), and works for no other.
    fn started_for(&self, pid: Pid) -> Doing {
        let Some(bound) = self.started.get(&pid).filter(|bound| !self.is_over(**bound)) else {
            return UNBOUND;
        };
        match self.thread(bound.tid).map(|task| task.doing) {
            Some(Doing::Task(task)) => Doing::Helper(ThreadClass::Python, task),
            _ => UNBOUND,
        }
    }

    /// What all threads of a worker do now.
    fn bound_now(&self, owner: &Owner<'_>) -> Doing {
        let main = self.thread(owner.pid).filter(|thread| thread.pid == owner.pid);
        main.map_or_else(|| self.started_for(owner.pid), |main| self.still(main))
    }

    /// What a worker's main thread does, if its task is not over.
    fn still(&self, main: &Thread) -> Doing {
        match main.bound {
            Some(bound) if self.is_over(bound) => UNBOUND,
            Some(_) => main.doing,
            None => self.started_for(main.pid),
        }
    }

    fn is_over(&self, bound: Bound) -> bool {
        self.thread(bound.tid).is_none_or(|task| task.seq != bound.seq)
    }

    /// What a thread of a Python process does before anything is heard of it.
    pub(super) fn begin_python(&mut self, kind: OwnerKind, (pid, tid): (Pid, Tid)) {
        let doing = match kind {
            OwnerKind::Worker if tid == pid => self.started_for(pid),
            OwnerKind::Worker => UNBOUND,
            _ => OF_NONE,
        };
        if let Some(thread) = self.thread_mut(tid)
            && thread.doing == Doing::Nameless
        {
            thread.doing = doing;
            thread.source = Source::Kernel;
        }
    }

    /// The task whose thread a worker was bound to; thread 0 is none, when its task is over.
    pub(super) fn bind(&mut self, raw: &RawThread, (tid, seq): (Tid, u32)) -> Doing {
        self.counters.bound += u64::from(tid != 0);
        let bound = Bound { tid, seq, since_ns: raw.time_ns, outlived: false };
        let doing = match self.thread(tid) {
            Some(task) if task.seq == seq => task.doing,
            Some(Thread { before: Some((before, doing)), .. }) if *before == seq => *doing,
            _ => Doing::Nameless,
        };
        if let Some(worker) = self.thread_mut(raw.tid) {
            worker.bound = Some(bound);
        }
        match doing {
            Doing::Task(task) => Doing::Helper(ThreadClass::Python, task),
            _ => UNBOUND,
        }
    }

    /// A worker's task is over, and its main thread goes on for it.
    pub(super) fn outlive(&mut self, tid: Tid) {
        if let Some(bound) = self.thread_mut(tid).and_then(|worker| worker.bound.as_mut()) {
            bound.outlived = true;
        }
    }

    /// Who used what a worker's thread used since its last record, `was` being how it was then and `now` what it does.
    /// Its first task has what the worker did before: it was made for it. Between two tasks it waits: that is nobody's
    /// time.
    pub(super) fn split_python(
        &self,
        (owner, raw): (&Owner<'_>, &RawThread),
        (was, now): (&Thread, &Doing),
        used: LedgerSums,
    ) -> Vec<(ThreadLabel, LedgerSums)> {
        let from_ns = was.booked.map_or(0, |(_, until)| until);
        let (doing, waits) = if owner.kind == OwnerKind::Daemon {
            (OF_NONE, false)
        } else if raw.tid == owner.pid {
            let waits = match (raw.cause, was.bound) {
                // Just now, or some time ago.
                (ThreadCause::Bound { tid: 0, .. }, bound) => {
                    was.doing == UNBOUND || bound.is_some_and(|bound| bound.outlived)
                }
                (ThreadCause::Bound { .. }, bound) => bound.is_some(),
                (_, Some(bound)) => was.doing == UNBOUND || self.is_over(bound),
                (_, None) => false,
            };
            let first = matches!(raw.cause, ThreadCause::Bound { .. }) && was.bound.is_none();
            (if first { *now } else { was.doing }, waits)
        } else {
            let main = self.thread(owner.pid).and_then(|main| main.bound);
            // What it did for the task before cannot be told from what it does now.
            let one = main.is_some_and(|bound| bound.since_ns <= from_ns);
            (if one { self.bound_now(owner) } else { UNBOUND }, false)
        };
        let label = doing.label(None, true);
        if !waits {
            return vec![(label, used)];
        }
        let (busy, waited) = used.without_waiting();
        vec![(label, busy), (ThreadLabel { task: None, ..label }, waited)]
    }
}
