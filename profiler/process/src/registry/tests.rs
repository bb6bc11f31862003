use super::*;
use crate::discovery::{RestApp, Server};
use crate::fixtures::FakeProc;
use crate::identity::PythonSide;
use crate::keep::Keep;
use emberscope_model::{Deploy, LabelKey, RawTask, TaskEvent};
use std::time::{Duration, Instant};

mod asks;
mod clients;
mod execs;
mod late;
mod limits;
use limits::strangers;

fn config(fake: &FakeProc) -> RegistryConfig {
    RegistryConfig { proc_root: fake.path(), passwd: fake.passwd(), ..RegistryConfig::host("n1") }
}

fn task(pid: Pid, event: TaskEvent) -> RawTask {
    RawTask { time_ns: 0, pid, tid: pid, event }
}

fn fork(pid: Pid, parent_pid: Pid) -> RawTask {
    task(pid, TaskEvent::Fork { parent_pid, parent_tid: parent_pid })
}

fn label(registry: &mut Registry, pid: Pid, key: LabelKey) -> String {
    registry.get(pid).labels.get(key).to_owned()
}

#[test]
fn recorded_standalone_family() {
    let fake = FakeProc::new();
    for name in ["standalone-master", "standalone-worker", "standalone-executor", "standalone-python-daemon"]
    {
        fake.recorded(name);
    }
    let daemon = fake.recorded("standalone-python-daemon");
    let executor = fake.recorded("standalone-executor");
    let mut registry = Registry::new(config(&fake));
    assert!(registry.scan() >= 4, "and their parents, which nobody recorded");
    for pid in [executor, daemon] {
        assert_eq!(label(&mut registry, pid, LabelKey::App), "app-20261121183613-0000");
        assert_eq!(label(&mut registry, pid, LabelKey::Executor), "0");
        assert_eq!(label(&mut registry, pid, LabelKey::Deploy), "standalone");
        assert_eq!(label(&mut registry, pid, LabelKey::User), "ana");
    }
    assert_eq!(label(&mut registry, daemon, LabelKey::Role), "python");
    let process = registry.get(executor);
    assert!(process.is_jvm() && process.kept && !process.kernel_thread);
    assert_eq!((process.record.cores, process.record.host.as_str()), (2, "127.0.0.1"));
    assert_eq!((process.uid, process.gid, process.inner_pid), (1000, 6, executor));
}

#[test]
fn parents_are_read_when_a_child_is_sampled_first() {
    let fake = FakeProc::new();
    let driver = fake.recorded("local-cluster-driver");
    let executor = fake.recorded("local-cluster-executor");
    fake.process(900, executor, "python3", 5).words(&["python3", "-m", "pyspark.daemon"]);
    fake.process(901, 900, "python3", 6).words(&["python3", "-m", "pyspark.daemon"]);
    let mut registry = Registry::new(config(&fake));
    assert_eq!(label(&mut registry, 901, LabelKey::Deploy), Deploy::LocalCluster.slug());
    assert_eq!(label(&mut registry, 901, LabelKey::Executor), "1");
    assert!(registry.by_pid.contains_key(&driver));
    let reads = registry.counters().reads;
    for _ in 0..100 {
        registry.get(901);
        registry.get(executor);
    }
    assert_eq!(registry.counters().reads, reads, "no reads for samples of known processes");
}

#[test]
fn a_vanished_process_is_a_value() {
    let fake = FakeProc::new();
    let mut registry = Registry::new(config(&fake));
    let process = registry.get(4242).clone();
    assert_eq!(process.key, ProcessKey { pid: 4242, start_ticks: 0 });
    assert!(process.exited && process.kept);
    assert_eq!(process.labels.get(LabelKey::Process), "unknown");
    assert_eq!((process.labels.get(LabelKey::Role), process.labels.get(LabelKey::Node)), ("other", "n1"));
    let reads = registry.counters().reads;
    registry.get(4242);
    assert_eq!(registry.counters().reads, reads, "asked once a tick at most");
    assert_eq!(registry.counters().gone, 1);
    assert_eq!(label(&mut registry, 0, LabelKey::Process), "swapper");
}

#[test]
fn a_fork_that_vanished_unread_was_its_parents_program_unless_it_execed() {
    let fake = FakeProc::new();
    let daemon = fake.recorded("standalone-python-daemon");
    let mut registry = Registry::new(config(&fake));
    registry.get(daemon);
    registry.on_task(&fork(31, daemon));
    registry.on_task(&fork(32, daemon));
    registry.on_task(&task(32, TaskEvent::Exec));
    assert_eq!(label(&mut registry, 31, LabelKey::Executor), "0");
    assert_eq!(label(&mut registry, 31, LabelKey::Role), "python");
    assert_eq!(label(&mut registry, 32, LabelKey::Role), "other");
}

#[test]
fn a_reused_pid_is_another_process_and_the_old_one_stays_a_while() {
    let fake = FakeProc::new();
    fake.process(7, 1, "first", 100).words(&["first"]);
    let mut registry = Registry::new(config(&fake));
    let first = registry.get(7).key;
    fake.remove(7);
    registry.on_task(&task(7, TaskEvent::Exit));
    assert_eq!(registry.get(7).key, first, "samples on their way are still its own");
    registry.tick();
    assert!(registry.get(7).exited);
    fake.process(7, 1, "second", 200).words(&["second"]);
    registry.on_task(&fork(7, 1));
    assert_eq!(label(&mut registry, 7, LabelKey::Process), "second");
    assert_ne!(registry.get(7).key, first);
    assert_eq!(registry.by_key(first).map(|p| &*p.comm), Some("first"));
}

#[test]
fn a_fork_event_that_a_scan_overtook_changes_nothing() {
    let fake = FakeProc::new();
    fake.process(7, 1, "x", 100).words(&["x"]);
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    let (key, reads) = (registry.get(7).key, registry.counters().reads);
    registry.on_task(&fork(7, 1));
    assert!(registry.get(7).key == key && !registry.get(7).exited);
    assert_eq!(registry.counters().reads, reads);
}

#[test]
fn lost_events_are_made_good_by_the_round_of_checks() {
    let fake = FakeProc::new();
    fake.process(7, 1, "first", 100).words(&["first"]);
    let mut registry = Registry::new(config(&fake));
    registry.get(7);
    fake.process(7, 1, "second", 200).words(&["second"]);
    registry.tick();
    registry.tick();
    assert_eq!(label(&mut registry, 7, LabelKey::Process), "second");
}

#[test]
fn processes_of_who_lost_events_are_looked_at_at_once() {
    let fake = FakeProc::new();
    let limits = Limits { checks: 4, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    for pid in 100..140 {
        strangers(&fake, pid);
        registry.get(pid);
    }
    fake.process(50, 1, "sh", 50).words(&["sh"]);
    assert_eq!(label(&mut registry, 50, LabelKey::Process), "sh");
    // One replaced its program, one ended and its pid is another's: neither was told.
    fake.process(100, 1, "sh", 100).words(&["sh"]);
    fake.process(101, 1, "flood", 7777).words(&["flood"]);
    let before = registry.by_pid[&101];
    registry.events_lost(65534);
    registry.events_lost(65534);
    assert_eq!(registry.pending.suspects.len(), 40, "each once, and no other user's");
    assert_eq!(label(&mut registry, 100, LabelKey::Process), "sh", "read again when it is sampled");
    assert_ne!(registry.get(101).key, before);
    for _ in 0..10 {
        registry.tick();
    }
    assert!(registry.pending.suspects.is_empty());
}

#[test]
fn exited_processes_go_after_their_grace() {
    let fake = FakeProc::new();
    fake.process(7, 1, "x", 100).words(&["x"]);
    let limits = Limits { exit_grace: Duration::ZERO, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    let key = registry.get(7).key;
    fake.remove(7);
    registry.on_task(&task(7, TaskEvent::Exit));
    registry.tick();
    assert!(registry.by_key(key).is_none());
    assert_eq!(registry.counters().processes, registry.iter().count());
}

#[test]
fn a_thread_is_no_process() {
    let fake = FakeProc::new();
    fake.process(7, 1, "java", 100).words(&["java", "Main"]);
    let mut registry = Registry::new(config(&fake));
    let key = registry.get(7).key;
    let thread = |event| RawTask { time_ns: 0, pid: 7, tid: 8, event };
    registry.on_task(&thread(TaskEvent::Fork { parent_pid: 7, parent_tid: 7 }));
    registry.on_task(&thread(TaskEvent::Exit));
    registry.tick();
    assert_eq!(registry.get(7).key, key);
    assert!(!registry.get(7).exited);
}

#[test]
fn a_loop_of_parents_ends() {
    let fake = FakeProc::new();
    fake.process(7, 8, "a", 1).words(&["a"]);
    fake.process(8, 7, "b", 1).words(&["b"]);
    fake.process(9, 9, "c", 1).words(&["c"]);
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    registry.dirty = true;
    registry.tick();
    assert_eq!(label(&mut registry, 7, LabelKey::Process), "a");
    assert_eq!(label(&mut registry, 9, LabelKey::Process), "c");
}

#[test]
fn filters_keep_neighbours_and_choose_executors() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    let daemon = fake.recorded("standalone-python-daemon");
    let master = fake.recorded("standalone-master");
    fake.process(5, 0, "sshd", 1).words(&["sshd"]);
    let keep = |apps: &str, executors: &str| Keep {
        apps: apps.parse().unwrap(),
        executors: executors.parse().unwrap(),
        ..Keep::default()
    };
    for (keep, kept) in [(keep("*", "0"), true), (keep("*", "1-9"), false), (keep("app-2025*", "*"), false)] {
        let mut registry = Registry::new(RegistryConfig { keep, ..config(&fake) });
        registry.scan();
        assert_eq!((registry.get(executor).kept, registry.get(daemon).kept), (kept, kept));
        assert!(registry.get(5).kept && registry.get(master).kept);
    }
}

#[test]
fn this_machine_can_be_scanned() {
    let mut registry = Registry::new(RegistryConfig { ask_drivers: false, ..RegistryConfig::host("here") });
    assert!(registry.scan() > 0);
    let me = registry.get(std::process::id());
    assert!(me.key.start_ticks > 0 && !me.is_jvm() && !me.exited);
    assert_eq!(me.labels.get(LabelKey::Node), "here");
}

#[test]
fn a_python_that_loads_a_jvm_is_a_jvm() {
    let fake = FakeProc::new();
    let marks = vec![(RuntimeId::HOTSPOT, "/libjvm.so"), (RuntimeId::CPYTHON, "/libpython3.")];
    let mut registry = Registry::new(RegistryConfig { marks, ..config(&fake) });
    let python = "7f00-7f01 r-xp 0 0 0 /usr/lib/libpython3.11.so.1.0\n";
    let jvm = "7f20-7f21 r-xp 0 0 0 /jdk/lib/server/libjvm.so\n";
    let process = fake.process(100, 1, "python3", 100).words(&["python3", "job.py"]);
    process.file("maps", python.as_bytes());
    registry.scan();
    assert_eq!(registry.get(100).runtime, RuntimeId::CPYTHON);
    process.file("maps", format!("{python}{jvm}").as_bytes());
    registry.on_mmap(100);
    registry.look_for_runtimes();
    assert!(registry.get(100).is_jvm());
    // Whichever comes first in its maps.
    fake.process(101, 1, "python3", 101)
        .words(&["python3", "job.py"])
        .file("maps", format!("{python}{jvm}").as_bytes());
    assert!(registry.get(101).is_jvm());
}
