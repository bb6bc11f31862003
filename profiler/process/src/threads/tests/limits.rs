//! More names and threads than there is room for.

use super::*;

#[test]
fn hostile_names_make_few_labels() {
    let limits = Limits { tasks_a_minute_elsewhere: 50, label_sets: 40, threads: 64, ..Limits::default() };
    let mut w = World::new(limits);
    let mut seen = std::collections::HashSet::new();
    for i in 0..5_000u32 {
        let name = format!("Executor task launch worker for task {i}.0 in stage {i}.0 (TID {i})");
        let lines = w.record(named(i % 500, (0, i + 1), &name, u64::from(i) / 100, 0));
        seen.extend(lines.into_iter().map(|(who, ..)| who));
        seen.insert(w.sample(i % 500, i + 1));
    }
    assert!(seen.contains("task other"));
    assert!(seen.len() <= 60, "{}", seen.len());
    let counters = w.threads.counters();
    assert!(counters.threads <= 64 && counters.threads_evicted > 1_000, "{counters:?}");
    assert!(counters.folded > 4_000 && counters.label_sets <= 50, "{counters:?}");
}

#[test]
fn who_has_no_role_in_spark_names_fewer_tasks() {
    let told = |spark| {
        let limits = Limits { tasks_a_minute: 200, tasks_a_minute_elsewhere: 20, ..Limits::default() };
        let mut w = World::new(limits);
        w.tenant = Tenant { spark, ..Tenant::default() };
        for i in 0..400u32 {
            let name = format!("Executor task launch worker for task 0.0 in stage 1.0 (TID {i})");
            w.record(named(1, (0, i + 1), &name, 0, 0));
        }
        400 - w.threads.counters().folded
    };
    assert_eq!((told(true), told(false)), (200, 20));
}

#[test]
fn an_evicted_thread_is_not_booked_twice() {
    let mut w = World::new(Limits { threads: 8, ..Limits::default() });
    w.record(young(named(1, (0, 1), TASK_1, 10, 5), 1));
    for tid in 2..40 {
        w.record(young(named(tid, (0, tid), "GC Thread#1", 10 + u64::from(tid), 0), 2));
    }
    assert!(w.threads.counters().threads_evicted > 0);
    assert_eq!(w.record(young(asked(1, 1, 100, 9), 1)), []);
    let again = w.record(young(asked(1, 1, 110, 11), 1));
    assert_eq!(again, [line("other unknown", 2, 10, 0)]);
    w.learn_comm(1, "Executor task l");
    assert_eq!(w.record(young(asked(1, 1, 120, 12), 1)), [line("task unknown", 1, 10, 0)]);
    assert_eq!(w.sample(1, 1), "task unknown");
}

#[test]
fn a_flooders_threads_give_way_and_not_his_neighbours() {
    let mut w = World::new(Limits { threads: 64, ..Limits::default() });
    w.tenant = Tenant { spark: true, ..Tenant::default() };
    for tid in 1..=40 {
        w.record(named(tid, (0, tid), TASK_1, 0, 0));
    }
    w.tenant = Tenant { uid: 65534, ..Tenant::default() };
    for tid in 1_000..5_000 {
        w.record(RawThread { pid: 200, ..named(tid, (0, tid), "mine", u64::from(tid), 0) });
    }
    assert!(w.threads.counters().threads <= 64 && w.threads.counters().threads_evicted > 3_000);
    assert!((1..=40).all(|tid| w.sample(tid, tid) == "task 3.0 1.0 7"));
    let [(_, evicted), _] = w.threads.refusals();
    assert!(evicted.by_tenant().all(|(who, _)| who == w.tenant));
}

#[test]
fn threads_whose_end_was_lost_go_with_their_process() {
    let mut w = World::new(Limits::default());
    for tid in 1..=1000 {
        w.record(named(tid, (0, tid), TASK_1, 0, 0));
    }
    w.threads.end_of(|pid| pid != PID);
    w.threads.tick(START + 60_000 * MS);
    assert_eq!(w.threads.counters().threads, 1000, "their process lives");
    w.threads.end_of(|pid| pid == PID);
    assert_eq!(w.sample(1, 1), "task 3.0 1.0 7", "its last samples may be on their way");
    w.threads.tick(START + 61_000 * MS);
    assert_eq!(w.threads.counters().threads, 1000);
    w.threads.tick(START + 66_000 * MS);
    assert_eq!(w.threads.counters().threads, 0);
}
