//! Classes of threads by their process.

use super::*;

#[test]
fn processes_that_are_no_jvm_and_labels_that_change() {
    let mut w = World::new(Limits::default());
    let python = Owner {
        pid: 9,
        labels: &w.labels.clone(),
        role: Role::Python,
        kind: OwnerKind::Other,
        tenant: w.tenant,
    };
    assert!(Arc::ptr_eq(&w.threads.labels(&python, 9, 0), &w.labels));
    w.record(named(5, (0, 1), TASK_1, 0, 0));
    let first = w.labels_of(5, 1);
    assert!(Arc::ptr_eq(&first, &w.labels_of(5, 1)), "windows count by address");
    assert!(first.is_of_process(&w.labels));
    let old = std::mem::take(&mut w.labels);
    w.labels = Arc::new(LabelSetBuilder::from_set(&old).set(LabelKey::AppName, "sales").build());
    w.threads.relabel(&old);
    let second = w.labels_of(5, 1);
    assert_eq!((second.get(LabelKey::AppName), second.get(LabelKey::Task)), ("sales", "7"));
    assert_eq!(*second, w.labels.with_thread(first.thread_part().into()));
}

#[test]
fn a_driver_has_its_own_classes() {
    let mut w = World::new(Limits::default());
    w.role = Role::Driver;
    w.record(named(5, (0, 1), "Thread-4", 0, 0));
    assert_eq!((w.sample(5, 1), w.sample(PID, 0)), ("driver".into(), "driver".into()));
    w.role = Role::Other;
    assert_eq!(w.sample(70, 0), "other", "no Spark, no stage");
}
