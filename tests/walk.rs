//! The walk of real JVMs' stacks in the kernel, with no flag: whether each one with a Java leaf reaches the function
//! that started the thread, and by which reasons the others end.
//!
//! Needs root and a binary with its BPF programs (`cargo xtask build`), and JDKs; skips else. One test at a time.

use emberscope_capture::{Capture, CaptureConfig, HostFeatures, KernelStats};
use emberscope_hotspot::{Jvm, JvmProblem, LibjvmFiles, layout};
use emberscope_model::{Pid, RawEvent, RawStack, StackEnd};
use emberscope_tests::{function, skip, walking_host as host};
use profiler_ebpf::{RuntimeId, UserFrame};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use xtask::setup::old_java;
use xtask::setup::runtime::Runtime;

mod barriers;
mod deep;
mod intrinsics;
mod java;
mod native;
mod seen;
use java::*;
use seen::*;

/// Where a thread of a JVM begins (os_linux.cpp).
const THREAD_ENTRY: &str = "_ZL19thread_native_entryP6Thread";

/// A running JVM; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a stack ended: reason, rooted, kinds of the first and the last frame (9: there is none).
type How = (&'static str, bool, u8, u8);

/// Where the threads of a JVM begin.
enum ThreadStart {
    /// In this function of libjvm.
    Function(Range<u64>),
    /// Its libjvm has no symbols: in the C library's code that calls the function.
    Library { libjvm: Vec<Range<u64>>, libc: Vec<Range<u64>> },
}

impl ThreadStart {
    fn of(java: &Java, jvm: &Jvm, pid: Pid) -> Self {
        if let Some(found) = function(&java.libjvm, THREAD_ENTRY) {
            let bias = jvm.libjvm().bias;
            return Self::Function(
                found.linked.start.wrapping_add(bias)..found.linked.end.wrapping_add(bias),
            );
        }
        Self::Library { libjvm: code_of(pid, "/libjvm.so"), libc: code_of(pid, "/libc.so.6") }
    }
    fn is_reached(&self, frames: &[UserFrame]) -> bool {
        let within = |frame: &UserFrame, code: &[Range<u64>]| {
            frame.is_native() && code.iter().any(|range| range.contains(&frame.value))
        };
        match (self, frames) {
            (Self::Function(entry), _) => {
                frames.iter().any(|frame| within(frame, std::slice::from_ref(entry)))
            }
            (Self::Library { libjvm, libc }, [.., below, last]) => {
                within(below, libjvm) && within(last, libc)
            }
            _ => false,
        }
    }
}

/// Where a process has mapped the code of files whose path ends so.
fn code_of(pid: Pid, file: &str) -> Vec<Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let code = maps.lines().filter(|line| line.ends_with(file) && line.contains(" r-xp "));
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    code.filter_map(range).collect()
}

/// Starts the program with these flags; returns when it is ready.
fn start(test: &str, java: &Java, flags: &[&str], args: &[&str]) -> Option<Running> {
    let classes = java.runtime.place(classes(test)?).expect("there is room");
    let [program, words @ ..] = &java.runtime.command[..] else { unreachable!("a command has words") };
    let mut command = Command::new(program);
    command
        .args(words)
        .arg("-XX:+UnlockExperimentalVMOptions")
        .args(flags)
        .arg("-cp")
        .arg(classes)
        .args(args);
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts"));
    let mut line = String::new();
    let mut out = BufReader::new(child.0.stdout.take().expect("piped"));
    while line.trim() != "ready" {
        line.clear();
        if out.read_line(&mut line).expect("text") == 0 {
            skip(test, &format!("Java {} refuses {flags:?}", java.runtime.major));
            return None;
        }
    }
    Some(child)
}

/// Samples that JVM from now on.
fn sampled(features: &HostFeatures, java: &Java, flags: &[&str], pid: Pid) -> (Capture, Jvm) {
    static INCARNATION: AtomicU32 = AtomicU32::new(1);
    let config = CaptureConfig { hz: 997, measure: true, ..CaptureConfig::default() };
    let mut capture = Capture::start(&config, features).unwrap_or_else(|e| panic!("{e}"));
    capture.expect_runtime(RuntimeId::HOTSPOT, pid).expect("room");
    let jvm = Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &LibjvmFiles::default()).expect("a JVM");
    let incarnation = INCARNATION.fetch_add(1, Ordering::Relaxed);
    let told =
        layout(&jvm, incarnation).unwrap_or_else(|e| panic!("Java {} {flags:?}: {e}", java.runtime.major));
    assert!(capture.set_runtime(RuntimeId::HOTSPOT, pid, &told.to_bytes()).expect("room"), "the JVM ended");
    (capture, jvm)
}

/// A process's stacks by their hash, with how many samples had each; and its samples.
fn stacks_of(pid: Pid, events: Vec<RawEvent>) -> (HashMap<u64, (RawStack, usize)>, usize) {
    let mut stacks: HashMap<u64, (RawStack, usize)> = HashMap::new();
    let mut samples = 0;
    for event in events {
        match event {
            RawEvent::Stack(stack) if stack.pid == pid => {
                stacks.entry(stack.hash).or_insert((stack, 0));
            }
            RawEvent::Sample(sample) if sample.pid == pid => {
                samples += 1;
                stacks.get_mut(&sample.stack).expect("told before").1 += 1;
            }
            _ => {}
        }
    }
    (stacks, samples)
}

/// Runs the program with these flags, and samples it for a while.
fn seen(test: &str, features: &HostFeatures, java: &Java, flags: &[&str], args: &[&str]) -> Option<Seen> {
    let child = start(test, java, flags, args)?;
    let pid: Pid = child.0.id();
    let (mut capture, jvm) = sampled(features, java, flags, pid);
    let start = ThreadStart::of(java, &jvm, pid);

    let mut events = Vec::new();
    record(&mut capture, Duration::from_secs(1), &mut events);
    let before = capture.stats();
    record(&mut capture, seconds(), &mut events);
    let after = capture.stats();
    assert!(capture.has_runtime(RuntimeId::HOTSPOT, pid), "the layout is gone");
    drop(child);
    record(&mut capture, Duration::from_millis(200), &mut events);
    assert!(
        !capture.has_runtime(RuntimeId::HOTSPOT, pid),
        "the layout of a process that ended is still there"
    );

    let (stacks, samples) = stacks_of(pid, events);
    let is_java = |f: &UserFrame| !f.is_native();
    let (leaves, native): (Vec<_>, Vec<_>) =
        stacks.into_values().partition(|(stack, _)| stack.user.first().is_some_and(is_java));
    let native = native.into_iter().filter(|(stack, _)| stack.user.iter().any(is_java)).collect();
    let mut seen = Seen { java: leaves, native, samples, start, below: (0, 0), before, after };
    for (stack, count) in &seen.native {
        seen.below.0 += count;
        seen.below.1 += if seen.rooted(stack) { *count } else { 0 };
    }
    Some(seen)
}

/// How long each is sampled.
fn seconds() -> Duration {
    Duration::from_secs(
        std::env::var("EMBERSCOPE_WALK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2),
    )
}

fn record(capture: &mut Capture, time: Duration, events: &mut Vec<RawEvent>) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        capture.read(Duration::from_millis(50), events).expect("read");
    }
}

/// At least 99 of 100 samples with a Java leaf are rooted, and there are enough of them.
fn all_rooted(test: &str, major: u32, flags: &[&str], args: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let Some(seen) = seen(test, &features, &java, flags, args) else { return };
    seen.print(&format!("JDK {major} {flags:?} {args:?}"));
    let all = seen.count(|_| true);
    let rooted = seen.count(|stack| seen.rooted(stack));
    assert!(all > 50, "{all} samples with a Java leaf");
    assert!(rooted * 100 >= all * 99, "{rooted} of {all}");
}

/// A JVM's name, and what it must hold.
type Held<'a> = (&'a str, &'a dyn Fn(&str));

/// All JVMs of a table in one test: `cargo xtask bench stacks` reads what is printed of each.
fn each(jvms: &[Held<'_>]) {
    let mut failed = Vec::new();
    for (name, check) in jvms {
        let holds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(name))).is_ok();
        println!("jvm {name}: {}", if holds { "holds" } else { "does not" });
        failed.extend((!holds).then_some(*name));
    }
    assert!(failed.is_empty(), "{} of {}: {}", failed.len(), jvms.len(), failed.join(", "));
}

macro_rules! rooted {
    ($($name:ident: $major:literal, $flags:expr, $args:expr;)+) => {
        $(#[test]
        fn $name() {
            all_rooted(stringify!($name), $major, &$flags, &$args);
        })+
    };
}

// Each version's layout, each kind of frame; tests/stacks.rs holds 17 and 25 frame by frame, interpreted too.
rooted! {
    plain_8: 8, [], ["Walk", "mix"];
    plain_11: 11, [], ["Walk", "mix"];
    plain_17: 17, [], ["Walk", "mix"];
    plain_21: 21, [], ["Walk", "mix"];
    plain_25: 25, [], ["Walk", "mix"];
    interpreted_8: 8, ["-Xint"], ["Walk", "mix"];
    deoptimised_25: 25, [], ["Walk", "deopt"];
    virtual_threads_25: 25, [], ["Virtual", "30"];
}

macro_rules! table {
    ($($name:ident: $major:literal, $flags:expr, $args:expr;)+) => {
        &[$((stringify!($name), &|name: &str| all_rooted(name, $major, &$flags, &$args))),+]
    };
}

/// Collectors, compilers and flags on each version: minutes, for who changes the walk.
#[test]
#[ignore = "`cargo xtask bench stacks --rows walk` runs it"]
fn all_other_jvms() {
    each(table! {
        c1_8: 8, ["-XX:TieredStopAtLevel=1"], ["Walk", "mix"];
        c2_8: 8, ["-XX:-TieredCompilation"], ["Walk", "mix"];
        deoptimised_8: 8, [], ["Walk", "deopt"];
        interpreted_17: 17, ["-Xint"], ["Walk", "mix"];
        interpreted_25: 25, ["-Xint"], ["Walk", "mix"];
        interpreted_11: 11, ["-Xint"], ["Walk", "mix"];
        interpreted_21: 21, ["-Xint"], ["Walk", "mix"];
        c1_17: 17, ["-XX:TieredStopAtLevel=1"], ["Walk", "mix"];
        c1_25: 25, ["-XX:TieredStopAtLevel=1"], ["Walk", "mix"];
        c1_profiled_17: 17, ["-XX:TieredStopAtLevel=3"], ["Walk", "mix"];
        c2_17: 17, ["-XX:-TieredCompilation"], ["Walk", "mix"];
        c2_25: 25, ["-XX:-TieredCompilation"], ["Walk", "mix"];
        parallel_17: 17, ["-XX:+UseParallelGC"], ["Walk", "mix"];
        parallel_25: 25, ["-XX:+UseParallelGC"], ["Walk", "mix"];
        serial_17: 17, ["-XX:+UseSerialGC"], ["Walk", "mix"];
        serial_25: 25, ["-XX:+UseSerialGC"], ["Walk", "mix"];
        zgc_17: 17, ["-XX:+UseZGC"], ["Walk", "mix"];
        zgc_25: 25, ["-XX:+UseZGC"], ["Walk", "mix"];
        zgc_21: 21, ["-XX:+UseZGC", "-XX:+ZGenerational"], ["Walk", "mix"];
        g1_17: 17, ["-XX:+UseG1GC"], ["Walk", "mix"];
        g1_25: 25, ["-XX:+UseG1GC"], ["Walk", "mix"];
        one_code_heap_17: 17, ["-XX:-SegmentedCodeCache"], ["Walk", "mix"];
        one_code_heap_25: 25, ["-XX:-SegmentedCodeCache"], ["Walk", "mix"];
        frame_pointers_17: 17, ["-XX:+PreserveFramePointer"], ["Walk", "mix"];
        frame_pointers_25: 25, ["-XX:+PreserveFramePointer"], ["Walk", "mix"];
        thrown_17: 17, [], ["Walk", "throw", "100"];
        thrown_25: 25, [], ["Walk", "throw", "100"];
        reflected_17: 17, [], ["Walk", "reflect"];
        reflected_25: 25, [], ["Walk", "reflect"];
        deoptimised_17: 17, [], ["Walk", "deopt"];
        virtual_threads_21: 21, [], ["Virtual", "30"];
        virtual_threads_interpreted_25: 25, ["-Xint"], ["Virtual", "30"];
        virtual_threads_without_inlining_25: 25, ["-XX:-Inline"], ["Virtual", "30"];
    });
}

#[test]
fn no_jvm_has_no_layout() {
    let files = LibjvmFiles::default();
    assert_eq!(Jvm::open(Path::new("/proc/self"), 0, &files).unwrap_err(), JvmProblem::NoLibjvm);
}
