//! More processes than there is room or time for.

use super::*;

#[test]
fn it_is_bounded_and_lets_neighbours_go_first() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    let limits = Limits { processes: 50, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    let key = registry.get(executor).key;
    for pid in 100..400 {
        fake.process(pid, 0, "sh", 5).words(&["sh"]);
        registry.get(pid);
        assert!(registry.counters().processes <= 50);
    }
    assert!(registry.by_key(key).is_some());
    assert!(registry.counters().evicted >= 200, "{:?}", registry.counters());
}

/// A process of user 65534's.
pub(super) fn strangers(fake: &FakeProc, pid: Pid) {
    let ids = "Uid:\t65534\t65534\t65534\t65534\nGid:\t6\t6\t6\t6\n";
    fake.process(pid, 1, "flood", u64::from(pid)).words(&["flood"]).file("status", ids.as_bytes());
}

#[test]
fn a_flooders_processes_give_way_and_not_his_neighbours() {
    let fake = FakeProc::new();
    let executor = fake.recorded("standalone-executor");
    fake.process(7, 1, "postgres", 7).words(&["postgres"]);
    let limits = Limits { processes: 64, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    registry.get(7);
    registry.get(executor);
    let (quiet, job) = (registry.by_pid[&7], registry.by_pid[&executor]);
    for pid in 10_000..10_400 {
        strangers(&fake, pid);
        registry.tick();
        registry.get(pid);
    }
    assert!(registry.entries.len() <= 64);
    assert!(registry.by_key(quiet).is_some() && registry.by_key(job).is_some());
    let [(_, evicted), _] = registry.refusals();
    assert!(evicted.total() > 0 && evicted.by_tenant().all(|(who, _)| who.uid == 65534));
}

#[test]
fn a_fork_storm_is_not_read_and_spark_is() {
    let fake = FakeProc::new();
    let daemon = fake.recorded("standalone-python-daemon");
    strangers(&fake, 9);
    let mut registry = Registry::new(config(&fake));
    registry.scan();
    for pid in 20_000..30_000 {
        registry.on_task(&fork(pid, 9));
        if pid % 2 == 0 {
            registry.on_task(&task(pid, TaskEvent::Exec));
        }
        registry.get(pid);
    }
    let (last, before) = (registry.get(29_998).clone(), registry.get(29_997).clone());
    assert_eq!(last.labels.get(LabelKey::Process), "[process not read: over budget]");
    assert_eq!(before.labels.get(LabelKey::Process), "flood", "its parent's program: it ran no other");
    assert_eq!((last.tenant.uid, before.tenant.uid), (65534, 65534));
    let [_, (_, unread)] = registry.refusals();
    assert!(unread.total() > 7_000 && unread.by_tenant().all(|(who, _)| who.uid == 65534));
    for pid in 31..61 {
        registry.on_task(&fork(pid, daemon));
        fake.process(pid, daemon, "python3", u64::from(pid)).words(&["python3", "-m", "pyspark.daemon"]);
        assert_eq!(registry.get(pid).key.start_ticks, u64::from(pid), "it was read");
    }
}

#[test]
fn programs_that_never_become_a_jvm_hide_none_that_does() {
    let fake = FakeProc::new();
    let limits = Limits { checks: 8, ..Limits::default() };
    let mut registry = Registry::new(RegistryConfig { limits, ..config(&fake) });
    for pid in 100..200 {
        strangers(&fake, pid);
        fake.process(pid, 1, "java", u64::from(pid)).words(&["java", "Sleep"]);
    }
    let jvm = fake.process(900, 1, "java", 900).words(&["java", "Job"]);
    registry.scan();
    jvm.file("maps", b"7f00-7f01 r-xp 0 0 0 /jdk/lib/server/libjvm.so\n");
    // A hundred and one, eight a look.
    for _ in 0..13 {
        registry.look_for_runtimes();
    }
    assert!(registry.get(900).is_jvm());
}
