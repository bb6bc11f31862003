//! Page faults: as many as the kernel counts, where they happen, and beside CPU time, which they leave alone.

use super::{Got, at_99_hz, host, record, start};
use emberscope_capture::CaptureConfig;
use emberscope_model::SampleKind;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// One sample each so many.
const EVERY: u64 = 64;
const PAGES: u64 = 200_000;

/// What samples of a kind weigh together.
fn weight(got: &Got, pid: u32, kind: SampleKind) -> u64 {
    got.samples(pid).iter().filter(|sample| sample.kind == kind).map(|sample| sample.weight).sum()
}

#[test]
fn page_faults_are_those_that_the_kernel_counts() {
    let Some((features, _guard)) = host("page_faults") else { return };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("touch-{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/touch.c");
    let cc =
        Command::new("cc").args(["-O1", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(source).status();
    assert!(cc.expect("cc is there").success());
    let mut child = Command::new(&program)
        .arg(PAGES.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the fixture starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("it goes on").expect("it says");
    let touch = u64::from_str_radix(&line(), 16).expect("an address");

    let config = CaptureConfig { others: vec![(SampleKind::PageFaults, EVERY)], ..at_99_hz() };
    let mut capture = start(&config, &features);
    let kinds: Vec<_> = capture.sources().iter().map(|source| (source.kind, source.every)).collect();
    assert_eq!(kinds, [(SampleKind::Cpu, config.period_ns()), (SampleKind::PageFaults, EVERY)]);
    let mut stdin = child.stdin.take().expect("piped");
    writeln!(stdin).expect("it waits");
    let got = record(&mut capture, Duration::from_secs(3));
    let counted: u64 = line().parse().expect("a number");
    drop(stdin);
    let _ = child.wait();
    let _ = std::fs::remove_file(&program);

    assert!(counted >= PAGES, "{counted} faults of {PAGES} pages");
    let pid = child.id();
    let sampled = weight(&got, pid, SampleKind::PageFaults);
    // A counter a CPU: what is left on each when the program ends, and what it began with from others.
    let slack = EVERY * capture.cpus() as u64 + counted / 100;
    assert!(sampled.abs_diff(counted) <= slack, "{sampled} sampled, {counted} counted");
    assert!(weight(&got, pid, SampleKind::Cpu) > 0, "it took time too");
    // All in `touch`, whose loop is a few instructions.
    let stacks = got.stacks();
    let faults = got.samples(pid).into_iter().filter(|sample| sample.kind == SampleKind::PageFaults);
    let (mut inside, mut all) = (0, 0);
    for sample in faults {
        all += 1;
        let leaf = stacks.get(&sample.stack).and_then(|stack| stack.user.first());
        inside += usize::from(leaf.is_some_and(|leaf| (touch..touch + 256).contains(&leaf.value)));
    }
    assert!(inside * 100 >= all * 98, "{inside} of {all} are in the function that touches");
    assert!(got.stats.other_runs as usize >= all);
}
