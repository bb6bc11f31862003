//! The kernel side on this machine's kernel: programs of known stacks, known CPU time, forced losses.
//!
//! Needs root and a binary with its BPF programs (`cargo xtask build`); skips else. One test at a time:
//! each samples the whole machine.

use emberscope_capture::{Capture, CaptureConfig, HostFeatures, KernelStats};
use emberscope_model::{DropReason, Pid, RawEvent, RawSample, RawStack, SampleKind, StackEnd, TaskEvent};
use emberscope_tests::host;
use profiler_ebpf::UserFrame;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod accounts;
mod block;
mod events;
mod faults;
mod named;
mod python;
mod ring;
mod shares;

/// A running fixture; killed when dropped.
struct Spin {
    child: Child,
    /// Starts of leaf, down, work, syscalls.
    functions: [u64; 4],
}

impl Spin {
    fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(fixture()).args(args))
    }
    /// Before all that is not real-time: on a CPU nearly all the time, however crowded the machine.
    fn start_first(args: &[&str]) -> Self {
        Self::spawn(Command::new("chrt").args(["--fifo", "1"]).arg(fixture()).args(args))
    }
    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the fixture starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it prints addresses");
        let mut words = line.split_whitespace().map(|w| u64::from_str_radix(w, 16).expect("hexadecimal"));
        let functions = std::array::from_fn(|_| words.next().expect("four addresses"));
        Self { child, functions }
    }
    fn pid(&self) -> Pid {
        self.child.id()
    }
    /// Which of the functions this is in; 4: another.
    fn function(&self, frame: &UserFrame) -> usize {
        let at = frame.value - u64::from(frame.flags & UserFrame::FLAG_RETURN_ADDRESS);
        if at > self.functions[3] + 4096 || at < self.functions[0] {
            return 4;
        }
        self.functions.iter().rposition(|start| at >= *start).unwrap_or(4)
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fixture() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spin-{}", std::process::id()));
    if !program.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/spin.c");
        let status = Command::new("cc")
            .args(["-O1", "-fno-omit-frame-pointer", "-fno-toplevel-reorder", "-fno-optimize-sibling-calls"])
            .args(["-pthread", "-o"])
            .arg(&program)
            .arg(source)
            .arg("-ldl")
            .status()
            .expect("cc, which rustc links with, is there");
        assert!(status.success());
    }
    program
}

/// What came up.
#[derive(Default)]
struct Got {
    events: Vec<RawEvent>,
    stats: KernelStats,
}

impl Got {
    fn samples(&self, pid: Pid) -> Vec<&RawSample> {
        self.events
            .iter()
            .filter_map(|e| match e {
                RawEvent::Sample(s) if s.pid == pid => Some(s),
                _ => None,
            })
            .collect()
    }
    fn stacks(&self) -> HashMap<u64, &RawStack> {
        self.events
            .iter()
            .filter_map(|e| match e {
                RawEvent::Stack(s) => Some((s.hash, s)),
                _ => None,
            })
            .collect()
    }
    /// The stack of each sample of a process.
    fn stacks_of(&self, pid: Pid) -> Vec<&RawStack> {
        let stacks = self.stacks();
        self.samples(pid).iter().map(|s| stacks[&s.stack]).collect()
    }
}

fn start(config: &CaptureConfig, features: &HostFeatures) -> Capture {
    Capture::start(config, features).unwrap_or_else(|e| panic!("{e}"))
}

fn record(capture: &mut Capture, time: Duration) -> Got {
    let mut got = Got::default();
    let end = Instant::now() + time;
    while Instant::now() < end {
        capture.read(Duration::from_millis(100), &mut got.events).expect("read");
    }
    got.stats = capture.stats();
    got
}

fn at_99_hz() -> CaptureConfig {
    CaptureConfig::default()
}

fn at_999_hz() -> CaptureConfig {
    CaptureConfig { hz: 999, ..CaptureConfig::default() }
}

#[test]
fn the_verifier_takes_every_program_this_host_can_run() {
    let Some((features, _guard)) = host("smoke") else { return };
    let report = Capture::smoke(&features).unwrap_or_else(|e| panic!("{e}"));
    let sampler = if features.bpf_loop { "sample" } else { "sample_more" };
    let faults = if features.bpf_loop { "faults" } else { "faults_first" };
    for program in [sampler, faults, "task_exec", "task_exit"] {
        assert!(report.programs.contains(&program), "{program} is missing in {report:?}");
    }
    assert!(report.cpus > 0);
    assert_eq!(report.mmap_cpus, report.cpus);

    // The variant for kernels without bpf_loop and without saved user registers loads here too.
    let mut old = features;
    (old.bpf_loop, old.task_pt_regs) = (false, false);
    old.mmap_events = Err("not here".to_owned());
    let report = Capture::smoke(&old).unwrap_or_else(|e| panic!("{e}"));
    assert!(report.programs.contains(&"sample_more") && report.mmap_cpus == 0, "{report:?}");
}

#[test]
fn a_known_stack_is_whole_and_ends_at_the_root() {
    let Some((features, _guard)) = host("known_stack") else { return };
    let spin = Spin::start(&["20", "thread"]);
    let mut capture = start(&at_999_hz(), &features);
    let got = record(&mut capture, Duration::from_secs(2));

    let stacks = got.stacks_of(spin.pid());
    assert!(stacks.len() > 100, "{} samples", stacks.len());
    // leaf, 20 times down, work, and glibc's start_thread.
    let want: Vec<usize> = [vec![0], vec![1; 20], vec![2, 4]].concat();
    let whole = stacks.iter().filter(|stack| {
        let functions: Vec<usize> = stack.user.iter().map(|f| spin.function(f)).collect();
        functions == want && stack.end == StackEnd::Root
    });
    let whole = whole.count();
    assert!(whole * 100 >= stacks.len() * 98, "{whole} of {} are whole: {:?}", stacks.len(), stacks.first());
    for stack in &stacks {
        let returns = |f: &UserFrame| f.flags & UserFrame::FLAG_RETURN_ADDRESS != 0;
        assert!(!returns(&stack.user[0]) && stack.user[1..].iter().all(returns));
    }
    for sample in got.samples(spin.pid()) {
        assert_eq!((sample.kind, sample.weight, sample.name_seq), (SampleKind::Cpu, 1_000_000_000 / 999, 0));
    }
}

#[test]
fn a_chain_that_leaves_code_with_frame_pointers_does_not_claim_the_root() {
    let Some((features, _guard)) = host("main_thread") else { return };
    // The main thread's chain ends in glibc's start code, which keeps no frame pointers.
    let spin = Spin::start(&["20"]);
    let mut capture = start(&at_999_hz(), &features);
    let got = record(&mut capture, Duration::from_secs(1));
    let stacks = got.stacks_of(spin.pid());
    assert!(stacks.len() > 50, "{} samples", stacks.len());
    let ended = stacks.iter().filter(|s| s.end == StackEnd::NoFramePointer && s.user.len() == 24).count();
    assert!(ended * 100 >= stacks.len() * 98, "{ended} of {}", stacks.len());
}

#[test]
fn four_hundred_calls_are_whole_and_six_hundred_say_that_they_were_cut() {
    let Some((features, _guard)) = host("depth") else { return };
    let depth = |calls: &str, features: &HostFeatures| {
        let spin = Spin::start(&[calls, "thread"]);
        let mut capture = start(&at_999_hz(), features);
        let got = record(&mut capture, Duration::from_secs(1));
        let mut count: HashMap<(usize, StackEnd), usize> = HashMap::new();
        for stack in got.stacks_of(spin.pid()) {
            *count.entry((stack.user.len(), stack.end)).or_default() += 1;
        }
        count.into_iter().max_by_key(|(_, n)| *n).expect("samples").0
    };
    if features.bpf_loop {
        assert_eq!(depth("400", &features), (403, StackEnd::Root));
        assert_eq!(depth("600", &features), (512, StackEnd::DepthLimit));
    }
    let mut old = features;
    old.bpf_loop = false;
    assert_eq!(depth("400", &old), (403, StackEnd::Root));
    assert_eq!(depth("600", &old), (512, StackEnd::DepthLimit));
}

#[test]
fn samples_in_the_kernel_have_both_halves() {
    let Some((features, _guard)) = host("kernel_mode") else { return };
    let spin = Spin::start(&["syscall"]);
    let mut capture = start(&at_999_hz(), &features);
    let got = record(&mut capture, Duration::from_secs(1));
    let stacks = got.stacks();
    let samples = got.samples(spin.pid());
    let in_kernel: Vec<_> = samples.iter().filter(|s| s.kernel_mode).map(|s| stacks[&s.stack]).collect();
    assert!(in_kernel.len() * 10 > samples.len() * 5, "{} of {}", in_kernel.len(), samples.len());
    let kernel_addresses = |s: &&&RawStack| !s.kernel.is_empty() && s.kernel.iter().all(|a| *a >> 63 == 1);
    assert_eq!(in_kernel.iter().filter(kernel_addresses).count(), in_kernel.len());
    if features.task_pt_regs {
        // read() of glibc leaves the frame pointer alone: its caller's caller is main.
        let with_user = in_kernel.iter().filter(|s| s.user.len() >= 2).count();
        assert!(with_user * 100 >= in_kernel.len() * 98, "{with_user} of {}", in_kernel.len());
    }
    // Without saved registers the user half is missing, and says so.
    drop(capture);
    let mut old = features;
    old.task_pt_regs = false;
    let got = record(&mut start(&at_999_hz(), &old), Duration::from_millis(500));
    let stacks = got.stacks();
    let samples = got.samples(spin.pid());
    let in_kernel: Vec<_> = samples.iter().filter(|s| s.kernel_mode).map(|s| stacks[&s.stack]).collect();
    assert!(!in_kernel.is_empty());
    assert!(in_kernel.iter().all(|s| s.user.is_empty() && s.end == StackEnd::NoUserRegisters));
}
