//! Workers of PySpark: whose their samples and their time are.

use super::*;

const WORKER: Pid = 300;

fn owner<'a>(labels: &'a Arc<LabelSet>, kind: OwnerKind) -> Owner<'a> {
    Owner { pid: WORKER, labels, role: Role::Python, kind, tenant: Tenant::default() }
}

impl World {
    fn python(&mut self, kind: OwnerKind, tid: Tid, seq: u32) -> String {
        let labels = self.labels.clone();
        who(&self.threads.labels(&owner(&labels, kind), tid, seq))
    }
    fn worker_record(&mut self, raw: RawThread) -> Vec<(String, u64, u64, u64)> {
        let labels = self.labels.clone();
        let lines = self.threads.on_thread(&raw, &owner(&labels, OwnerKind::Worker));
        let line =
            |b: &Booking| (who(&b.labels), b.sums.accounts.cpu_ns / MS, b.sums.wall_ns / MS, b.sums.begun);
        lines.iter().map(line).collect()
    }
}

fn of_worker(mut raw: RawThread) -> RawThread {
    (raw.pid, raw.start_ns) = (WORKER, START + 5 * MS);
    raw
}
fn bound(seqs: (u32, u32), (tid, seq): (Tid, u32), at: u64, cpu: u64) -> RawThread {
    of_worker(raw(ThreadCause::Bound { tid, seq }, WORKER, seqs, at, cpu))
}

#[test]
fn a_worker_works_for_the_task_that_it_is_bound_to_until_that_is_over() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.record(named(6, (0, 2), TASK_2, 0, 0));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python unknown", "made, and not bound yet");
    // It was made for its first task.
    assert_eq!(w.worker_record(bound((0, 3), (5, 1), 10, 4)), [line("python 3.0 1.0 7", 4, 5, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 3), "python 3.0 1.0 7");
    assert_eq!(w.python(OwnerKind::Worker, 301, 0), "python 3.0 1.0 7", "all its threads");
    // Waiting for input is the task's as long as it is bound.
    let lines = w.worker_record(of_worker(asked(WORKER, 3, 30, 14)));
    assert_eq!(lines, [line("python 3.0 1.0 7", 10, 20, 0)]);
    // Then it waits for the next task, which another thread runs.
    let lines = w.worker_record(bound((3, 4), (6, 2), 50, 16));
    assert_eq!(lines, [line("python 3.0 1.0 7", 2, 2, 0), line("python", 0, 18, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 4), "python 3.0 2.1 8");
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 3), "python 3.0 1.0 7", "taken before, come up after");
    // Its task is over: its thread has another name.
    w.record(named(6, (2, 9), IDLE, 60, 0));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 4), "python unknown");
    assert_eq!(w.python(OwnerKind::Worker, 301, 0), "python unknown");
    let lines = w.worker_record(of_worker(ended(WORKER, 4, 80, 17)));
    assert_eq!(lines, [line("python 3.0 2.1 8", 1, 1, 0), line("python", 0, 29, 0)]);
    let counters = w.threads.counters();
    assert_eq!((counters.bound, counters.samples_unbound), (2, 3));
}

#[test]
fn a_worker_that_its_task_started_is_its_from_the_beginning() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.record(named(6, (0, 2), "GC Thread#1", 0, 0));
    let task = |at, event| RawTask { time_ns: START + at * MS, pid: WORKER, tid: WORKER, event };
    let by = |parent_tid| TaskEvent::Fork { parent_pid: PID, parent_tid };
    w.threads.on_task(&task(4, by(6)));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python unknown", "not by a task's thread");
    w.threads.on_task(&task(5, by(5)));
    // It becomes the program that sets the worker up, then the worker.
    w.threads.on_task(&task(5, TaskEvent::Exec));
    w.threads.on_task(&task(6, TaskEvent::Exec));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python 3.0 1.0 7");
    assert_eq!(w.python(OwnerKind::Worker, 301, 0), "python 3.0 1.0 7", "all its threads");
    assert_eq!(w.python(OwnerKind::Daemon, WORKER, 0), "python", "a daemon outlives who started it");
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 9), "python unknown", "a number that nobody announced");
    let lines = w.worker_record(of_worker(asked(WORKER, 0, 20, 12)));
    assert_eq!(lines, [line("python 3.0 1.0 7", 12, 15, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python 3.0 1.0 7");
    // The task is over, and the worker has never exchanged anything with it.
    w.record(named(5, (1, 3), IDLE, 30, 0));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python unknown");
    // Another process with the same pid.
    w.record(named(5, (3, 4), TASK_1, 40, 0));
    w.threads.on_task(&task(41, by(5)));
    w.threads.on_task(&task(42, TaskEvent::Exit));
    w.threads.on_task(&task(43, TaskEvent::Fork { parent_pid: 77, parent_tid: 77 }));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 0), "python unknown");
}

#[test]
fn a_worker_whose_task_is_over_works_for_none() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.worker_record(bound((0, 3), (5, 1), 10, 4));
    // Waiting until then was the task's; then it cleans up.
    w.record(named(5, (1, 2), TASK_2, 40, 0));
    assert_eq!(w.worker_record(bound((3, 4), (0, 0), 40, 14)), [line("python 3.0 1.0 7", 10, 30, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 4), "python unknown");
    let lines = w.worker_record(bound((4, 5), (5, 2), 60, 17));
    assert_eq!(lines, [line("python unknown", 3, 3, 0), line("python", 0, 17, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 5), "python 3.0 2.1 8");
    assert_eq!(w.threads.counters().bound, 2);
}

#[test]
fn a_worker_cleans_up_after_its_task_until_it_receives_something() {
    let mut w = World::new(Limits::default());
    let outlived = |seqs, at, cpu| of_worker(raw(ThreadCause::Outlived, WORKER, seqs, at, cpu));
    let lines = |task, busy, idle| [line(task, busy, busy, 0), line("python", 0, idle, 0)];
    let (one, two) = ("python 3.0 1.0 7", "python 3.0 2.1 8");
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.worker_record(bound((0, 3), (5, 1), 10, 4));
    // Waiting until then was the task's; after it nobody waits.
    assert_eq!(w.worker_record(outlived((3, 4), 40, 14)), [line(one, 10, 30, 0)]);
    w.record(named(5, (1, 2), TASK_2, 40, 0));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 4), one);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 3), one, "taken before, come up after");
    assert_eq!(w.python(OwnerKind::Worker, 301, 0), "python unknown", "its other threads");
    assert_eq!(w.worker_record(of_worker(asked(WORKER, 4, 60, 17))), lines(one, 3, 17));
    // It is bound while it still cleans up.
    assert_eq!(w.worker_record(bound((4, 5), (5, 2), 80, 19)), lines(one, 2, 18));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 5), two);
    // Another time it receives something of a task whose name did not come.
    assert_eq!(w.worker_record(outlived((5, 6), 90, 24)), [line(two, 5, 10, 0)]);
    w.record(named(5, (2, 9), IDLE, 90, 0));
    assert_eq!(w.worker_record(bound((6, 7), (0, 0), 120, 26)), lines(two, 2, 28));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 7), "python unknown");
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 6), two, "taken before, come up after");
    // A binding before it was lost: whose task was over is not known.
    w.record(named(5, (9, 10), TASK_1, 130, 0));
    w.worker_record(bound((7, 8), (5, 10), 130, 26));
    assert_eq!(w.worker_record(outlived((11, 12), 140, 28)), [line("python unknown", 2, 10, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 12), "python unknown");
}

#[test]
fn what_was_not_heard_of_binds_to_nothing() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    // A name whose record was lost, a thread that nobody knows, a thread that runs no task.
    w.record(named(6, (0, 2), "GC Thread#1", 0, 0));
    for (seqs, task) in [((0, 10), (5, 77)), ((10, 11), (99, 1)), ((11, 12), (6, 2))] {
        w.worker_record(bound(seqs, task, 10, 4));
        assert_eq!(w.python(OwnerKind::Worker, WORKER, seqs.1), "python unknown");
    }
    // A binding that was lost: its number means nothing, nor does the one before.
    w.worker_record(bound((12, 13), (5, 1), 20, 4));
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 13), "python 3.0 1.0 7");
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 14), "python unknown");
    let lines = w.worker_record(bound((14, 15), (5, 1), 30, 9));
    assert_eq!(lines, [line("python unknown", 5, 10, 0)]);
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 15), "python 3.0 1.0 7");
    // A worker's other program has none of it.
    w.threads.on_task(&RawTask {
        time_ns: START + 40 * MS,
        pid: WORKER,
        tid: WORKER,
        event: TaskEvent::Exec,
    });
    assert_eq!(w.python(OwnerKind::Worker, WORKER, 15), "python unknown");
}

#[test]
fn other_threads_of_a_worker_and_its_daemon() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.record(named(6, (0, 2), TASK_2, 0, 0));
    let of_pool = |raw| RawThread { start_ns: START + 6 * MS, ..of_worker(raw) };
    w.worker_record(bound((0, 3), (5, 1), 10, 0));
    assert_eq!(w.worker_record(of_pool(asked(301, 0, 20, 3))), [line("python unknown", 3, 14, 0)]);
    assert_eq!(w.worker_record(of_pool(asked(301, 0, 30, 5))), [line("python 3.0 1.0 7", 2, 10, 0)]);
    w.worker_record(bound((3, 4), (6, 2), 35, 0));
    // Part of it was for the task before.
    assert_eq!(w.worker_record(of_pool(asked(301, 0, 40, 9))), [line("python unknown", 4, 10, 0)]);
    assert_eq!(w.worker_record(of_pool(ended(301, 0, 50, 10))), [line("python 3.0 2.1 8", 1, 10, 0)]);

    let labels = w.labels.clone();
    let daemon = owner(&labels, OwnerKind::Daemon);
    let lines = w.threads.on_thread(&RawThread { tid: 400, ..of_pool(asked(400, 0, 60, 7)) }, &daemon);
    assert_eq!(lines.iter().map(|line| who(&line.labels)).collect::<Vec<_>>(), ["python"]);
    assert_eq!(w.python(OwnerKind::Daemon, 400, 0), "python");
}

proptest! {
    #[test]
    fn all_that_a_worker_used_is_booked_once(
        steps in proptest::collection::vec((0..5u32, 1..50u64, 0..60u64), 1..40),
    ) {
        let mut w = World::new(Limits::default());
        let (mut at, mut cpu, mut seq, mut booked, mut wall) = (10, 0, 0, 0, 0);
        for tid in 5..8 {
            w.record(named(tid, (0, tid), TASK_1, 0, 0));
        }
        for (what, passed, used) in steps {
            (at, cpu) = (at + passed, cpu + used.min(passed));
            let raw = match what {
                0 => of_worker(asked(WORKER, seq, at, cpu)),
                1 => {
                    w.record(named(5, (5, 1000 + at as u32), IDLE, at, 0));
                    of_worker(asked(WORKER, seq, at, cpu))
                }
                2 => {
                    seq += 1;
                    of_worker(raw(ThreadCause::Outlived, WORKER, (seq - 1, seq), at, cpu))
                }
                _ => {
                    seq += 1;
                    bound((seq - 1, seq), (2 + what, 2 + what), at, cpu)
                }
            };
            for (_, cpu, passed, _) in w.worker_record(raw) {
                booked += cpu;
                wall += passed;
            }
        }
        prop_assert_eq!((booked, wall), (cpu, at - 5));
    }
}
