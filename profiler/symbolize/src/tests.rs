//! The room on real processes: this one, and JVMs 17 and 25 where they are installed.

use super::files::{Came, FileSlot};
use super::pending::{InFile, PendingFrame};
use super::process::FileState;
use super::*;
use emberscope_hotspot::HotSpot;
use emberscope_model::{FrameKind, NameSource, ProcessKey, RawStack, Stack, StackEnd, Tenant, UnknownReason};
use emberscope_runtime::{Readers, Runtimes};
use emberscope_target::{maps, open};
use emberscope_testkit::jdks::{Java, jdks};
use profiler_ebpf::UserFrame;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod hostile_maps;
mod jvms;
mod room;

fn target(pid: u32) -> Target {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str, nth: usize| -> u32 {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("");
        let all: Vec<&str> = line.split_whitespace().collect();
        all.get(nth.min(all.len().saturating_sub(1))).and_then(|v| v.parse().ok()).unwrap_or(0)
    };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let start_ticks =
        stat.rsplit_once(')').and_then(|(_, r)| r.split_whitespace().nth(19)?.parse().ok()).unwrap_or(0);
    let key = ProcessKey { pid, start_ticks };
    Target {
        key,
        uid: field("Uid:", 1),
        gid: field("Gid:", 1),
        nspid: field("NSpid:", usize::MAX),
        tenant: Tenant::default(),
    }
}

fn stack(pid: u32, leaf_first: &[u64], kernel: &[u64]) -> RawStack {
    let frame = |(depth, value): (usize, &u64)| UserFrame {
        value: *value,
        flags: if depth > 0 { UserFrame::FLAG_RETURN_ADDRESS } else { 0 },
        ..UserFrame::default()
    };
    RawStack {
        hash: 0,
        time_ns: 0,
        pid,
        kernel: kernel.into(),
        user: leaf_first.iter().enumerate().map(frame).collect(),
        end: StackEnd::Root,
        generation: 0,
    }
}

fn names(stack: &emberscope_model::Stack) -> Vec<String> {
    stack.frames.iter().map(|f| f.name.to_string()).collect()
}

fn with_jvms() -> SymbolizerConfig {
    let runtimes = Runtimes::new(vec![Box::new(HotSpot::default())]);
    SymbolizerConfig { readers: Readers::new(runtimes), ..SymbolizerConfig::default() }
}

fn settle(symbolizer: &mut Symbolizer) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while symbolizer.asking() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        symbolizer.poll();
    }
    assert!(!symbolizer.asking(), "the background did not finish");
}

/// A stack of names, once its files were read: on a busy machine some come late.
fn in_time(symbolizer: &mut Symbolizer, target: &Target, raw: &RawStack) -> Stack {
    finished(symbolizer, target, |symbolizer| symbolizer.begin(target, raw))
}

/// Names what `pending` gives, again while it is late.
fn finished(
    symbolizer: &mut Symbolizer,
    target: &Target,
    pending: impl Fn(&mut Symbolizer) -> PendingStack,
) -> Stack {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let pending = pending(symbolizer);
        let named = symbolizer.finish(target, &pending);
        let late = named.frames.iter().any(|frame| frame.unknown == Some(UnknownReason::FileLate));
        if !late || Instant::now() >= deadline {
            return named;
        }
        std::thread::sleep(Duration::from_millis(50));
        symbolizer.poll();
    }
}

fn java(jdk: &Path, args: &[&str]) -> Command {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata/Work.java");
    let mut command = Command::new(jdk.join("bin/java"));
    command.args(["-XX:+PreserveFramePointer", "-Xmx128m"]).args(args);
    command.arg(source).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A JVM that has compiled a while.
fn working(mut command: Command) -> Java {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "{line}");
    std::thread::sleep(Duration::from_secs(2));
    Java(child)
}

/// What jcmd itself has the JVM write: address and text.
fn true_map(jdk: &Path, pid: u32) -> Vec<(std::ops::Range<u64>, String)> {
    let done =
        Command::new(jdk.join("bin/jcmd")).args([&pid.to_string(), "Compiler.perfmap"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let path = format!("/tmp/perf-{pid}.map");
    let text = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    text.split(|b| *b == b'\n')
        .filter_map(perf_map::parse_line)
        .map(|(code, name)| (code, String::from_utf8_lossy(name).into_owned()))
        .collect()
}

fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok()).unwrap()
}

#[test]
fn names_this_process() {
    let pid = std::process::id();
    let me = target(pid);
    // Unoptimised, we have more symbols than a daemon takes from one file.
    let config = SymbolizerConfig { max_symbol_bytes: 256 << 20, ..Default::default() };
    let mut symbolizer = Symbolizer::new(config);
    let native = names_this_process as fn() as usize as u64;
    let libc_open = libc::open as *const () as usize as u64;
    // A caller's frame holds the address behind its call; ours are function starts, so one more.
    let raw = stack(pid, &[libc_open, native + 1, 0x10], &[]);
    let named = in_time(&mut symbolizer, &me, &raw);
    assert!(!symbolizer.begin(&me, &raw).waits());
    let all = names(&named);
    assert_eq!(all[0], "[unknown: no mapping]");
    assert!(all[1].contains("names_this_process"), "{all:?}");
    assert!(all[2].contains("open"), "{all:?}");
    assert_eq!(named.frames[0].unknown, Some(UnknownReason::NoMapping));
    assert_eq!(named.frames[2].kind, FrameKind::Native);
    assert!(named.frames[2].module.starts_with("libc"));
}

/// On a slow machine more libraries come up at once than may be read at once; none of them is unreadable for that.
#[test]
fn a_file_whose_turn_did_not_come_is_looked_at_with_the_next_stack() {
    let me = target(std::process::id());
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let raw = stack(me.key.pid, &[libc::open as *const () as usize as u64], &[]);
    in_time(&mut symbolizer, &me, &raw);
    let process = symbolizer.processes.get_mut(&me.key).unwrap();
    process.files.fill(FileState::Coming(FileSlot::of(Came::NotNow)));
    let passed = PendingStack {
        frames: [PendingFrame::File(InFile { slot: FileSlot::of(Came::NotNow), offset: 0 }.into())].into(),
        end: StackEnd::Root,
    };
    assert_eq!(names(&symbolizer.finish(&me, &passed)), ["[unknown: file late]"]);
    let again = in_time(&mut symbolizer, &me, &raw);
    assert!(names(&again)[0].contains("open"), "{:?}", names(&again));
}

#[test]
fn an_address_without_a_symbol_says_module_and_offset() {
    let pid = std::process::id();
    let maps = open::mappings(Path::new("/proc/self")).unwrap().mappings;
    // The page's padding behind the code of the dynamic loader.
    let loader = maps.iter().find(|m| m.module_name().starts_with("ld-")).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let named = in_time(&mut symbolizer, &target(pid), &stack(pid, &[loader.end - 1], &[]));
    let offset = loader.end - 1 - loader.start + loader.offset;
    assert_eq!(names(&named), [format!("{}+0x{offset:x}", loader.module_name())]);
}

#[test]
fn the_vdso_has_names() {
    let pid = std::process::id();
    let maps = open::mappings(Path::new("/proc/self")).unwrap().mappings;
    let vdso = maps.iter().find(|m| m.backing == maps::Backing::Vdso).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let addresses: Vec<u64> = (vdso.start..vdso.end).step_by(16).collect();
    let named = in_time(&mut symbolizer, &target(pid), &stack(pid, &addresses, &[]));
    assert!(names(&named).iter().any(|n| n.contains("clock_gettime")), "{:?}", names(&named));
}

#[test]
fn names_survive_the_process_and_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("sleeper");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let child = Command::new(&program).arg("60").spawn().unwrap();
    let mut child = Java(child);
    let mut all = Vec::new();
    let mapped = |all: &[maps::Mapping], name: &str| {
        all.iter().find(|m| m.module_name().starts_with(name)).map(|m| m.start)
    };
    for _ in 0..500 {
        all = open::mappings(Path::new(&format!("/proc/{}", child.pid()))).unwrap().mappings;
        if mapped(&all, "libc").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // The file on disk is another one now; the mapped one is only in /proc/PID/map_files.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "something else").unwrap();
    let me = target(child.pid());
    let (own, libc) = (mapped(&all, "sleeper").unwrap(), mapped(&all, "libc").unwrap());
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    // Its files are read by others, in time or a moment later: what is to outlive the process must be there before.
    in_time(&mut symbolizer, &me, &stack(child.pid(), &[own, libc], &[]));
    let first = symbolizer.begin(&me, &stack(child.pid(), &[own + 0x100, libc + 0x1000], &[]));
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    symbolizer.on_exit(me.key);
    let second = symbolizer.begin(&me, &stack(child.pid(), &[own + 0x200, libc + 0x2000], &[]));
    for pending in [first, second] {
        // What was read is there, and looked up by others: at last, on a crowded machine.
        let named = finished(&mut symbolizer, &me, |_| pending.clone());
        assert!(named.frames.iter().all(|f| f.unknown.is_none()), "{:?}", names(&named));
    }
    let other = Target { key: ProcessKey { pid: child.pid(), start_ticks: 1 }, ..me };
    let named = symbolizer.begin(&other, &stack(child.pid(), &[own], &[]));
    assert_eq!(names(&symbolizer.finish(&other, &named)), ["[unknown: process gone]"]);
}

#[test]
fn a_process_that_ended_unseen_is_let_go_of() {
    let config = SymbolizerConfig { keep_exited: Duration::ZERO, ..SymbolizerConfig::default() };
    let mut symbolizer = Symbolizer::new(config);
    let me = target(std::process::id());
    let ended = Target { key: ProcessKey { pid: 4_194_305, start_ticks: 0 }, ..me };
    for target in [me, ended] {
        symbolizer.begin(&target, &stack(target.key.pid, &[0x1000], &[]));
    }
    symbolizer.poll();
    assert_eq!(symbolizer.counters().processes, 2);
    symbolizer.tidy(|key| key == me.key);
    symbolizer.poll();
    assert_eq!(symbolizer.counters().processes, 1);
}

#[test]
fn kernel_frames_come_last() {
    let pid = std::process::id();
    let Some(address) = std::fs::read_to_string("/proc/kallsyms").ok().and_then(|t| {
        let line = t.lines().find(|l| l.ends_with(" T vfs_read"))?.to_owned();
        u64::from_str_radix(line.get(..16)?, 16).ok().filter(|a| *a != 0)
    }) else {
        emberscope_testkit::skip("the kernel hides its symbols");
        return;
    };
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let raw = stack(pid, &[libc::open as *const () as usize as u64], &[0xffff_8000_0000_0000, address + 1]);
    let pending = symbolizer.begin(&target(pid), &raw);
    let named = symbolizer.finish(&target(pid), &pending);
    assert_eq!(names(&named)[1..], ["vfs_read", "[unknown: kernel symbol]"]);
    assert_eq!((named.frames[1].kind, &*named.frames[1].module), (FrameKind::Kernel, "kernel"));
}
