use super::*;
use emberscope_target::errand::{About, Errand, What, identifying};
use std::sync::mpsc::channel;

#[test]
fn who_was_late_is_read_at_the_next_tick_and_its_children_are_put_right() {
    let fake = FakeProc::new();
    // Below an executor any Python is taken for a daemon of the user's own.
    let driver = fake.recorded("local-cluster-driver");
    let daemon = 900;
    fake.process(daemon, driver, "python3", 5).words(&["python3", "-m", "pyspark.daemon"]);
    fake.process(901, daemon, "python3", 6).words(&["python3", "-m", "pyspark.daemon"]);
    let (go, wait) = channel::<()>();
    let (back, is_back) = channel();
    // Nothing else is read of a process of which something does not come.
    let about = About::process(&fake.path().join(daemon.to_string()), What::Words);
    let job = move || {
        let _ = wait.recv();
        back.send(())
    };
    let _ = identifying().run(about.clone(), Duration::ZERO, job);
    std::thread::sleep(Duration::from_millis(600));
    let mut registry = Registry::new(config(&fake));
    let python = |registry: &mut Registry, pid| registry.get(pid).python;
    assert_eq!(python(&mut registry, daemon), None);
    assert_ne!(python(&mut registry, 901), Some(PythonSide::Worker));
    assert_eq!(registry.counters().late, 1);
    go.send(()).unwrap();
    is_back.recv().unwrap();
    // It is back when the next is begun, not yet when its last word is said.
    while !matches!(identifying().run(about.clone(), Duration::from_secs(1), || ()), Errand::Done(())) {
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..8 {
        registry.tick();
    }
    let known = |registry: &Registry, pid| registry.known(pid).and_then(|key| registry.by_key(key)?.python);
    assert_eq!(known(&registry, daemon), Some(PythonSide::Daemon), "though no sample asked for it");
    assert_eq!(known(&registry, 901), Some(PythonSide::Worker));
}
