//! What a thread's record books: the difference of its accounts since the record before, to what the thread
//! did in between.
//!
//! In: records in the order in which they came up. Out: lines for the ledger. All that a thread uses is in
//! exactly one line, from its beginning (if it began after the daemon) or from its first record (if not) to
//! its end: lines telescope.
//! - After an idle rename the CPU time goes to the task before, since the kernel brings a running thread's
//!   accounts up to date only at ticks and switches: its last piece shows after the rename. The wall time of
//!   waiting does not: only as much as there was CPU time and waiting for a CPU.
//! - Until its first name a thread's time goes to that name's class, and to its maker's task if the maker ran
//!   one.
//! - Where a record was lost the difference goes to stage `unknown`.

use super::class::class_of;
use super::label::{Task, ThreadLabel};
use super::state::{Doing, Source, Thread};
use super::table::{Owner, OwnerKind, Threads};
use emberscope_model::{Accounts, LabelSet, LedgerSums, RawThread, ThreadCause, ThreadClass};
use std::sync::Arc;

/// A line for the ledger.
#[derive(Clone, Debug)]
pub struct Booking {
    /// The process's labels with the thread's.
    pub labels: Arc<LabelSet>,
    /// What was used. `begun` is 1 on the line that says that a thread took a task's name.
    pub sums: LedgerSums,
    /// Begin of the time in which it was used, CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// End of that time, CLOCK_MONOTONIC.
    pub until_ns: u64,
}

/// What a record says of the time since the one before.
enum Stretch {
    /// The thread did as we know.
    Known,
    /// The thread may have done as we know: one more record will tell.
    Unsure,
    /// The thread had a name, or names, that we did not hear of.
    Lost,
}

impl Threads {
    /// Takes in a record. Up to three lines come out: for the time since the record before one, or two when it
    /// waited for a task in it; and one for the task that begins.
    pub fn on_thread(&mut self, raw: &RawThread, owner: &Owner<'_>) -> Vec<Booking> {
        let mut lines = Vec::new();
        self.meet(raw, owner);
        let Some(thread) = self.thread_mut(raw.tid) else { return lines };
        let overtaken = thread.booked.is_some_and(|(_, until)| raw.time_ns < until);
        let was = thread.clone();
        let stretch = match raw.cause {
            _ if was.seq == raw.previous_seq => Stretch::Known,
            ThreadCause::Asked if overtaken => Stretch::Unsure,
            // A naming on another CPU may be overtaken by the answer.
            ThreadCause::Asked if was.unheard != Some(raw.name_seq) => Stretch::Unsure,
            _ => Stretch::Lost,
        };
        if matches!(stretch, Stretch::Unsure) || (overtaken && raw.cause == ThreadCause::Asked) {
            thread.unheard = if overtaken { was.unheard } else { Some(raw.name_seq) };
            self.counters.stale_records += u64::from(overtaken);
            return lines;
        }
        let now = match raw.cause {
            ThreadCause::Named => {
                self.counters.named += 1;
                let doing =
                    if matches!(stretch, Stretch::Lost) { Doing::Lost(was.doing.class()) } else { was.doing };
                self.read_name(owner, Thread { doing, ..was.clone() }, &raw.name)
            }
            ThreadCause::Bound { tid, seq } => self.bind(raw, (tid, seq)),
            _ if matches!(stretch, Stretch::Lost) => Doing::Lost(was.doing.class()),
            ThreadCause::Outlived => {
                self.outlive(raw.tid);
                was.doing
            }
            _ => was.doing,
        };
        if matches!(stretch, Stretch::Lost) {
            self.counters.names_lost += 1;
        }
        if now == Doing::Nameless {
            self.want_name(raw.pid, raw.tid);
            if raw.cause == ThreadCause::Asked && !was.waited {
                self.wait_once(raw.tid);
                return lines;
            }
        }
        self.book((owner, raw), (&was, &now), &stretch, &mut lines);
        self.settle(raw, &was, now, overtaken);
        lines
    }

    /// Makes sure that the record's thread is in the table, and that there is something to book from.
    fn meet(&mut self, raw: &RawThread, owner: &Owner<'_>) {
        let whole_since = self.whole_since_ns;
        self.process(raw.pid).tenant = owner.tenant;
        let thread = self.incarnation(raw.pid, raw.tid, raw.start_ns, raw.time_ns);
        if owner.kind == OwnerKind::Jvm
            && thread.source == Source::None
            && raw.tid == raw.pid
            && thread.doing == Doing::Nameless
        {
            // The JVM's first thread; the probe never sees its name.
            thread.doing = Doing::Other(class_of("main", owner.role));
        }
        if owner.kind.is_python() {
            self.begin_python(owner.kind, (raw.pid, raw.tid));
        }
        let Some(thread) = self.thread_mut(raw.tid) else { return };
        if thread.booked.is_none()
            && let Some(accounts) = raw.accounts
        {
            let whole = raw.start_ns > whole_since;
            let base = if whole { (Accounts::default(), raw.start_ns) } else { (accounts, raw.time_ns) };
            thread.booked = Some(base);
        }
    }

    /// The lines of a record that tells what its thread did.
    fn book(
        &mut self,
        (owner, raw): (&Owner<'_>, &RawThread),
        (was, now): (&Thread, &Doing),
        stretch: &Stretch,
        lines: &mut Vec<Booking>,
    ) {
        if let (Some(accounts), Some((base, from_ns))) = (raw.accounts, was.booked) {
            let wall_ns = raw.time_ns.saturating_sub(from_ns);
            let mut used = LedgerSums { accounts: accounts.since(&base), wall_ns, begun: 0 };
            // The JVM's sum is older than a thread that just began.
            used.accounts.paused_ns = used.accounts.paused_ns.min(wall_ns);
            for (label, sums) in self.split((owner, raw), (was, now), stretch, used) {
                if sums != LedgerSums::default() {
                    let labels = self.shared(owner, label);
                    lines.push(Booking { labels, sums, from_ns, until_ns: raw.time_ns.max(from_ns) });
                }
            }
            if let Doing::Task(task) = *now
                && raw.cause == ThreadCause::Named
                && !(matches!(task, Task::Known(_)) && was.doing.own_task() == Some(task))
            {
                let labels = self.shared(owner, ThreadLabel { class: ThreadClass::Task, task: Some(task) });
                let sums = LedgerSums { begun: 1, ..LedgerSums::default() };
                lines.push(Booking { labels, sums, from_ns: raw.time_ns, until_ns: raw.time_ns });
            }
        }
    }

    /// Who used what there is to book.
    fn split(
        &mut self,
        (owner, raw): (&Owner<'_>, &RawThread),
        (was, now): (&Thread, &Doing),
        stretch: &Stretch,
        used: LedgerSums,
    ) -> Vec<(ThreadLabel, LedgerSums)> {
        if matches!(stretch, Stretch::Lost) {
            self.counters.bookings_unknown += 1;
            let of_tasks = [was.doing.class(), now.class()].contains(&ThreadClass::Task);
            let class = if of_tasks { ThreadClass::Task } else { was.doing.class() };
            return vec![(ThreadLabel { class, task: Some(Task::Unknown) }, used)];
        }
        if owner.kind.is_python() {
            return self.split_python((owner, raw), (was, now), used);
        }
        match was.doing {
            Doing::Idle(Some(task)) => {
                let (busy, waited) = used.without_waiting();
                let class = ThreadClass::Task;
                vec![
                    (ThreadLabel { class, task: Some(task) }, busy),
                    (ThreadLabel { class, task: None }, waited),
                ]
            }
            // Its first name says what it was born for. A task's name cannot be the first of a thread that
            // we saw from its beginning: then there was another task before.
            Doing::Nameless if *now != Doing::Nameless => {
                let earlier = matches!(now, Doing::Task(_)).then_some(Task::Unknown);
                vec![(ThreadLabel { class: now.class(), task: was.born_to.or(earlier) }, used)]
            }
            doing => vec![(doing.label(was.born_to, owner.may_run_tasks()), used)],
        }
    }

    fn wait_once(&mut self, tid: u32) {
        if let Some(thread) = self.thread_mut(tid) {
            thread.waited = true;
        }
    }

    /// What the next record of the thread starts from.
    fn settle(&mut self, raw: &RawThread, was: &Thread, now: Doing, overtaken: bool) {
        let Some(thread) = self.thread_mut(raw.tid) else { return };
        if !overtaken {
            thread.booked = raw.accounts.map(|accounts| (accounts, raw.time_ns));
        }
        thread.unheard = None;
        thread.seq = raw.name_seq;
        thread.doing = now;
        if matches!(raw.cause, ThreadCause::Named | ThreadCause::Bound { .. } | ThreadCause::Outlived) {
            thread.source = Source::Kernel;
            thread.before = Some((raw.previous_seq, before(was, raw)));
        }
        if raw.cause == ThreadCause::Ended {
            thread.ended_ns = Some(raw.time_ns);
        }
    }
}

/// What the thread did under the number before.
fn before(was: &Thread, raw: &RawThread) -> Doing {
    if was.seq == raw.previous_seq { was.doing } else { Doing::Lost(was.doing.class()) }
}
