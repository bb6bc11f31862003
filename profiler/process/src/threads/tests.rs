//! Whole lives of threads: what their samples are labelled, and what their records book.

use super::*;
use emberscope_model::{
    Accounts, LabelKey, LabelSet, LabelSetBuilder, Pid, RawTask, RawThread, Role, TaskEvent, Tenant,
    ThreadCause, Tid,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

mod classes;
mod limits;
mod python;
mod sums;
mod who;

const MS: u64 = 1_000_000;
/// The daemon began here; times in the tests are milliseconds after it.
const START: u64 = 1_000_000 * MS;
const PID: Pid = 100;
const TASK_1: &str = "Executor task launch worker for task 1.0 in stage 3.0 (TID 7)";
const TASK_2: &str = "Executor task launch worker for task 2.1 in stage 3.0 (TID 8)";
const POOL: &str = "Executor task launch worker-0";
const IDLE: &str = "Executor task idle worker#57";

struct World {
    threads: Threads,
    labels: Arc<LabelSet>,
    role: Role,
    tenant: Tenant,
}

impl World {
    fn new(limits: Limits) -> Self {
        let labels =
            LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::Pid, PID.to_string()).build();
        Self {
            threads: Threads::new(limits, START),
            labels: Arc::new(labels),
            role: Role::Executor,
            tenant: Tenant::default(),
        }
    }
    /// Its threads began before the daemon unless `begun_ms` says otherwise.
    fn record(&mut self, raw: RawThread) -> Vec<(String, u64, u64, u64)> {
        let owner = Owner {
            pid: raw.pid,
            labels: &self.labels,
            role: self.role,
            kind: OwnerKind::Jvm,
            tenant: self.tenant,
        };
        let lines = self.threads.on_thread(&raw, &owner);
        lines
            .iter()
            .map(|b| {
                assert!(b.from_ns <= b.until_ns);
                (who(&b.labels), b.sums.accounts.cpu_ns / MS, b.sums.wall_ns / MS, b.sums.begun)
            })
            .collect()
    }
    fn sample(&mut self, tid: Tid, seq: u32) -> String {
        who(&self.labels_of(tid, seq))
    }
    fn labels_of(&mut self, tid: Tid, seq: u32) -> Arc<LabelSet> {
        let owner = Owner {
            pid: PID,
            labels: &self.labels,
            role: self.role,
            kind: OwnerKind::Jvm,
            tenant: self.tenant,
        };
        self.threads.labels(&owner, tid, seq)
    }
    fn task(&mut self, tid: Tid, at: u64, event: TaskEvent) {
        self.threads.on_task(&RawTask { time_ns: START + at * MS, pid: PID, tid, event });
    }
    fn fork(&mut self, tid: Tid, parent_tid: Tid, at: u64) {
        self.task(tid, at, TaskEvent::Fork { parent_pid: PID, parent_tid });
    }
    fn learn(&mut self, tid: Tid, name: &str) {
        let owner = Owner {
            pid: PID,
            labels: &self.labels,
            role: self.role,
            kind: OwnerKind::Jvm,
            tenant: self.tenant,
        };
        self.threads.learn(&owner, tid, 0, name.as_bytes());
    }
    fn learn_comm(&mut self, tid: Tid, comm: &str) {
        let owner = Owner {
            pid: PID,
            labels: &self.labels,
            role: self.role,
            kind: OwnerKind::Jvm,
            tenant: self.tenant,
        };
        self.threads.learn_comm(&owner, tid, comm.as_bytes());
    }
}

/// `class` or `class stage/attempt index/attempt tid`.
fn who(labels: &LabelSet) -> String {
    assert_eq!((labels.get(LabelKey::App), labels.get(LabelKey::Pid)), ("a", "100"));
    let of = |key| labels.get(key);
    let class = of(LabelKey::ThreadClass);
    if of(LabelKey::TaskIndex).is_empty() {
        return [class, of(LabelKey::Stage), of(LabelKey::Task)].join(" ").trim_end().to_owned();
    }
    format!(
        "{class} {}.{} {}.{} {}",
        of(LabelKey::Stage),
        of(LabelKey::StageAttempt),
        of(LabelKey::TaskIndex),
        of(LabelKey::TaskAttempt),
        of(LabelKey::Task)
    )
}

const OLD: u64 = START - MS;

fn raw(cause: ThreadCause, tid: Tid, (previous, seq): (u32, u32), at: u64, cpu: u64) -> RawThread {
    RawThread {
        time_ns: START + at * MS,
        start_ns: OLD,
        pid: PID,
        tid,
        name_seq: seq,
        previous_seq: previous,
        cause,
        name: Box::default(),
        accounts: Some(Accounts { cpu_ns: cpu * MS, ..Accounts::default() }),
    }
}
fn named(tid: Tid, seqs: (u32, u32), name: &str, at: u64, cpu: u64) -> RawThread {
    RawThread { name: name.as_bytes().into(), ..raw(ThreadCause::Named, tid, seqs, at, cpu) }
}
fn asked(tid: Tid, seq: u32, at: u64, cpu: u64) -> RawThread {
    raw(ThreadCause::Asked, tid, (seq, seq), at, cpu)
}
fn ended(tid: Tid, seq: u32, at: u64, cpu: u64) -> RawThread {
    raw(ThreadCause::Ended, tid, (seq, seq), at, cpu)
}
fn line(who: &str, cpu: u64, wall: u64, begun: u64) -> (String, u64, u64, u64) {
    (who.to_owned(), cpu, wall, begun)
}
/// A thread that began `at` milliseconds after the daemon.
fn young(raw: RawThread, at: u64) -> RawThread {
    RawThread { start_ns: START + at * MS, ..raw }
}

#[test]
fn two_tasks_of_spark_3() {
    let mut w = World::new(Limits::default());
    let pool = w.record(young(named(5, (0, 1), POOL, 10, 1), 9));
    assert_eq!(pool, [line("task", 1, 1, 0)], "from its beginning to its first name");
    assert_eq!(w.sample(5, 1), "task");
    let first = w.record(young(named(5, (1, 2), TASK_1, 12, 2), 9));
    assert_eq!(first, [line("task", 1, 2, 0), line("task 3.0 1.0 7", 0, 0, 1)]);
    assert_eq!(w.sample(5, 2), "task 3.0 1.0 7");
    assert_eq!(w.sample(5, 1), "task", "taken before the naming, read after it");
    let mid = w.record(young(asked(5, 2, 20, 7), 9));
    assert_eq!(mid, [line("task 3.0 1.0 7", 5, 8, 0)]);
    let second = w.record(young(named(5, (2, 3), TASK_2, 30, 10), 9));
    assert_eq!(second, [line("task 3.0 1.0 7", 3, 10, 0), line("task 3.0 2.1 8", 0, 0, 1)]);
    assert_eq!((w.sample(5, 3), w.sample(5, 2)), ("task 3.0 2.1 8".into(), "task 3.0 1.0 7".into()));
    let last = w.record(young(ended(5, 3, 40, 14), 9));
    assert_eq!(last, [line("task 3.0 2.1 8", 4, 10, 0)]);
    // Its samples may still be on their way.
    w.threads.tick(START + 41 * MS);
    assert_eq!(w.sample(5, 3), "task 3.0 2.1 8");
    w.threads.tick(START + 10_000 * MS);
    assert_eq!(w.threads.counters().threads, 0);
    assert_eq!(w.sample(5, 3), "other unknown");
}

#[test]
fn after_an_idle_rename_cpu_time_is_the_tasks_and_waiting_is_not() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 100));
    assert_eq!(w.record(named(5, (1, 2), IDLE, 50, 130)), [line("task 3.0 1.0 7", 30, 50, 0)]);
    assert_eq!(w.sample(5, 2), "task");
    let waited = [line("task 3.0 1.0 7", 4, 4, 0), line("task", 0, 946, 0)];
    assert_eq!(w.record(asked(5, 2, 1000, 134)), waited);
    let next = w.record(named(5, (2, 3), TASK_2, 2000, 135));
    assert_eq!(
        next,
        [line("task 3.0 1.0 7", 1, 1, 0), line("task", 0, 999, 0), line("task 3.0 2.1 8", 0, 0, 1)]
    );
    assert_eq!(w.sample(5, 3), "task 3.0 2.1 8");
    // Idle without a task that is known.
    assert_eq!(w.record(named(6, (0, 4), IDLE, 2000, 5)), []);
    assert_eq!(w.record(asked(6, 4, 2010, 6)), [line("task", 1, 10, 0)]);
}

#[test]
fn a_lost_naming_is_unknown_and_never_the_old_task() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    // Number 2 was given and its record lost.
    assert_eq!(w.sample(5, 2), "task unknown");
    let third = w.record(named(5, (2, 3), TASK_2, 10, 8));
    assert_eq!(third, [line("task unknown", 8, 10, 0), line("task 3.0 2.1 8", 0, 0, 1)]);
    assert_eq!((w.sample(5, 2), w.sample(5, 3)), ("task unknown".into(), "task 3.0 2.1 8".into()));
    // A name that is not Spark's does not bring the old task back.
    assert_eq!(w.record(named(6, (0, 4), TASK_1, 10, 0)), [line("task 3.0 1.0 7", 0, 0, 1)]);
    w.record(named(6, (5, 6), "mine", 11, 0));
    assert_eq!(w.sample(6, 6), "task unknown");
    assert_eq!(w.record(ended(5, 9, 20, 9)), [line("task unknown", 1, 10, 0)]);
    let counters = w.threads.counters();
    assert_eq!((counters.names_lost, counters.bookings_unknown, counters.samples_nameless), (3, 3, 2));
    // Of a thread that was never heard of nothing is known, whatever the number.
    assert_eq!(w.sample(77, 12), "other unknown");
    assert!(w.threads.take_nameless().contains(&(PID, 77)));
    assert!(w.threads.take_nameless().is_empty());
}

#[test]
fn an_answer_may_overtake_a_naming() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    // The answer has the new number already; its naming comes after it.
    assert_eq!(w.record(asked(5, 2, 10, 5)), []);
    let second = w.record(named(5, (1, 2), TASK_2, 10, 5));
    assert_eq!(second, [line("task 3.0 1.0 7", 5, 10, 0), line("task 3.0 2.1 8", 0, 0, 1)]);
    // An answer that is older than the naming before it says nothing new.
    assert_eq!(w.record(asked(5, 1, 9, 4)), []);
    assert_eq!(w.record(asked(5, 2, 20, 9)), [line("task 3.0 2.1 8", 4, 10, 0)]);
    // A naming that is older than the answer before it is still a naming, and books nothing twice.
    let named_late = w.record(named(5, (2, 3), TASK_1, 19, 8));
    assert_eq!(named_late, [line("task 3.0 1.0 7", 0, 0, 1)]);
    assert_eq!(w.record(asked(5, 3, 30, 12)), [line("task 3.0 1.0 7", 3, 10, 0)]);
    // When the number is there again the naming was lost.
    assert_eq!(w.record(asked(5, 4, 40, 20)), []);
    assert_eq!(w.record(asked(5, 4, 50, 21)), [line("task unknown", 9, 20, 0)]);
    assert_eq!(w.record(asked(5, 4, 60, 22)), [line("task unknown", 1, 10, 0)]);
    assert_eq!(w.threads.counters().names_lost, 1);
}

#[test]
fn only_what_was_used_since_the_daemon_began_is_booked() {
    let mut w = World::new(Limits::default());
    assert_eq!(w.record(named(5, (0, 1), "GC Thread#0", 10, 5_000)), []);
    assert_eq!(w.record(asked(5, 1, 20, 5_003)), [line("gc", 3, 10, 0)]);
    let begun = young(named(6, (0, 2), "C2 CompilerThread0", 10, 4), 5);
    assert_eq!(w.record(begun), [line("jit", 4, 5, 0)]);
    // A kernel that does not tell accounts: names count, nothing is booked.
    let mute = RawThread { accounts: None, ..named(7, (0, 3), TASK_1, 10, 0) };
    assert_eq!(w.record(mute), []);
    assert_eq!(w.sample(7, 3), "task 3.0 1.0 7");
}

#[test]
fn a_tid_that_is_used_again_inherits_nothing() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.fork(5, 2, 10);
    assert_eq!(w.sample(5, 0), "other unknown");
    assert_eq!(w.record(young(named(5, (0, 2), "GC Thread#1", 12, 3), 10)), [line("gc", 3, 2, 0)]);
    // The fork was lost; the start tells.
    let again = young(named(5, (0, 3), TASK_2, 30, 1), 29);
    assert_eq!(w.record(again), [line("task unknown", 1, 1, 0), line("task 3.0 2.1 8", 0, 0, 1)]);
    w.task(5, 31, TaskEvent::Exit);
    let last = young(ended(5, 3, 31, 2), 29);
    assert_eq!(w.record(last), [line("task 3.0 2.1 8", 1, 1, 0)], "an exit may come before the record");
    w.threads.tick(START + 60_000 * MS);
    assert_eq!(w.threads.counters().threads, 0);
    // Another program in the same process.
    w.record(named(6, (0, 4), TASK_1, 70_000, 0));
    w.record(young(asked(PID, 0, 70_000, 9), 1));
    w.task(PID, 70_001, TaskEvent::Exec);
    assert_eq!(w.sample(6, 4), "other unknown");
    assert_eq!(w.record(young(asked(PID, 0, 70_010, 11), 1)), [line("vm", 2, 10, 0)], "and nothing twice");
}
