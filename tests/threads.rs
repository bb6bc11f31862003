//! Names and accounts of threads on this machine's kernel: a program of known steps, and real JVMs.
//!
//! Needs root and a binary with its BPF programs (`cargo xtask build`); skips else. One test at a time.

use emberscope_capture::{Capture, CaptureConfig, CaptureError, FileId, HostFeatures, NameProbe};
use emberscope_model::{DropReason, Pid, RawEvent, RawSample, RawThread, StringLayout, ThreadCause, Tid};
use emberscope_tests::{JavaProgram, function, skip};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

mod asked;
mod full;
mod gone;
mod jvms;
mod owed;
mod shares;

/// `os::set_native_thread_name(char const*)`.
const NATIVE_NAME: &str = "_ZN2os22set_native_thread_nameEPKc";

/// How long a program may take on a crowded machine for what takes it a second.
const PATIENCE: Duration = Duration::from_secs(180);

/// A tick of the slowest kernel, and some: what raw accounts may lag behind.
const TICK_NS: u64 = 12_000_000;

fn host(test: &str) -> Option<(HostFeatures, MutexGuard<'static, ()>)> {
    let (features, guard) = emberscope_tests::host(test)?;
    if let Err(why) = &features.uprobes {
        skip(test, why);
        return None;
    }
    Some((features, guard))
}

fn config() -> CaptureConfig {
    CaptureConfig { hz: 999, ..CaptureConfig::default() }
}

fn start(config: &CaptureConfig, features: &HostFeatures) -> Capture {
    Capture::start(config, features).unwrap_or_else(|e| panic!("{e}"))
}

/// Watches a file's naming function.
fn watch(capture: &mut Capture, path: &Path, symbol: &str) -> FileId {
    watch_by(capture, path, symbol, |offset| NameProbe::NativeName { offset, by_java: None })
}

fn watch_by(capture: &mut Capture, path: &Path, symbol: &str, probe: fn(u64) -> NameProbe) -> FileId {
    try_to_watch(capture, path, symbol, probe).unwrap_or_else(|e| panic!("{e}"))
}

fn try_to_watch(
    capture: &mut Capture,
    path: &Path,
    symbol: &str,
    probe: fn(u64) -> NameProbe,
) -> Result<FileId, CaptureError> {
    let file = File::open(path).expect("opens");
    let about = file.metadata().expect("stat");
    let id = FileId { dev: about.dev(), ino: about.ino() };
    let offset = function(path, symbol).expect("has the symbol").offset;
    for _ in 0..2 {
        capture.watch_names(id, file.as_fd(), probe(offset))?;
    }
    Ok(id)
}

fn fixture() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("names-{}", std::process::id()));
    if !program.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/names.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
        assert!(cc.status().expect("cc, which rustc links with, is there").success());
    }
    program
}

/// A running fixture; killed when dropped.
struct Program(Child, BufReader<ChildStdout>);

impl Program {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(fixture());
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().expect("the fixture starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Self(child, out)
    }
    /// Waits for its next line.
    fn line(&mut self) {
        self.1.read_line(&mut String::new()).expect("text");
    }
    fn pid(&self) -> Pid {
        self.0.id()
    }
    /// Reads events until it has ended; its lines, in words.
    fn end(&mut self, capture: &mut Capture, events: &mut Vec<RawEvent>) -> (Option<i32>, Vec<Vec<String>>) {
        let code = loop {
            capture.read(Duration::from_millis(20), events).expect("read");
            if let Some(status) = self.0.try_wait().expect("waits") {
                break status.code();
            }
        };
        record(capture, Duration::from_millis(150), events);
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
        (code, (&mut self.1).lines().map(|line| words(line.expect("text"))).collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn record(capture: &mut Capture, time: Duration, events: &mut Vec<RawEvent>) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        capture.read(Duration::from_millis(50), events).expect("read");
    }
}

fn threads(events: &[RawEvent], pid: Pid) -> Vec<&RawThread> {
    events
        .iter()
        .filter_map(|event| match event {
            RawEvent::Thread(t) if t.pid == pid => Some(t),
            _ => None,
        })
        .collect()
}

fn samples(events: &[RawEvent], pid: Pid) -> Vec<&RawSample> {
    events
        .iter()
        .filter_map(|event| match event {
            RawEvent::Sample(s) if s.pid == pid => Some(s),
            _ => None,
        })
        .collect()
}

/// The threads of a process as /proc lists them, with their CPU time.
fn listed(pid: Pid) -> BTreeMap<Tid, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("lives");
    let tids = tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok());
    let cpu = |tid: Tid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        Some((tid, text.split_whitespace().next()?.parse().ok()?))
    };
    tids.filter_map(cpu).collect()
}

fn cpu(thread: &RawThread) -> u64 {
    thread.accounts.expect("accounts").cpu_ns
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// Each sample has the number that its thread was last said to have, in the order of the ring. One alone may have the number
/// before: that of an interrupt which came while the kernel side had put the name into the ring and not yet numbered the
/// thread anew. Answers how many samples each number has.
fn numbers_are_announced_first(events: &[RawEvent], pid: Pid) -> BTreeMap<u32, usize> {
    let mut now: HashMap<Tid, u32> = HashMap::new();
    let mut just_named: HashMap<Tid, u32> = HashMap::new();
    let mut seen = BTreeMap::new();
    for event in events {
        match event {
            RawEvent::Thread(t) if t.pid == pid => {
                let before = now.get(&t.tid).copied().unwrap_or(0);
                assert_eq!(t.previous_seq, before, "{t:?}");
                match t.cause {
                    ThreadCause::Named | ThreadCause::Bound { .. } | ThreadCause::Outlived => {
                        just_named.insert(t.tid, before);
                        now.insert(t.tid, t.name_seq);
                    }
                    ThreadCause::Ended => _ = now.remove(&t.tid),
                    ThreadCause::Asked => {}
                }
            }
            RawEvent::Sample(s) if s.pid == pid => {
                let before = just_named.remove(&s.tid);
                let in_between = s.kernel_mode && before == Some(s.name_seq);
                let number = now.get(&s.tid).copied().unwrap_or(0);
                assert!(s.name_seq == number || in_between, "not {number}, nor {before:?}: {s:?}");
                *seen.entry(s.name_seq).or_default() += 1;
            }
            _ => {}
        }
    }
    seen
}

#[test]
fn names_of_any_bytes_come_once_with_the_kernels_accounts() {
    let Some((features, _guard)) = host("names") else { return };
    let mut capture = start(&config(), &features);
    watch(&mut capture, &fixture(), "set_name");
    assert_eq!(capture.name_probes(), 1);
    let mut program = Program::start(&["steps"]);
    let mut events = Vec::new();
    let (code, lines) = program.end(&mut capture, &mut events);
    assert_eq!((code, lines.len()), (Some(0), 6));

    let records = threads(&events, program.pid());
    let names: Vec<&[u8]> = records.iter().map(|t| &*t.name).collect();
    let long = "x".repeat(profiler_ebpf::MAX_NAME);
    let want =
        ["plain".as_bytes(), b"", "größe 線".as_bytes(), b"bad \xff\xfe\n\t\x1b[0m", long.as_bytes(), b""];
    assert_eq!(names, want);
    let (ended, named) = records.split_last().expect("six");
    assert_eq!(ended.cause, ThreadCause::Ended);
    assert!(named.iter().all(|t| t.cause == ThreadCause::Named && t.name_seq != 0));
    let numbers: BTreeSet<u32> = named.iter().map(|t| t.name_seq).collect();
    assert_eq!(numbers.len(), 5);

    for (record, line) in records.iter().zip(&lines) {
        let accounts = record.accounts.expect("accounts");
        let [_, tid, exact, cpu, delay, _] = &line[..] else { panic!("{line:?}") };
        assert_eq!(u64::from(record.tid), number(tid));
        // What /proc said just before, brought up to date by at most a tick; and never ahead of the clock.
        let ahead = accounts.cpu_ns.checked_sub(number(cpu)).expect("not less");
        assert!(ahead < TICK_NS, "{ahead} ns more than schedstat");
        assert!(accounts.cpu_ns <= number(exact) + TICK_NS, "{accounts:?} {line:?}");
        assert!(number(exact) <= accounts.cpu_ns + TICK_NS, "{accounts:?} {line:?}");
        assert!(accounts.run_delay_ns >= number(delay));
        assert!(record.start_ns > 0 && record.start_ns < record.time_ns);
        assert_eq!(record.start_ns, records[0].start_ns);
    }
    for pair in records.windows(2) {
        let used = cpu(pair[1]) - cpu(pair[0]);
        assert!(used.abs_diff(60_000_000) < TICK_NS + 5_000_000, "{used} ns between two names");
        assert!(pair[1].accounts.unwrap().since(&pair[0].accounts.unwrap()).user_ns < 100_000_000);
    }
    let seen = numbers_are_announced_first(&events, program.pid());
    for record in named {
        assert!(seen.get(&record.name_seq).is_some_and(|n| (15..120).contains(n)), "{seen:?}");
    }
    assert_eq!(capture.stats().names, 5);
    assert_eq!(capture.stats().undecodable, 0);
}

#[test]
fn a_tid_used_again_has_no_name() {
    let Some((features, _guard)) = host("reused_tid") else { return };
    let mut capture = start(&config(), &features);
    watch(&mut capture, &fixture(), "set_name");
    let mut program = Program::start(&["reuse"]);
    let mut events = Vec::new();
    let (code, lines) = program.end(&mut capture, &mut events);
    if code == Some(2) {
        return skip(
            "reused_tid",
            "/proc/sys/kernel/ns_last_pid cannot be written (CONFIG_CHECKPOINT_RESTORE)",
        );
    }
    assert_eq!(code, Some(0), "no tid was used again");
    let tid = number(&lines.last().expect("a line")[1]) as Tid;
    let named = threads(&events, program.pid());
    assert!(named.iter().any(|t| t.tid == tid && t.cause == ThreadCause::Named));
    let mut of_tid = samples(&events, program.pid());
    of_tid.retain(|s| s.tid == tid);
    assert!(of_tid.len() > 100, "{} samples", of_tid.len());
    numbers_are_announced_first(&events, program.pid());
    assert!(of_tid.iter().filter(|s| s.name_seq != 0).count() <= 1);
}

#[test]
fn a_program_replaced_by_a_thread_has_no_name() {
    let Some((features, _guard)) = host("exec_by_thread") else { return };
    let mut capture = start(&config(), &features);
    watch(&mut capture, &fixture(), "set_name");
    let mut program = Program::start(&["exec"]);
    let mut events = Vec::new();
    let (_, lines) = program.end(&mut capture, &mut events);
    let [exec, burnt] = &lines[..] else { panic!("{lines:?}") };
    assert_ne!(number(&exec[1]), u64::from(program.pid()));
    assert_eq!(number(&burnt[1]), u64::from(program.pid()));
    let after = samples(&events, program.pid()).into_iter().filter(|s| s.name_seq == 0).count();
    assert!(after > 100, "{after} samples");
    // Neither tid is left in the table: the program's end says nothing of a thread.
    assert!(threads(&events, program.pid()).iter().all(|t| t.cause != ThreadCause::Ended));
}
