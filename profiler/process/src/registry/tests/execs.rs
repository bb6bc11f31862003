//! Processes that become other programs.

use super::*;

#[test]
fn exec_makes_another_program_of_the_same_process() {
    let fake = FakeProc::new();
    fake.process(7, 1, "bash", 100).words(&["bash", "/opt/spark/bin/spark-submit", "--master", "local[2]"]);
    let mut registry = Registry::new(config(&fake));
    assert_eq!(label(&mut registry, 7, LabelKey::Role), "other");
    let main =
        ["java", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--name", "sales", "a.jar"];
    let process = fake.process(7, 1, "java", 100).words(&main);
    registry.on_task(&task(7, TaskEvent::Exec));
    assert_eq!(label(&mut registry, 7, LabelKey::Role), "driver");
    assert_eq!(label(&mut registry, 7, LabelKey::App), "unknown");
    assert_eq!(label(&mut registry, 7, LabelKey::ServiceName), "sales");
    assert!(!registry.get(7).is_jvm(), "the launcher has not mapped libjvm yet");
    process.file("maps", b"7f r-xp /jdk/lib/server/libjvm.so\n");
    registry.tick();
    assert!(registry.get(7).is_jvm());
}

#[test]
fn an_exec_that_nobody_told_of_is_noticed() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    fake.process(900, executor, "jspawnhelper", 5).words(&["jspawnhelper"]);
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    assert_eq!(label(&mut registry, 900, LabelKey::Role), "other");
    fake.process(900, executor, "python3", 5).words(&["python3", "-m", "pyspark.daemon"]);
    assert_eq!(label(&mut registry, 900, LabelKey::Role), "other", "no reads for a sample");
    registry.tick();
    assert_eq!(label(&mut registry, 900, LabelKey::Role), "python");
}

#[test]
fn execs_beyond_the_budget_are_read_at_the_next_tick_or_sample() {
    let fake = FakeProc::new();
    let mut limits = Limits { exec_reads: 1, ..Limits::default() };
    limits.checks = 0;
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    for pid in [10, 11, 12] {
        fake.process(pid, 1, "cc1", 100).words(&["cc1"]);
        registry.on_task(&task(pid, TaskEvent::Exec));
    }
    assert_eq!((registry.counters().reads, registry.counters().execs_deferred), (2, 2), "10 and its parent");
    registry.tick();
    assert!(registry.by_pid.contains_key(&11));
    assert_eq!(label(&mut registry, 12, LabelKey::Process), "cc1");
}
