//! Page faults, those that read, and context switches: as many as the kernel counts, where they happen, and beside CPU time,
//! which they leave alone.

use super::{Got, at_99_hz, host, record, start};
use emberscope_capture::CaptureConfig;
use emberscope_model::{RawSample, SampleKind};
use emberscope_tests::skip;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// One sample each so many.
const EVERY: u64 = 64;
const PAGES: u64 = 200_000;
/// One sample each so many context switches: a prime, as `SampleKind::Switches` has it.
const EVERY_SWITCH: u64 = 61;
/// Pages that are read, each by a fault, and sleeps.
const READ: u64 = 20_000;
const SLEEPS: u64 = 20_000;

/// A fixture that says numbers, waits for a line, and says what it counted.
pub struct Counted {
    program: PathBuf,
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Counted {
    pub fn start(source: &str, args: &[&str]) -> Self {
        let name = format!("{}-{}", source.trim_end_matches(".c"), std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(source);
        let cc = Command::new("cc")
            .args(["-O1", "-fno-omit-frame-pointer", "-o"])
            .arg(&program)
            .arg(source)
            .status();
        assert!(cc.expect("cc is there").success());
        let mut child = Command::new(&program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fixture starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let stdin = child.stdin.take();
        Self { program, child, stdin, lines }
    }
    /// The next line's numbers.
    pub fn numbers(&mut self, radix: u32) -> Vec<u64> {
        let line = self.lines.next().expect("it goes on").expect("it says");
        line.split(' ').map(|word| u64::from_str_radix(word, radix).expect("a number")).collect()
    }
    pub fn go(&mut self) {
        writeln!(self.stdin.as_mut().expect("piped")).expect("it waits");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.program);
    }
}

/// What samples of a kind weigh together.
pub fn weight(got: &Got, pid: u32, kind: SampleKind) -> u64 {
    of_kind(got, pid, kind).iter().map(|sample| sample.weight).sum()
}

/// Of samples, how many have a user stack of which one of the first `frames` is in the function.
pub fn of_function(got: &Got, samples: &[&RawSample], function: u64, frames: usize) -> usize {
    let stacks = got.stacks();
    let is_inside = |sample: &&&RawSample| {
        let user = stacks.get(&sample.stack).map_or(&[][..], |stack| &*stack.user);
        user.iter().take(frames).any(|frame| (function..function + 256).contains(&frame.value))
    };
    samples.iter().filter(is_inside).count()
}

/// Samples of a kind.
pub fn of_kind(got: &Got, pid: u32, kind: SampleKind) -> Vec<&RawSample> {
    got.samples(pid).into_iter().filter(|sample| sample.kind == kind).collect()
}

/// Of a kind's samples, how many have a user stack whose first frame is in the function; and all.
fn inside(got: &Got, pid: u32, kind: SampleKind, function: u64) -> (usize, usize) {
    let samples = of_kind(got, pid, kind);
    (of_function(got, &samples, function, 1), samples.len())
}

#[test]
fn page_faults_are_those_that_the_kernel_counts() {
    let Some((features, _guard)) = host("page_faults") else { return };
    let mut program = Counted::start("touch.c", &[&PAGES.to_string()]);
    let [touch] = program.numbers(16)[..] else { panic!("an address") };

    let config = CaptureConfig { others: vec![(SampleKind::PageFaults, EVERY)], ..at_99_hz() };
    let mut capture = start(&config, &features);
    let kinds: Vec<_> = capture.sources().iter().map(|source| (source.kind, source.every)).collect();
    assert_eq!(kinds, [(SampleKind::Cpu, config.period_ns()), (SampleKind::PageFaults, EVERY)]);
    program.go();
    let got = record(&mut capture, Duration::from_secs(3));
    let [counted] = program.numbers(10)[..] else { panic!("a number") };

    assert!(counted >= PAGES, "{counted} faults of {PAGES} pages");
    let pid = program.child.id();
    let sampled = weight(&got, pid, SampleKind::PageFaults);
    // A counter a CPU: what is left on each when the program ends, and what it began with from others.
    let slack = EVERY * capture.cpus() as u64 + counted / 100;
    assert!(sampled.abs_diff(counted) <= slack, "{sampled} sampled, {counted} counted");
    assert!(weight(&got, pid, SampleKind::Cpu) > 0, "it took time too");
    // All in `touch`, whose loop is a few instructions.
    let (inside, all) = inside(&got, pid, SampleKind::PageFaults, touch);
    assert!(inside * 100 >= all * 98, "{inside} of {all} are in the function that touches");
    assert!(got.stats.other_runs as usize >= all);
}

#[test]
fn faults_that_read_and_switches_are_those_that_the_kernel_counts() {
    let test = "faults_that_read_and_switches";
    let Some((features, _guard)) = host(test) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("read-{}", std::process::id()));
    let path = file.to_str().expect("a path of UTF-8");
    let mut program = Counted::start("leaves.c", &[path, &READ.to_string(), &SLEEPS.to_string()]);
    let [reads, sleeps] = program.numbers(16)[..] else { panic!("two addresses") };

    let others = vec![(SampleKind::MajorFaults, 1), (SampleKind::Switches, EVERY_SWITCH)];
    let config = CaptureConfig { others, ..at_99_hz() };
    let mut capture = start(&config, &features);
    program.go();
    let mut got = Got::default();
    // A disk may be slow.
    let mut counted = None;
    std::thread::scope(|scope| {
        let counts = scope.spawn(|| program.numbers(10));
        while !counts.is_finished() {
            capture.read(Duration::from_millis(100), &mut got.events).expect("read");
        }
        counted = counts.join().ok();
    });
    capture.read(Duration::from_millis(100), &mut got.events).expect("read");
    let _ = std::fs::remove_file(&file);
    let Some([faults, switches]) = counted.as_deref() else { panic!("two numbers") };
    let (faults, switches, pid) = (*faults, *switches, program.child.id());

    assert!(switches >= SLEEPS, "{switches} switches of {SLEEPS} sleeps");
    // Reading leaves the CPU, too. A counter a CPU: what is left on each, and what it began with from others.
    let sampled = weight(&got, pid, SampleKind::Switches);
    // Which of them are the idle threads' is by chance.
    let slack = EVERY_SWITCH * capture.cpus() as u64 + switches / 10;
    assert!(sampled.abs_diff(switches) <= slack, "{sampled} sampled, {switches} counted");
    let (inside_sleeps, all) = inside(&got, pid, SampleKind::Switches, sleeps);
    let wanted = SLEEPS / EVERY_SWITCH;
    assert!(inside_sleeps as u64 * 100 >= wanted * 80, "{inside_sleeps} of {all} sleep, of {wanted}");

    if faults == 0 {
        skip(test, "the file system of the target directory has its pages in memory (tmpfs): no fault reads");
        return;
    }
    assert!(faults >= READ / 2, "{faults} faults of {READ} pages");
    assert_eq!(weight(&got, pid, SampleKind::MajorFaults), faults, "each is a sample");
    let (inside_reads, all) = inside(&got, pid, SampleKind::MajorFaults, reads);
    assert!(inside_reads * 100 >= all * 98, "{inside_reads} of {all} are in the function that reads");
}
