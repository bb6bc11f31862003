//! Whose a thread is: by its name, by the task that made it, by what user code calls it.

use super::*;

#[test]
fn a_thread_without_a_name_waits_once_for_one() {
    let mut w = World::new(Limits::default());
    assert_eq!(w.record(asked(5, 0, 0, 10)), []);
    assert_eq!(w.record(asked(5, 0, 10, 12)), [line("other unknown", 2, 10, 0)]);
    assert_eq!(w.threads.take_nameless(), [(PID, 5)]);
    w.learn_comm(5, "Executor task l");
    assert_eq!(w.sample(5, 0), "task unknown");
    w.learn(5, TASK_1);
    assert_eq!(w.sample(5, 0), "task 3.0 1.0 7");
    w.learn_comm(5, "java");
    assert_eq!(w.record(asked(5, 0, 20, 20)), [line("task 3.0 1.0 7", 8, 10, 0)]);
    let second = w.record(named(5, (0, 1), TASK_2, 30, 24));
    assert_eq!(second, [line("task 3.0 1.0 7", 4, 10, 0), line("task 3.0 2.1 8", 0, 0, 1)]);
    w.learn(5, TASK_1);
    assert_eq!(w.sample(5, 1), "task 3.0 2.1 8", "the kernel's word stands");
    // A young one that gets its name in between loses nothing.
    assert_eq!(w.record(young(asked(6, 0, 10, 2), 5)), []);
    w.learn_comm(6, "java");
    assert_eq!(w.record(young(asked(6, 0, 20, 3), 5)), [line("vm", 3, 15, 0)]);
    // The JVM's first thread needs none.
    assert_eq!(w.sample(PID, 0), "vm");
    assert_eq!(w.record(young(asked(PID, 0, 10, 1), 5)), [line("vm", 1, 5, 0)]);
    // A task's name as the first of a thread that is older: there may have been another before.
    w.record(asked(8, 0, 0, 0));
    let first = w.record(named(8, (0, 3), TASK_1, 10, 6));
    assert_eq!(first, [line("task unknown", 6, 10, 0), line("task 3.0 1.0 7", 0, 0, 1)]);
}

#[test]
fn helpers_belong_to_the_task_that_made_them() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    w.fork(6, 5, 10);
    assert_eq!(w.sample(6, 0), "other 3.0 1.0 7", "before it has a name");
    w.learn_comm(6, "Executor task l");
    assert_eq!(w.sample(6, 0), "other 3.0 1.0 7", "its comm is its maker's");
    let writer = young(named(6, (0, 2), "stdout writer for python3", 11, 1), 10);
    assert_eq!(w.record(writer), [line("python 3.0 1.0 7", 1, 1, 0)]);
    // What it makes is the task's as well.
    w.fork(7, 6, 12);
    w.record(young(named(7, (0, 3), "accept-connections", 13, 0), 12));
    assert_eq!(w.sample(7, 3), "python 3.0 1.0 7");
    // It outlives the name of its maker, and stays its task's.
    w.record(named(5, (1, 4), TASK_2, 20, 0));
    assert_eq!(w.record(young(asked(6, 2, 30, 9), 10)), [line("python 3.0 1.0 7", 8, 19, 0)]);
    assert_eq!(w.sample(6, 2), "python 3.0 1.0 7");
    // A pool that the task happened to start is everybody's.
    w.fork(8, 5, 30);
    let netty = young(named(8, (0, 5), "shuffle-client-4-1", 31, 1), 30);
    assert_eq!(w.record(netty), [line("shuffle 3.0 2.1 8", 1, 1, 0)], "its start is the task's");
    assert_eq!(w.sample(8, 5), "shuffle");
    assert_eq!(w.record(young(asked(8, 5, 40, 3), 30)), [line("shuffle", 2, 9, 0)]);
    // Made between two tasks, or by a thread that runs none.
    w.record(named(5, (4, 6), IDLE, 50, 0));
    w.fork(9, 5, 51);
    w.record(young(named(9, (0, 7), "stdout writer for python3", 52, 0), 51));
    assert_eq!(w.sample(9, 7), "python");
    assert_eq!(w.threads.counters().inherited, 2);
}

#[test]
fn user_code_may_name_its_thread() {
    let mut w = World::new(Limits::default());
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    assert_eq!(w.record(named(5, (1, 2), "my own\nname", 10, 5)), [line("task 3.0 1.0 7", 5, 10, 0)]);
    assert_eq!(w.sample(5, 2), "task 3.0 1.0 7", "only the task can have done it");
    assert_eq!(w.record(named(5, (2, 3), TASK_1, 20, 9)), [line("task 3.0 1.0 7", 4, 10, 0)], "begun once");
    let evil = "Executor task launch worker for task evil";
    let lines = w.record(named(5, (3, 4), evil, 30, 10));
    assert_eq!(lines, [line("task 3.0 1.0 7", 1, 10, 0), line("task unknown", 0, 0, 1)]);
    assert_eq!(w.sample(5, 4), "task unknown");
    assert_eq!(w.threads.unknown_formats().collect::<Vec<_>>(), [evil]);
    let counters = w.threads.counters();
    assert_eq!((counters.unknown_formats, counters.renamed_in_task, counters.named), (1, 1, 4));
    // Spark up to 3.0.
    w.record(named(6, (0, 5), "Executor task launch worker for task 12", 40, 0));
    assert_eq!(w.sample(6, 5), "task unknown 12");
}
