//! The ring: full, quiet, filling.

use super::*;

/// Each tick is an idle one, a sample or a lost one. Sampling goes on while the counters are read: what was
/// lost is told between two looks, and in each look a CPU may be at a tick that is counted and not yet decided.
pub(super) fn all_is_counted(before: &KernelStats, lost: u64, after: &KernelStats) {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let busy = |stats: &KernelStats| stats.ticks - stats.idle;
    assert!(before.samples + lost + cpus >= busy(before), "{lost} lost of {before:?}");
    assert!(before.samples + lost <= busy(after) + cpus, "{lost} lost between {before:?} and {after:?}");
}

/// Waits, reading nothing, until so many are lost for this reason.
fn fill(capture: &Capture, reason: DropReason, count: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    while capture.lost().get(reason) < count {
        assert!(Instant::now() < end, "{:?}", capture.lost());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_full_ring_is_counted_and_its_stacks_come_later() {
    let Some((features, _guard)) = host("losses") else { return };
    let spin = Spin::start(&["20", "thread"]);
    let config = CaptureConfig { ring_bytes: Some(4096), ..at_999_hz() };
    let mut capture = start(&config, &features);
    fill(&capture, DropReason::RingFullSample, 100);
    // A stack that is first seen when there is no room left.
    let late = Spin::start(&["20", "thread"]);
    fill(&capture, DropReason::RingFullStack, 1);
    let (before, lost, after) = (capture.stats(), capture.lost(), capture.stats());
    all_is_counted(&before, lost.get(DropReason::RingFullSample), &after);

    // Once the ring is read, stacks that did not fit are sent, within the same epoch too.
    let mut got = Got::default();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        capture.read(Duration::from_millis(2), &mut got.events).expect("read");
    }
    let stacks = got.stacks();
    for pid in [spin.pid(), late.pid()] {
        let samples = got.samples(pid);
        let named = samples.iter().filter(|s| stacks.contains_key(&s.stack)).count();
        assert!(named * 10 > samples.len() * 5 && named > 0, "{named} of {}", samples.len());
    }
    drop(capture);
    assert_eq!(start(&at_99_hz(), &features).lost().samples(), 0);
}

#[test]
fn a_quiet_ring_wakes_nobody_and_a_filling_one_does() {
    let Some((features, _guard)) = host("wake_up") else { return };
    let mut capture = start(&CaptureConfig { hz: 1, ..at_99_hz() }, &features);
    // Records that wake the reader: a program that starts, maps code or forks, whosever: some turns on a machine where others
    // work. What is sampled, and a thread's name, do not.
    let mut read = |timeout| {
        let (begin, mut events) = (Instant::now(), Vec::new());
        let records = capture.read(Duration::from_millis(timeout), &mut events).expect("read");
        let quiet = events.iter().filter(|event| match event {
            RawEvent::Task(task) => task.event != TaskEvent::Exec,
            RawEvent::Mmap { .. } => false,
            RawEvent::Sample(_) | RawEvent::Wait(_) | RawEvent::Pause(_) => true,
            RawEvent::Stack(_) | RawEvent::Thread(_) => true,
        });
        (begin.elapsed(), records - quiet.count())
    };
    // A wake-up comes a moment after its record, which may have been read by then.
    let mut before = read(50).1;
    let quiet = (0..10).any(|_| {
        let (took, wakes) = read(700);
        let waited = took >= Duration::from_millis(650);
        assert!(waited || wakes > 0 || before > 0, "woken for nothing after {took:?}");
        before = wakes;
        waited
    });
    drop(capture);
    if !quiet {
        return emberscope_tests::skip("wake_up", "programs start all the time on this machine");
    }

    let _spin = Spin::start(&["400", "thread"]);
    // A quarter of it wakes; the rest takes seconds to fill, however late the reader gets a CPU.
    let config = CaptureConfig { hz: 2000, ring_bytes: Some(1024 * 1024), ..at_99_hz() };
    let mut capture = start(&config, &features);
    let begin = Instant::now();
    capture.read(Duration::from_secs(120), &mut Vec::new()).expect("read");
    assert!(begin.elapsed() < Duration::from_secs(100), "{:?}", begin.elapsed());
    assert_eq!(capture.lost().samples(), 0);
}
