//! Which processes the kernel is told of, and whose.

use super::*;
use emberscope_model::{RawTask, TaskEvent};
use emberscope_process::RegistryConfig;
use emberscope_testkit::FakeProc;
use std::collections::BTreeMap;

/// A kernel side that takes notes.
#[derive(Default)]
struct Notes {
    parties: BTreeMap<Pid, (PartyKind, Pid)>,
    watched: bool,
    waits_watched: bool,
}

impl Kernel for Notes {
    fn set(&mut self, pid: Pid, kind: PartyKind, executor: Pid) -> Result<(), CaptureError> {
        self.parties.insert(pid, (kind, executor));
        Ok(())
    }
    fn forget(&mut self, pid: Pid) {
        self.parties.remove(&pid);
    }
    fn watch_workers(&mut self, watch: bool) -> Result<(), CaptureError> {
        self.watched = watch;
        Ok(())
    }
    fn watch_waits(&mut self, watch: bool) -> Result<(), CaptureError> {
        self.waits_watched = watch;
        Ok(())
    }
}

const DAEMON: [&str; 3] = ["python3", "-m", "pyspark.daemon"];

/// Adds a process below `parent`, in `executor`'s cgroup.
fn run(fake: &FakeProc, executor: Pid, (pid, parent): (Pid, Pid), words: &[&str], uid: u32) {
    let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t6\t6\t6\t6\n");
    let cgroup = std::fs::read(fake.path().join(executor.to_string()).join("cgroup")).unwrap();
    let process = fake.process(pid, parent, "python3", u64::from(pid)).words(words);
    process.file("status", status.as_bytes()).file("cgroup", &cgroup);
}

fn registry(fake: &FakeProc) -> Registry {
    let config = RegistryConfig { proc_root: fake.path(), ..RegistryConfig::host("n1") };
    Registry::new(RegistryConfig { passwd: fake.passwd(), ..config })
}

#[test]
fn workers_of_an_executor_of_the_same_user() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    let (mut registry, mut kernel, mut pythons) = (registry(&fake), Notes::default(), Pythons::default());
    registry.scan();
    pythons.tick(&registry, &mut kernel);
    assert_eq!(kernel.parties[&executor], (PartyKind::Executor, executor));
    assert!(!kernel.watched, "no Python, no tracepoint");
    assert!(kernel.waits_watched, "its tasks wait");

    // A daemon, its worker, what that forks; a worker without a daemon; and another user's.
    for (pid, parent) in [(900, executor), (901, 900), (902, 901)] {
        run(&fake, executor, (pid, parent), &DAEMON, 1000);
    }
    run(&fake, executor, (910, executor), &["python3", "-m", "pyspark.worker"], 1000);
    run(&fake, executor, (920, executor), &DAEMON, 1001);
    let elsewhere = fake.process(921, executor, "python3", 921).words(&DAEMON);
    elsewhere
        .file("status", b"Uid:\t1000\t1000\t1000\t1000\n")
        .file("cgroup", b"0::/machine.slice/other.scope\n");
    registry.scan();
    pythons.tick(&registry, &mut kernel);
    let pythons_of = |kernel: &Notes| {
        let parties = kernel.parties.iter().filter(|(_, (kind, _))| *kind != PartyKind::Executor);
        parties.map(|(pid, party)| (*pid, *party)).collect::<Vec<_>>()
    };
    let (daemon, worker) = ((PartyKind::Daemon, executor), (PartyKind::Worker, executor));
    assert_eq!(pythons_of(&kernel), [(900, daemon), (901, worker), (910, worker)]);
    assert!(kernel.watched);

    // The worker becomes another program, the others end.
    run(&fake, executor, (901, 900), &["sort"], 1000);
    registry.on_task(&RawTask { time_ns: 0, pid: 901, tid: 901, event: TaskEvent::Exec });
    kernel.parties.remove(&901);
    let key = registry.known(901).unwrap();
    pythons.on_exec(key, &registry, &mut kernel);
    assert_eq!(pythons_of(&kernel), [(900, daemon), (910, worker)]);
    for pid in [900, 910, executor] {
        fake.remove(pid);
        registry.on_task(&RawTask { time_ns: 0, pid, tid: pid, event: TaskEvent::Exit });
    }
    registry.tick();
    pythons.tick(&registry, &mut kernel);
    assert_eq!((pythons_of(&kernel), kernel.watched, kernel.waits_watched), (vec![], false, false));
    assert_eq!((pythons.refused(), pythons.len()), (0, kernel.parties.len()));
}

#[test]
fn a_user_has_half_of_the_places() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    let (mut registry, mut kernel, mut pythons) = (registry(&fake), Notes::default(), Pythons::default());
    run(&fake, executor, (900, executor), &DAEMON, 1000);
    registry.scan();
    pythons.tick(&registry, &mut kernel);
    // His others are as if told already; the kernel side has the daemon's next child in its table.
    let half = MAX_SPARK_PYTHONS as usize / 2;
    pythons.held.insert((1000, true), half);
    kernel.parties.insert(901, (PartyKind::Worker, executor));
    run(&fake, executor, (901, 900), &DAEMON, 1000);
    registry.scan();
    for process in registry.iter().filter(|process| process.key.pid == 901) {
        pythons.tell(&registry, process, &mut kernel);
        pythons.tell(&registry, process, &mut kernel);
    }
    assert!(!kernel.parties.contains_key(&901) && kernel.parties.contains_key(&900));
    assert_eq!(pythons.refused(), 1, "counted once");
    assert!(pythons.has_place(PartyKind::Worker, 1001) && pythons.has_place(PartyKind::Executor, 1000));
    // Some of his have ended.
    pythons.tick(&registry, &mut kernel);
    assert_eq!(kernel.parties[&901], (PartyKind::Worker, executor));
    assert_eq!(pythons.refused(), 1);
}
