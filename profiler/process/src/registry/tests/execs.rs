//! Processes that become other programs.

use super::*;
use crate::fixtures::{fixture_words, stat_line};
use crate::identity::PythonSide;

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

/// A fork of a recorded JVM that has run no program yet.
fn fork_of(fake: &FakeProc, recorded: &str, parent: Pid, pid: Pid) {
    let stat = String::from_utf8(stat_line(pid, "java", parent, 5)).unwrap();
    let process = fake.process(pid, parent, "java", 5).words(&fixture_words(recorded));
    process.link("exe", "/jdk/bin/java").file("stat", stat.replace(" 4194560 ", " 4194624 ").as_bytes());
}

#[test]
fn a_jvms_fork_before_its_exec_is_no_second_driver_or_executor() {
    let fake = FakeProc::new();
    let (driver, executor) = (fake.recorded("local-cluster-driver"), fake.recorded("standalone-executor"));
    fork_of(&fake, "local-cluster-driver", driver, 900);
    fork_of(&fake, "standalone-executor", executor, 901);
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    let roles = [driver, executor, 900, 901].map(|pid| label(&mut registry, pid, LabelKey::Role));
    assert_eq!(roles, ["driver", "executor", "other", "other"]);
    assert_eq!(label(&mut registry, 901, LabelKey::App), "app-20261121183613-0000", "its parent's");
    assert_eq!(label(&mut registry, 901, LabelKey::Executor), "0");
    // It holds the driver's sockets, and is not what listens there.
    let candidates: Vec<Pid> = registry.candidates(1000).iter().map(|c| c.key.pid).collect();
    assert_eq!(candidates, [driver]);
    // The driver's application became known, and with it the fork's.
    let key = registry.by_pid[&driver];
    registry.entries.get_mut(&key).unwrap().told.get_or_insert_default().by_url = Some("app-7".into());
    registry.settle_all();
    let apps = [driver, 900].map(|pid| label(&mut registry, pid, LabelKey::App));
    assert_eq!(apps, ["app-7", "app-7"]);
    assert_eq!(label(&mut registry, 900, LabelKey::Role), "other");
    // One that was gone before it could be read.
    registry.on_task(&fork(902, driver));
    assert_eq!(label(&mut registry, 902, LabelKey::Role), "other");
    assert_eq!(label(&mut registry, 902, LabelKey::App), "app-7");
}

#[test]
fn a_driver_that_a_driver_runs_is_of_its_own_application() {
    let fake = FakeProc::new();
    let driver = fake.recorded("local-cluster-driver");
    fake.process(900, driver, "java", 5)
        .words(&fixture_words("local-cluster-driver"))
        .link("exe", "/jdk/bin/java");
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    let key = registry.by_pid[&driver];
    registry.entries.get_mut(&key).unwrap().told.get_or_insert_default().by_url = Some("app-7".into());
    registry.settle_all();
    let of = |pid, key| registry.by_key(registry.by_pid[&pid]).unwrap().labels.get(key).to_owned();
    assert_eq!([driver, 900].map(|pid| of(pid, LabelKey::Role)), ["driver", "driver"]);
    assert_eq!([driver, 900].map(|pid| of(pid, LabelKey::App)), ["app-7", "unknown"]);
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

#[test]
fn what_sparks_processes_start_does_not_wait_behind_others() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    for pid in 10..13 {
        fake.process(pid, 1, "cc1", 100).words(&["cc1"]);
    }
    let limits = Limits { exec_reads: 1, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    registry.get(executor);
    (10..13).for_each(|pid| registry.on_task(&task(pid, TaskEvent::Exec)));
    assert_eq!(registry.counters().execs_deferred, 2);
    registry.on_task(&fork(900, executor));
    fake.process(900, executor, "python3", 100).words(&["python3", "-m", "pyspark.daemon"]);
    registry.on_task(&task(900, TaskEvent::Exec));
    assert_eq!(registry.counters().execs_deferred, 2);
    let daemon = registry.by_key(registry.known(900).unwrap()).unwrap();
    assert_eq!(daemon.python, Some(PythonSide::Daemon));
    // It has one a tick, too.
    registry.on_task(&task(900, TaskEvent::Exec));
    assert_eq!(registry.counters().execs_deferred, 3);
}
