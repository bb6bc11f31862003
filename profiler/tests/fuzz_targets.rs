//! Each fuzz target (profiler/fuzz) on inputs that are made here: no libFuzzer and no coverage, but the same functions
//! with the same assertions, compiled with the tests. `cargo xtask fuzz` runs them with libFuzzer, for as long as one
//! likes.
//!
//! Inputs are made from a seed, so that a run finds what the last one found: any bytes, and what each target lists as
//! sound, spoiled. Limits: `RUNS` and `TIME` a target, `SLOW` an input, `MEMORY_KB` of all together.

// Each target is a program of its own elsewhere, and has what they share as its own module.
#![allow(clippy::duplicate_mod, clippy::type_complexity)]

// The targets ask for a crate of this name.
extern crate self as libfuzzer_sys;

use std::time::{Duration, Instant};

/// Inputs of a target, and how long it may take for them.
const RUNS: u32 = 20_000;
const TIME: Duration = Duration::from_secs(4);
/// An input that takes longer is a finding; unoptimised, on a crowded machine.
const SLOW: Duration = Duration::from_secs(20);
/// More is a finding: libFuzzer has the same limit for each target.
const MEMORY_KB: u64 = 1 << 20;
/// Longest input made of any bytes.
const LONGEST: u64 = 600;

/// A target's function, as libFuzzer's macro makes it of the same words.
macro_rules! fuzz_target {
    (|$input:ident: $kind:ty| $body:block) => {
        pub fn run(bytes: &[u8]) {
            use arbitrary::{Arbitrary, Unstructured};
            let Ok($input) = <$kind>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
            $body
        }
    };
}
pub(crate) use fuzz_target;

macro_rules! targets {
    ($($name:ident: $file:literal, $sound:expr;)+) => {
        $(
            #[path = $file]
            #[allow(unused_imports, reason = "here the macro is found without")]
            mod $name;
        )+
        /// All there are.
        const TARGETS: &[&str] = &[$(stringify!($name)),+];
        mod each {
            $(
                #[test]
                fn $name() {
                    super::fuzz(super::$name::run, &$sound);
                }
            )+
        }
    };
}

targets! {
    // Lanes whose rows are together more than a number holds.
    archive: "../fuzz/fuzz_targets/archive.rs", [&b"xxx\0\0\x10"[..]];
    blocks: "../fuzz/fuzz_targets/blocks.rs", [&b"\x12\x12da."[..]];
    connect: "../fuzz/fuzz_targets/connect.rs", [
        &b"\x05\x01{\"profileTypeID\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"labelSelector\":\"{}\",\"start\":1700000000000,\"end\":1700000040000}"[..],
        b"\x08\x01{\"left\":{\"labelSelector\":\"{}\",\"start\":1,\"end\":2},\"right\":{}}",
        b"\x01\x00\x0a\x02{}\x10\x80\xd0\x95\xff\xbc\x31\x18\x81",
    ];
    driver_rest: "../fuzz/fuzz_targets/driver_rest.rs", [];
    elf: "../fuzz/fuzz_targets/elf.rs", [];
    event_log: "../fuzz/fuzz_targets/event_log.rs", [
        // A start, a job of a query with a plan, a stage, its task, an executor, an end; the first byte says how it begins.
        &b"\x00{\"Event\":\"SparkListenerApplicationStart\",\"App Name\":\"etl\",\"App ID\":\"app-1\",\"Timestamp\":1700000000000}\n{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart\",\"executionId\":1,\"description\":\"q\",\"sparkPlanInfo\":{\"nodeName\":\"Sort\",\"simpleString\":\"Sort [a]\",\"children\":[{\"nodeName\":\"Range\",\"simpleString\":\"Range (0)\",\"children\":[],\"metrics\":[]}],\"metrics\":[]},\"time\":1700000000001}\n"[..],
        b"\x04{\"Event\":\"SparkListenerApplicationStart\",\"App ID\":\"a\",\"Timestamp\":1700000000000}\n{\"Event\":\"SparkListenerJobStart\",\"Job ID\":1,\"Submission Time\":1700000000001,\"Stage Infos\":[{\"Stage ID\":3,\"Stage Attempt ID\":0,\"Stage Name\":\"n\",\"Number of Tasks\":4}],\"Stage IDs\":[3],\"Properties\":{\"spark.sql.execution.id\":\"1\"}}\n{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":{\"Stage ID\":3,\"Stage Attempt ID\":0,\"Stage Name\":\"n\",\"Number of Tasks\":4,\"Submission Time\":1700000000002,\"Completion Time\":1700000000009}}\n{\"Event\":\"SparkListenerApplicationEnd\",\"Timestamp\":1700000000010}\n",
    ];
    hotspot: "../fuzz/fuzz_targets/hotspot.rs", [];
    http: "../fuzz/fuzz_targets/http.rs", [];
    import: "../fuzz/fuzz_targets/import.rs", [
        &b"\x00\x00a;b;c_[j] 12\nd;e 3\n"[..], b"\x01\x00FLR\0\x00\x02\x00\x01", b"\x02\x01\x0a\x04\x08\x01\x10\x02",
    ];
    java_names: "../fuzz/fuzz_targets/java_names.rs", [];
    journal: "../fuzz/fuzz_targets/journal.rs", [];
    manifest: "../fuzz/fuzz_targets/manifest.rs", [];
    perf_map: "../fuzz/fuzz_targets/perf_map.rs", [
        &b"\x0a0x0000000000000101 0x10 java.lang.String java.io.File.getPath()\n7000 200 Interpreter\n"[..],
    ];
    python: "../fuzz/fuzz_targets/python.rs", [];
    query_string: "../fuzz/fuzz_targets/query_string.rs", [
        &b"app=a&executor=1&executor=2&from=-5m&until=now&group=stage,task&unit=ns"[..],
        b"query=%7Bapp%3D~%22a%7Cb%22%7D&max_nodes=10&format=folded&from=2026-11-24T07:00:00Z",
    ];
    selector: "../fuzz/fuzz_targets/selector.rs", [
        &b"process_cpu:cpu:nanoseconds:cpu:nanoseconds{app=\"a\",stage=~\"1|2\",role!~\"exec.*\",user!=\"\\\"\"}"[..],
        b"{service_name=`etl`, app != \"b\" ,}",
    ];
    thread_name: "../fuzz/fuzz_targets/thread_name.rs", [
        &b"1.0 in stage 3.0 (TID 17)\x01"[..], b"C2 CompilerThread0\x00", b"GC Thread#1\x00", b"dag-scheduler-event-loop\x00",
    ];
    time: "../fuzz/fuzz_targets/time.rs", [
        &b"2026-11-24T07:00:00.123Z"[..], b"2026-11-24T07:00:00+05:30", b"now-1h30m", b"-5m", b"1700000000.25",
    ];
}

/// Numbers from a seed (Marsaglia's xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: u64) -> usize {
        (self.next() % end.max(1)) as usize
    }
}

/// An input of any bytes, half of them small numbers and text.
fn any(numbers: &mut Numbers) -> Vec<u8> {
    let length = numbers.below(LONGEST);
    let plain = numbers.below(2) == 0;
    let byte = |numbers: &mut Numbers| {
        let byte = numbers.next() as u8;
        if plain { byte % 96 + 32 } else { byte }
    };
    let mut bytes: Vec<u8> = (0..length).map(|_| byte(numbers)).collect();
    // Most targets choose what to do by the first bytes.
    bytes.iter_mut().take(2).for_each(|byte| *byte %= 16);
    bytes
}

/// A sound input with bytes of it changed, gone, doubled, or replaced by another's.
fn spoiled(sound: &[&[u8]], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = sound[numbers.below(sound.len() as u64)].to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() as u64 + 1);
        let end = (at + numbers.below(12)).min(bytes.len());
        match numbers.below(5) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = numbers.next() as u8),
            1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (numbers.next() % 8)),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let other = sound[numbers.below(sound.len() as u64)];
                let from = numbers.below(other.len() as u64);
                let until = (from + numbers.below(12)).min(other.len());
                bytes.splice(at..end, other[from..until].iter().copied());
            }
        }
    }
    bytes
}

fn fuzz(run: fn(&[u8]), sound: &[&[u8]]) {
    let (mut numbers, begun) = (Numbers(0x9e37_79b9_7f4a_7c15), Instant::now());
    run(&[]);
    sound.iter().for_each(|bytes| run(bytes));
    let mut runs = 0;
    while runs < RUNS && begun.elapsed() < TIME {
        let spoil = !sound.is_empty() && numbers.below(4) > 0;
        let input = if spoil { spoiled(sound, &mut numbers) } else { any(&mut numbers) };
        let since = Instant::now();
        if let Err(panic) = std::panic::catch_unwind(|| run(&input)) {
            eprintln!("input {runs}: {}", input.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        assert!(since.elapsed() < SLOW, "{:?} for input {runs}: {}", since.elapsed(), input.escape_ascii());
        runs += 1;
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak: u64 = peak.expect("the peak").parse().expect("a number");
    println!("{runs} inputs in {:?}; peak of all targets {} MB", begun.elapsed(), peak >> 10);
    assert!(runs > 20, "only {runs} inputs");
    assert!(peak < MEMORY_KB, "{peak} kB");
}

/// A target that is not listed here would not be compiled with the tests.
#[test]
fn all_targets_are_here() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(dir).expect("the targets").flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".rs")?.to_owned())).collect();
    names.sort();
    assert_eq!(names, TARGETS);
}
