//! More names and threads than there is room for.

use super::*;

#[test]
fn a_name_that_finds_no_room_is_nobodys() {
    let Some((features, _guard)) = host("full_ring") else { return };
    let mut capture = start(&CaptureConfig { ring_bytes: Some(64 * 1024), ..config() }, &features);
    watch(&mut capture, &fixture(), "set_name");
    let mut program = Program::start(&["burst", "5000"]);
    // Nobody reads meanwhile; then the ring has room again and the thread is sampled.
    program.line();
    let mut events = Vec::new();
    program.end(&mut capture, &mut events);
    let lost = capture.lost().get(DropReason::RingFullThread);
    let too_fast = capture.lost().get(DropReason::NamesTooFast);
    let records = threads(&events, program.pid());
    let named: BTreeSet<u32> =
        records.iter().filter(|t| t.cause == ThreadCause::Named).map(|t| t.name_seq).collect();
    let all = format!("{} came, {lost} found no room, {too_fast} were too many", named.len());
    assert_eq!(named.len() as u64 + lost + too_fast, 5000, "{all}");
    // A thousand in a second are told; on a crowded machine the burst may lie in some.
    assert!(lost > 500 && (1000..=4000).contains(&too_fast), "{all}");
    let unknown = samples(&events, program.pid())
        .iter()
        .filter(|s| s.name_seq != 0 && !named.contains(&s.name_seq))
        .count();
    assert!(unknown > 10, "{unknown} samples under names that did not come");
}

#[test]
fn more_threads_than_there_is_room_for_have_no_number() {
    let Some((features, _guard)) = host("full_table") else { return };
    let mut capture = start(&CaptureConfig { max_threads: 20, ..config() }, &features);
    watch(&mut capture, &fixture(), "set_name");
    let mut program = Program::start(&["spread", "50"]);
    let mut events = Vec::new();
    let without = |events: &[RawEvent]| {
        let mut named = threads(events, program.pid());
        named.retain(|t| t.cause == ThreadCause::Named);
        (named.len(), named.iter().filter(|t| t.name_seq == 0).count())
    };
    let end = Instant::now() + PATIENCE;
    while without(&events).0 < 50 && Instant::now() < end {
        record(&mut capture, Duration::from_millis(50), &mut events);
    }
    // The kernel gives a few more than asked for.
    let (all, none) = without(&events);
    assert_eq!(all, 50);
    // One user may have half of them, where no Spark of his is known.
    assert!((1..=45).contains(&none), "{none}");
    assert_eq!(capture.lost().get(DropReason::ThreadsFull), none as u64);
    program.0.kill().expect("ends");
    record(&mut capture, Duration::from_millis(300), &mut events);
    // Their entries are free again.
    let mut program = Program::start(&["steps"]);
    program.end(&mut capture, &mut events);
    let named = threads(&events, program.pid());
    assert!(named.iter().all(|t| t.name_seq != 0) && named.len() == 6);
}
