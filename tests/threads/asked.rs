//! Threads that are told of because the daemon asks: all of the watched processes, by the iterator and by /proc.

use super::*;

/// Waits until a process has so many threads and none of them does anything.
fn at_rest(pid: Pid, threads: usize) {
    let end = Instant::now() + PATIENCE;
    let mut before = BTreeMap::new();
    loop {
        let now = listed(pid);
        if now.len() == threads && now == before {
            return;
        }
        assert!(Instant::now() < end, "{} of {threads} threads, or they work still", now.len());
        before = now;
        // The first one sleeps for a second before it waits for good.
        std::thread::sleep(Duration::from_millis(1300));
    }
}

#[test]
fn all_threads_of_watched_processes_are_told_when_asked() {
    let Some((features, _guard)) = host("asked") else { return };
    let mut by_proc = features.clone();
    by_proc.task_iterator = Err("as if there were none".to_owned());
    let small = CaptureConfig { ring_bytes: Some(4096), hz: 1, ..config() };
    for (features, config) in [(&features, &config()), (&by_proc, &config()), (&features, &small)] {
        let mut capture = start(config, features);
        let (watched, other) = (Program::start(&["spread", "300"]), Program::start(&["spread", "3"]));
        watch(&mut capture, &fixture(), "set_name");
        at_rest(watched.pid(), 301);
        let mut events = Vec::new();
        record(&mut capture, Duration::from_millis(50), &mut events);
        capture.watch_process(watched.pid(), None).expect("watched");
        let (mut last, lost) = (BTreeMap::new(), capture.lost().get(DropReason::RingFullThread));
        for _ in 0..2 {
            events.clear();
            let before = listed(watched.pid());
            assert_eq!(before.len(), 301);
            capture.ask_threads().unwrap_or_else(|e| panic!("{e}"));
            capture.read(Duration::ZERO, &mut events).expect("read");
            let after = listed(watched.pid());
            let asked = threads(&events, watched.pid());
            assert_eq!(
                asked.iter().map(|t| t.tid).collect::<BTreeSet<_>>(),
                before.keys().copied().collect()
            );
            assert_eq!(asked.len(), 301);
            for thread in &asked {
                assert!(thread.cause == ThreadCause::Asked && thread.name.is_empty());
                assert!((before[&thread.tid]..=after[&thread.tid]).contains(&cpu(thread)));
                let start_known = features.task_iterator.is_ok();
                assert_eq!(thread.start_ns != 0, start_known);
                let first = *last.entry(thread.tid).or_insert(thread.accounts);
                assert_eq!(first, thread.accounts, "a waiting thread uses nothing");
            }
            assert!(threads(&events, other.pid()).is_empty());
        }
        assert_eq!(capture.lost().get(DropReason::RingFullThread), lost);
        capture.unwatch_process(watched.pid());
        capture.unwatch_process(watched.pid());
        capture.ask_threads().expect("asks");
        events.clear();
        capture.read(Duration::ZERO, &mut events).expect("read");
        assert!(threads(&events, watched.pid()).is_empty());
    }
}
