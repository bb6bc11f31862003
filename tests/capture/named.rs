//! Events that a user names: a tracepoint and one of perf's, as many as there were and where they were met; and those that this
//! host does not have, which it says.

use super::faults::{Counted, of_function, of_kind, weight};
use super::{at_99_hz, host, record, start};
use emberscope_capture::CaptureConfig;
use emberscope_model::{NamedEvent, RawEvent, SampleKind};
use emberscope_tests::tracefs;
use std::time::Duration;

/// Names that the program gives itself.
const NAMES: u64 = 300_000;
/// One sample each so many of them.
const EVERY: u64 = 50;

fn named(events: &[&str]) -> CaptureConfig {
    let named = events.iter().map(|event| event.parse::<NamedEvent>().expect("an event")).collect();
    CaptureConfig { named, ..at_99_hz() }
}

#[test]
fn named_events_are_those_that_happen_and_where() {
    let Some((features, _guard)) = host("named_events") else { return };
    tracefs();
    let mut program = Counted::start("renames.c", &[&NAMES.to_string()]);
    let [renames] = program.numbers(16)[..] else { panic!("an address") };
    let config = named(&[&format!("task:task_rename={EVERY}"), "minor-faults:1"]);
    let mut capture = start(&config, &features);
    assert_eq!(capture.lacking(), []);
    let sources: Vec<_> = capture.sources().into_iter().filter_map(|source| source.event).collect();
    assert_eq!(sources.iter().map(|name| &**name).collect::<Vec<_>>(), ["task:task_rename", "minor-faults"]);
    program.go();
    let got = record(&mut capture, Duration::from_secs(4));
    let [counted] = program.numbers(10)[..] else { panic!("a number") };
    assert_eq!(counted, NAMES);

    let pid = program.child.id();
    let mut samples = of_kind(&got, pid, SampleKind::Event);
    samples.retain(|sample| sample.slot == 0);
    let sampled: u64 = samples.iter().map(|sample| sample.weight).sum();
    // A thousand a second of a CPU at most: the rest weighs with the next, and what came after the last is not told.
    let slack = NAMES / 20;
    assert!(sampled.abs_diff(NAMES) <= slack, "{sampled} sampled, {NAMES} counted");
    assert!(samples.len() as u64 <= 4_000 * capture.cpus() as u64, "{} samples", samples.len());
    assert!(samples.iter().all(|sample| sample.weight >= EVERY));
    let inside = of_function(&got, &samples, renames, 3);
    assert!(inside * 100 >= samples.len() * 98, "{inside} of {} are in the function", samples.len());
    assert!(weight(&got, pid, SampleKind::Cpu) > 0, "it took time too");
    assert!(got.events.iter().all(|event| !matches!(event, RawEvent::Sample(sample) if sample.slot > 1)));
}

#[test]
fn an_event_that_is_not_there_costs_nothing_else() {
    let Some((features, _guard)) = host("an_event_that_is_not_there") else { return };
    tracefs();
    let config = named(&["task:no_such_thing", "minor-faults", "r0"]);
    let capture = start(&config, &features);
    let lacking: Vec<(&str, &str)> =
        capture.lacking().iter().map(|lacking| (lacking.name(), &*lacking.what)).collect();
    assert!(lacking.iter().any(|(name, what)| *name == "task:no_such_thing" && what.contains("events/task")));
    assert!(lacking.iter().all(|(name, _)| *name != "minor-faults"), "{lacking:?}");
    let error = capture.must_have(SampleKind::Event).expect_err("not all of them");
    assert!(error.to_string().contains("task:no_such_thing"), "{error}");
    assert!(capture.must_have(SampleKind::Cpu).is_ok());
}
