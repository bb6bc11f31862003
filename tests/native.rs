//! Native stacks without frame pointers, on this machine's kernel: programs of known stacks, walked by the unwind
//! tables of their files. Prints shares.
//!
//! Needs root and a binary with its BPF programs (`cargo xtask build`), a C compiler, and JDKs for Java over zlib;
//! skips else. One test at a time.

use emberscope::capture::{Capture, CaptureConfig, CaptureError, HostFeatures, TableMaps};
use emberscope::hotspot::{Jvm, LibjvmFiles};
use emberscope::model::{Pid, RawEvent, RawStack, StackEnd};
use emberscope::unwind::hotspot::layout;
use emberscope::unwind::table::{Keeper, Limits, Walker, WalkerError};
use emberscope_tests::{function, skip};
use profiler_ebpf::{FrameKindTag, ProcessTables, UserFrame};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Where a thread of a JVM begins (os_linux.cpp).
const THREAD_ENTRY: &str = "_ZL19thread_native_entryP6Thread";

fn host(test: &str) -> Option<(HostFeatures, MutexGuard<'static, ()>)> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !emberscope_tests::is_root() {
        skip(test, "not root: BPF programs cannot be loaded");
        return None;
    }
    let features = HostFeatures::probe();
    if !features.bpf_loop {
        skip(test, "no bpf_loop (Linux 5.17): native code is walked by frame pointers only");
        return None;
    }
    match Capture::smoke(&features) {
        Err(error @ CaptureError::NotBuilt) => {
            skip(test, &error.to_string());
            None
        }
        _ => Some((features, guard)),
    }
}

struct Maps(TableMaps);

impl Walker for Maps {
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError> {
        self.0.write(address, words).map_err(|e| WalkerError(e.to_string()))
    }
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError> {
        self.0.rule(number, rule).map_err(|e| WalkerError(e.to_string()))
    }
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<(), WalkerError> {
        self.0.set(pid, tables).map_err(|e| WalkerError(e.to_string()))
    }
    fn forget(&mut self, pid: Pid) {
        self.0.forget(pid);
    }
    fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool) {
        self.0.free_slabs(empty);
    }
}

/// A running program; killed when dropped.
struct Running {
    child: Child,
    first_line: String,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut first_line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut first_line).expect("a line");
        Self { child, first_line }
    }
    fn pid(&self) -> Pid {
        self.child.id()
    }
    /// Executable mappings of the program's own file.
    fn own_code(&self) -> Vec<std::ops::Range<u64>> {
        let exe = std::fs::read_link(format!("/proc/{}/exe", self.pid())).expect("an exe");
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("maps");
        let own = maps.lines().filter(|l| l.contains(" r-xp ") && l.ends_with(exe.to_str().unwrap_or("?")));
        let number = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
        own.map(|line| {
            let (start, end) = line.split(' ').next().and_then(|r| r.split_once('-')).expect("a range");
            number(start)..number(end)
        })
        .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was seen of a process: stacks with how many samples had each.
struct Seen {
    stacks: Vec<(RawStack, usize)>,
    all: usize,
    ns: u64,
    frames: f64,
}

impl Seen {
    fn share(&self, what: &str, holds: impl Fn(&RawStack) -> bool) -> f64 {
        let count: usize = self.stacks.iter().filter(|(s, _)| holds(s)).map(|(_, n)| n).sum();
        let share = 100.0 * count as f64 / self.all.max(1) as f64;
        println!("    {share:.2} % {what} ({count} of {})", self.all);
        share
    }
    fn print(&self, title: &str) {
        println!(
            "{title}: {} samples, {} ns a run, {:.1} user frames a sample",
            self.all, self.ns, self.frames
        );
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for (stack, count) in &self.stacks {
            *ends.entry(stack.end.slug()).or_default() += count;
        }
        println!("    ends: {ends:?}");
    }
}

/// Samples a process for a while, with or without tables. `before` runs once the capture has begun.
fn sampled(features: &HostFeatures, pid: Pid, tables: bool, before: impl FnOnce(&mut Capture)) -> Seen {
    let config = CaptureConfig { hz: 997, measure: true, ..CaptureConfig::default() };
    let mut capture = Capture::start(&config, features).unwrap_or_else(|e| panic!("{e}"));
    before(&mut capture);
    let maps = Maps(capture.take_tables().expect("the maps"));
    let mut keeper = Keeper::new(maps, None, Limits::default()).expect("a keeper");
    if tables {
        let begun = Instant::now();
        keeper.look(Path::new(&format!("/proc/{pid}")), pid, u64::MAX).expect("tables");
        println!("    tables in {:?}: {:?}", begun.elapsed(), keeper.counts());
    }
    let mut events = Vec::new();
    record(&mut capture, Duration::from_millis(100), &mut events);
    // A stack is told once an epoch, so those from before are kept.
    events.retain(|event| matches!(event, RawEvent::Stack(_)));
    let began = capture.stats();
    let mut stacks: HashMap<u64, (RawStack, usize)> = HashMap::new();
    record(&mut capture, seconds(), &mut events);
    let ended = capture.stats();
    for event in events {
        match event {
            RawEvent::Stack(stack) if stack.pid == pid => {
                stacks.entry(stack.hash).or_insert((stack, 0));
            }
            RawEvent::Sample(sample) if sample.pid == pid => {
                stacks.get_mut(&sample.stack).expect("told before").1 += 1;
            }
            _ => {}
        }
    }
    let run = |stats: &emberscope::capture::KernelStats| {
        let sampler = stats.programs.iter().find(|p| p.name == "sample");
        sampler.map(|p| (p.run_count, p.run_time_ns)).unwrap_or_default()
    };
    let (now, then) = (run(&ended), run(&began));
    let all = stacks.values().map(|(_, count)| count).sum();
    Seen {
        stacks: stacks.into_values().filter(|(_, count)| *count > 0).collect(),
        all,
        ns: (now.1 - then.1) / (now.0 - then.0).max(1),
        frames: (ended.user_frames - began.user_frames) as f64
            / (ended.samples - began.samples).max(1) as f64,
    }
}

fn seconds() -> Duration {
    let told = std::env::var("EMBERSCOPE_WALK_SECONDS").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(told.unwrap_or(3))
}

fn record(capture: &mut Capture, time: Duration, events: &mut Vec<RawEvent>) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        capture.read(Duration::from_millis(50), events).expect("read");
    }
}

/// Compiles a fixture.
fn compiled(compiler: &str, source: &str, flags: &[&str], output: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{output}-{}", std::process::id()));
    if !program.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(source);
        let status = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(source).status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler} {output}");
    }
    program
}

const C_FLAGS: [&str; 6] = [
    "-O2",
    "-fomit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-pthread",
    "-g0",
    "-fno-inline-small-functions",
];

fn native() -> PathBuf {
    compiled("cc", "native.c", &C_FLAGS, "native")
}

/// leaf, down, work, handler, compare, aligned, callback, tick, main, _start.
const LETTERS: [char; 10] = ['l', 'd', 'w', 'h', 'c', 'a', 'k', 't', 'm', 's'];

/// A stack as letters, leaf first: one for each frame of the program, a dot for any number of frames of libraries.
fn letters(stack: &RawStack, functions: &[(u64, char)], own: &[std::ops::Range<u64>]) -> String {
    let mut text = String::new();
    for frame in &stack.user {
        let at = frame.value - u64::from(frame.flags & UserFrame::FLAG_RETURN_ADDRESS);
        let letter = if own.iter().any(|range| range.contains(&at)) {
            let nearest = functions.iter().rev().find(|(start, _)| at >= *start);
            nearest.map_or('?', |(_, letter)| *letter)
        } else {
            '.'
        };
        if letter != '.' || !text.ends_with('.') {
            text.push(letter);
        }
    }
    text
}

/// Runs the C program; at least 99.5 of 100 samples are rooted and as one of `right`.
fn known(test: &str, args: &[&OsStr], right: &[String]) {
    let Some((features, _guard)) = host(test) else { return };
    let program = Running::start(Command::new(native()).args(args));
    if args.first() == Some(&OsStr::new("load")) {
        std::thread::sleep(Duration::from_millis(1500));
    }
    let addresses = program.first_line.split_whitespace();
    let addresses =
        addresses.map(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).expect("hexadecimal"));
    let mut functions: Vec<(u64, char)> = addresses.zip(LETTERS).collect();
    functions.sort_unstable();
    let own = program.own_code();
    let seen = sampled(&features, program.pid(), true, |_| {});
    seen.print(test);
    let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
    let exact = |s: &RawStack| right.iter().any(|r| *r == letters(s, &functions, &own));
    let exact = seen.share("are right, frame by frame", exact);
    let mut others: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (stack, count) in &seen.stacks {
        *others.entry((letters(stack, &functions, &own), stack.end.slug())).or_default() += count;
    }
    let mut others: Vec<_> = others.into_iter().collect();
    others.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    others.iter().take(8).for_each(|(how, count)| println!("    {count:6} {how:?}"));
    assert!(seen.all > 100, "{} samples", seen.all);
    assert!(rooted >= 99.5 && exact >= 99.5, "{rooted:.2} % rooted, {exact:.2} % right");
}

fn known_c(test: &str, args: &[&str], right: &[&str]) {
    let right: Vec<String> = right.iter().map(|r| (*r).to_owned()).collect();
    known(test, &args.iter().map(OsStr::new).collect::<Vec<_>>(), &right);
}

/// Stacks of a recursion: in leaf all of it, in down as far as it has come.
fn chains(depth: usize, below: &str) -> Vec<String> {
    let down = |n: usize| format!("{}{below}", "d".repeat(n));
    (0..=depth).map(down).chain([format!("l{}", down(depth))]).collect()
}

#[test]
fn a_chain_of_calls_in_the_main_thread() {
    known("chain", &["chain", "10"].map(OsStr::new), &chains(10, "wm.s"));
}

#[test]
fn a_chain_of_calls_in_a_thread() {
    known("thread", &["thread", "10"].map(OsStr::new), &chains(10, "w."));
}

#[test]
fn four_hundred_and_eighty_calls() {
    known("deep", &["chain", "480"].map(OsStr::new), &chains(480, "wm.s"));
}

#[test]
fn a_callback_from_the_c_library() {
    known_c("sort", &["sort"], &["c.wm.s", ".wm.s", "wm.s"]);
}

#[test]
fn the_c_librarys_own_code_in_a_thread() {
    known_c("copy", &["copy"], &[".w.", "w."]);
}

#[test]
fn a_signals_handler_and_what_it_interrupts() {
    let right =
        ["lh.ldddddwm.s", "ldddddwm.s", "lh.l.ldddddwm.s", "lh.dddddwm.s", "h.ldddddwm.s", ".ldddddwm.s"];
    known_c("signal", &["signal", "5"], &right);
    known_c("altstack", &["altstack", "5"], &right);
}

#[test]
fn functions_that_align_their_stack() {
    known_c("aligned", &["aligned", "8"], &["laaaaaaaawm.s", "aaaaaaaawm.s"]);
}

#[test]
fn a_library_that_is_opened_later() {
    let library = compiled(
        "cc",
        "loaded.c",
        &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-shared", "-fPIC"],
        "loaded.so",
    );
    let args = [OsStr::new("load"), library.as_os_str()];
    known("load", &args, &["lk.wm.s", "k.wm.s", ".wm.s"].map(str::to_owned));
}

#[test]
fn the_kernels_own_page_of_code() {
    known_c("vdso", &["vdso"], &[".twm.s", "twm.s", "wm.s", "?twm.s"]);
}

/// Programs whose functions are not asked for: so many of 100 stacks must reach the root.
fn rooted(test: &str, program: &Path, bar: f64) {
    let Some((features, _guard)) = host(test) else { return };
    let program = Running::start(&mut Command::new(program));
    for tables in [false, true] {
        let seen = sampled(&features, program.pid(), tables, |_| {});
        seen.print(&format!("{test}, {} tables", if tables { "with" } else { "without" }));
        let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
        if tables {
            assert!(seen.all > 100 && rooted >= bar, "{rooted:.2} % of {}", seen.all);
        }
    }
}

#[test]
fn exceptions_through_twenty_frames() {
    // While it lands, the unwinder's own frame is not as its rows say (__builtin_eh_return of gcc).
    rooted("throws", &compiled("c++", "throws.cc", &["-O2", "-fomit-frame-pointer"], "throws"), 98.5);
}

#[test]
fn a_rust_program() {
    if Command::new("rustc").arg("--version").output().is_err() {
        return skip("a_rust_program", "no rustc");
    }
    rooted("rust", &compiled("rustc", "spin.rs", &["-O", "-C", "force-frame-pointers=no"], "rust"), 99.5);
}

/// Java over zlib, with and without tables.
fn zip(test: &str, major: u32) {
    let Some((features, _guard)) = host(test) else { return };
    let Some(home) = std::env::var_os(format!("EMBERSCOPE_JAVA{major}")).map(PathBuf::from) else {
        return skip(test, &format!("no JDK {major} here (EMBERSCOPE_JAVA{major})"));
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/Zip.java");
    let dir = tempfile::tempdir().expect("a directory");
    let done = Command::new(home.join("bin/javac")).arg("-d").arg(dir.path()).arg(source).status();
    assert!(done.is_ok_and(|done| done.success()));
    let program = Running::start(Command::new(home.join("bin/java")).arg("-cp").arg(dir.path()).arg("Zip"));
    std::thread::sleep(Duration::from_secs(2));
    let pid = program.pid();
    let jvm = Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &mut LibjvmFiles::default()).expect("a JVM");
    let linked = function(&home.join("lib/server/libjvm.so"), THREAD_ENTRY).expect("the symbol").linked;
    let bias = jvm.libjvm().bias;
    let entry = linked.start.wrapping_add(bias)..linked.end.wrapping_add(bias);
    for tables in [false, true] {
        let seen = sampled(&features, pid, tables, |capture| {
            let told = layout(&jvm, major * 10 + u32::from(tables)).expect("a layout");
            capture.set_jvm(pid, &told).expect("room");
        });
        seen.print(&format!("JDK {major} over zlib, {} tables", if tables { "with" } else { "without" }));
        let native_leaf =
            |s: &RawStack| s.user.first().is_some_and(|f| f.kind == FrameKindTag::Address as u8);
        seen.share("have a native leaf", native_leaf);
        let entered = |s: &RawStack| s.user.iter().any(|f| f.kind == 0 && entry.contains(&f.value));
        let java = |s: &RawStack| s.user.iter().any(|f| f.kind == FrameKindTag::JavaCompiled as u8);
        seen.share("have Java frames", java);
        seen.share("reach the function that started the thread", entered);
        let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
        if tables {
            assert!(seen.all > 100 && rooted >= 99.0, "{rooted:.2} % of {}", seen.all);
        }
    }
}

#[test]
fn java_over_zlib_17() {
    zip("java_over_zlib_17", 17);
}

#[test]
fn java_over_zlib_25() {
    zip("java_over_zlib_25", 25);
}
