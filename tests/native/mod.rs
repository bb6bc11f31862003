//! Native stacks without frame pointers, on this machine's kernel: programs of known stacks, walked by the unwind
//! tables of their files. Prints shares.
//!
//! Needs root and a binary with its BPF programs (`cargo xtask build`), a C compiler, and JDKs for Java over zlib;
//! skips else. One test at a time. `stacks`: a program whose stacks are known; `files`: where its code may lie;
//! `languages`: others' programs; `room`: what happens when tables have little.

mod files;
mod languages;
mod room;
mod stacks;

use emberscope_capture::{Capture, CaptureConfig, HostFeatures};
use emberscope_model::{Pid, RawEvent, RawStack, StackEnd, Tenant};
use emberscope_pipeline::Maps;
use emberscope_target::open;
use emberscope_tests::{skip, walking_host as host};
use emberscope_unwind::table::{Keeper, Limits, Sizes, make};
use profiler_ebpf::UserFrame;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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
    /// The commonest stacks that are not as they should be, and where their frames lie.
    fn strays(&self, pid: Pid, right: impl Fn(&RawStack) -> bool) {
        let maps = open::mappings(Path::new(&format!("/proc/{pid}"))).unwrap_or_default().mappings;
        let place = |frame: &UserFrame| {
            let mapping = maps.iter().find(|mapping| (mapping.start..mapping.end).contains(&frame.value));
            let place = mapping.map(|m| format!("{}+{:#x}", m.module_name(), frame.value - m.start));
            format!(
                "{}/{} {}",
                frame.runtime,
                frame.kind,
                place.unwrap_or_else(|| format!("{:#x}", frame.value))
            )
        };
        let mut strays: Vec<_> = self.stacks.iter().filter(|(s, _)| !right(s)).collect();
        strays.sort_unstable_by_key(|(_, count)| Reverse(*count));
        for (stack, count) in strays.into_iter().take(5) {
            let frames: Vec<_> = stack.user.iter().take(8).map(place).collect();
            let (user, kernel) = (stack.user.len(), stack.kernel.len());
            println!("    {count} x {}, {user} and {kernel}: {}", stack.end.slug(), frames.join(", "));
        }
    }
}

/// Has the walker know all code of a process.
fn learn(keeper: &mut Keeper<Maps>, pid: Pid) {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    for wanted in keeper.look(&dir, pid).expect("a list") {
        let made = make(&wanted, Sizes::usual(u64::MAX), keeper.keys(), None);
        keeper.learn(made, Tenant::default()).expect("tables");
    }
    keeper.look(&dir, pid).expect("tables");
}

/// Samples a process for a while, with tables of all its code. `before` runs once the capture has begun.
fn sampled(features: &HostFeatures, pid: Pid, before: impl FnOnce(&mut Capture)) -> Seen {
    let mut watch = Watch::begin(features, Limits::default(), before);
    let begun = Instant::now();
    learn(&mut watch.keeper, pid);
    println!("    tables in {:?}: {:?}", begun.elapsed(), watch.keeper.counts());
    watch.see(pid)
}

/// The sampler, and the tables that it has.
struct Watch {
    capture: Capture,
    keeper: Keeper<Maps>,
    /// A stack is told once an epoch, so those from before are kept.
    stacks: Vec<RawEvent>,
}

impl Watch {
    fn begin(features: &HostFeatures, limits: Limits, before: impl FnOnce(&mut Capture)) -> Self {
        let config = CaptureConfig { hz: 997, measure: true, ..CaptureConfig::default() };
        let mut capture = Capture::start(&config, features).unwrap_or_else(|e| panic!("{e}"));
        before(&mut capture);
        let maps = Maps(capture.take_tables().expect("the maps"));
        let keeper = Keeper::new(maps, limits).expect("a keeper");
        Self { capture, keeper, stacks: Vec::new() }
    }

    /// What is seen of a process from now on for a while.
    fn see(&mut self, pid: Pid) -> Seen {
        let mut events = std::mem::take(&mut self.stacks);
        // The walker believes for a quarter of a second that a process has no runtime (`walk/recent`).
        record(&mut self.capture, Duration::from_millis(350), &mut events);
        events.retain(|event| matches!(event, RawEvent::Stack(_)));
        let began = self.capture.stats();
        let mut stacks: HashMap<u64, (RawStack, usize)> = HashMap::new();
        record(&mut self.capture, seconds(), &mut events);
        let ended = self.capture.stats();
        for event in events {
            match event {
                RawEvent::Stack(stack) if stack.pid == pid => {
                    self.stacks.push(RawEvent::Stack(stack.clone()));
                    stacks.entry(stack.hash).or_insert((stack, 0));
                }
                RawEvent::Sample(sample) if sample.pid == pid => {
                    stacks.get_mut(&sample.stack).expect("told before").1 += 1;
                }
                _ => {}
            }
        }
        let run = |stats: &emberscope_capture::KernelStats| {
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
}

fn seconds() -> Duration {
    let told = std::env::var("EMBERSCOPE_WALK_SECONDS").ok().and_then(|s| s.parse().ok());
    Duration::from_secs(told.unwrap_or(2))
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
