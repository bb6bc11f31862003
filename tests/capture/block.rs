//! Requests of disks: as many as a program reads blocks past the page cache, for about as long as it waits for them.

use super::faults::{Counted, of_function, of_kind, weight};
use super::{at_99_hz, host, record, start};
use emberscope_capture::CaptureConfig;
use emberscope_model::{BlockWay, SampleKind};
use emberscope_tests::{skip, tracefs};
use std::path::Path;
use std::time::Duration;

/// Blocks that are read, each a request: so slowly that a CPU takes nearly all of them, and the sum is hardly an estimate.
const READS: u64 = 400;
/// Of a wait, what the device had the request for at the least: the rest is the way there and back, and other threads' turns.
const LEAST: u64 = 4;

#[test]
fn requests_of_disks_are_those_that_a_program_waits_for() {
    let test = "requests_of_disks";
    let Some((features, _guard)) = host(test) else { return };
    tracefs();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("blocks-{}", std::process::id()));
    let path = file.to_str().expect("a path of UTF-8");
    let mut program = Counted::start("reads.c", &[path, &READS.to_string()]);
    let [reads] = program.numbers(16)[..] else { panic!("an address") };
    let config = CaptureConfig { others: vec![(SampleKind::BlockIo, 1)], ..at_99_hz() };
    let mut capture = start(&config, &features);
    assert_eq!(capture.lacking(), []);
    program.go();
    let got = record(&mut capture, Duration::from_secs(6));
    let [done, waited] = program.numbers(10)[..] else { panic!("two numbers") };
    let _ = std::fs::remove_file(&file);
    let pid = program.child.id();
    let samples = of_kind(&got, pid, SampleKind::BlockIo);
    if done == 0 || samples.is_empty() {
        skip(
            test,
            "the target directory's file system reads past the page cache from no disk (tmpfs, overlayfs)",
        );
        return;
    }
    assert_eq!(done, READS);
    assert!(samples.iter().all(|sample| sample.slot == BlockWay::Read as u16 && sample.detail != 0));
    let sampled = weight(&got, pid, SampleKind::BlockIo);
    // Where several are one sample, it is an estimate.
    assert!(sampled * 7 <= waited * 8, "{sampled} ns at the disk, {waited} ns of waiting");
    assert!(sampled * LEAST >= waited, "{sampled} ns at the disk, {waited} ns of waiting");
    println!("{sampled} ns at the disk, {waited} ns of waiting");
    let inside = of_function(&got, &samples, reads, 3);
    assert!(inside * 100 >= samples.len() * 95, "{inside} of {} are in the function", samples.len());
}
