//! The room on real processes: this one, and JVMs 17 and 25 where they are installed.

use super::*;
use crate::model::{FrameKind, NameSource, ProcessKey, RawStack, StackEnd, UnknownReason};
use crate::target::jdks::{Java, jdks};
use crate::target::{maps, open};
use profiler_ebpf::UserFrame;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    Target { key, uid: field("Uid:", 1), gid: field("Gid:", 1), nspid: field("NSpid:", usize::MAX) }
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
        unloads: 0,
    }
}

fn names(stack: &crate::model::Stack) -> Vec<String> {
    stack.frames.iter().map(|f| f.name.to_string()).collect()
}

fn settle(symbolizer: &mut Symbolizer) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while symbolizer.asking() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        symbolizer.poll();
    }
    assert!(!symbolizer.asking(), "the background did not finish");
}

fn java(jdk: &Path, args: &[&str]) -> Command {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/symbolize/testdata/Work.java");
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
    let pending = symbolizer.begin(&me, &raw);
    assert!(!pending.waits());
    let named = symbolizer.finish(&me, &pending);
    let all = names(&named);
    assert_eq!(all[0], "[unknown: no mapping]");
    assert!(all[1].contains("names_this_process"), "{all:?}");
    assert!(all[2].contains("open"), "{all:?}");
    assert_eq!(named.frames[0].unknown, Some(UnknownReason::NoMapping));
    assert_eq!(named.frames[2].kind, FrameKind::Native);
    assert!(named.frames[2].module.starts_with("libc"));
}

#[test]
fn an_address_without_a_symbol_says_module_and_offset() {
    let pid = std::process::id();
    let maps = std::fs::read("/proc/self/maps").unwrap();
    let (maps, _) = maps::parse(&maps);
    // The page's padding behind the code of the dynamic loader.
    let loader = maps.iter().find(|m| m.module_name().starts_with("ld-")).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let pending = symbolizer.begin(&target(pid), &stack(pid, &[loader.end - 1], &[]));
    let named = symbolizer.finish(&target(pid), &pending);
    let offset = loader.end - 1 - loader.start + loader.offset;
    assert_eq!(names(&named), [format!("{}+0x{offset:x}", loader.module_name())]);
}

#[test]
fn the_vdso_has_names() {
    let pid = std::process::id();
    let maps = std::fs::read("/proc/self/maps").unwrap();
    let (maps, _) = maps::parse(&maps);
    let vdso = maps.iter().find(|m| m.backing == maps::Backing::Vdso).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let addresses: Vec<u64> = (vdso.start..vdso.end).step_by(16).collect();
    let pending = symbolizer.begin(&target(pid), &stack(pid, &addresses, &[]));
    let named = symbolizer.finish(&target(pid), &pending);
    assert!(names(&named).iter().any(|n| n.contains("clock_gettime")), "{:?}", names(&named));
}

#[test]
fn names_survive_the_process_and_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("sleeper");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let child = Command::new(&program).arg("60").spawn().unwrap();
    let mut child = Java(child);
    std::thread::sleep(Duration::from_millis(50));
    // The file on disk is another one now; the mapped one is only in /proc/PID/map_files.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "something else").unwrap();
    let me = target(child.pid());
    let text = std::fs::read(format!("/proc/{}/maps", child.pid())).unwrap();
    let (all, _) = maps::parse(&text);
    let own = all.iter().find(|m| m.module_name() == "sleeper").unwrap();
    let libc = all.iter().find(|m| m.module_name().starts_with("libc")).unwrap();
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let first = symbolizer.begin(&me, &stack(child.pid(), &[own.start + 0x100, libc.start + 0x1000], &[]));
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    symbolizer.on_exit(me.key);
    let second = symbolizer.begin(&me, &stack(child.pid(), &[own.start + 0x200, libc.start + 0x2000], &[]));
    for pending in [first, second] {
        let named = symbolizer.finish(&me, &pending);
        assert!(named.frames.iter().all(|f| f.unknown.is_none()), "{:?}", names(&named));
    }
    let other = Target { key: ProcessKey { pid: child.pid(), start_ticks: 1 }, ..me };
    let named = symbolizer.begin(&other, &stack(child.pid(), &[own.start], &[]));
    assert_eq!(names(&symbolizer.finish(&other, &named)), ["[unknown: process gone]"]);
}

#[test]
fn kernel_frames_come_last() {
    let pid = std::process::id();
    let Some(address) = std::fs::read_to_string("/proc/kallsyms").ok().and_then(|t| {
        let line = t.lines().find(|l| l.ends_with(" T vfs_read"))?.to_owned();
        u64::from_str_radix(line.get(..16)?, 16).ok().filter(|a| *a != 0)
    }) else {
        eprintln!("skipped: the kernel hides its symbols");
        return;
    };
    let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
    let raw = stack(pid, &[libc::open as *const () as usize as u64], &[0xffff_8000_0000_0000, address + 1]);
    let pending = symbolizer.begin(&target(pid), &raw);
    let named = symbolizer.finish(&target(pid), &pending);
    assert_eq!(names(&named)[1..], ["vfs_read", "[unknown: kernel symbol]"]);
    assert_eq!((named.frames[1].kind, &*named.frames[1].module), (FrameKind::Kernel, "kernel"));
}

#[test]
fn all_compiled_code_of_a_real_jvm_gets_its_name() {
    for jdk in jdks() {
        let jvm = working(java(&jdk, &[]));
        let (pid, me) = (jvm.pid(), target(jvm.pid()));
        let before = true_map(&jdk, pid);
        let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
        // The start of each piece of code, its middle and its end, as leaves.
        let pending: Vec<_> = before
            .iter()
            .flat_map(|(code, _)| [code.start, code.start.midpoint(code.end), code.end - 1])
            .map(|address| symbolizer.begin(&me, &stack(pid, &[address], &[])))
            .collect();
        assert!(symbolizer.unnamed_jit(me.key) > 1000);
        let begun = Instant::now();
        assert!(symbolizer.ask(&me));
        assert!(!symbolizer.ask(&me), "one at a time");
        settle(&mut symbolizer);
        let took = begun.elapsed();
        let after = true_map(&jdk, pid);
        let (mut right, mut moved) = (0usize, 0usize);
        for ((code, text), pending) in before.iter().flat_map(|row| [row, row, row]).zip(&pending) {
            let stack = symbolizer.finish(&me, pending);
            let frame = &stack.frames[0];
            let expected = perf_map_frame(text.as_bytes(), true);
            if **frame == expected {
                right += 1;
            } else {
                // The JIT threw it away or replaced it between the two maps.
                assert!(!after.iter().any(|(c, t)| c == code && t == text), "{code:x?} {text}: {frame:?}");
                moved += 1;
            }
        }
        let facts = symbolizer.jvm_facts(me.key).unwrap();
        assert_eq!(facts.names, NameSource::Asked, "{jdk:?}");
        assert!(facts.version.starts_with(|c: char| c.is_ascii_digit()));
        println!(
            "{}: {right} addresses right, {moved} gone, {took:?}, {:?}",
            facts.version,
            symbolizer.counters()
        );
        assert!(right > 1000 && moved * 20 < right);
        assert!(!Path::new(&format!("/tmp/perf-{pid}.map")).exists(), "nothing is left behind");
        assert!(!Path::new(&format!("/tmp/.attach_pid{pid}")).exists());
        // libjvm too, with its memory.
        let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap();
        let (all, _) = maps::parse(&text);
        let libjvm = all.iter().find(|m| m.module_name() == "libjvm.so").unwrap();
        let addresses: Vec<u64> = (libjvm.start..libjvm.end).step_by(4096).collect();
        let (rss, begun) = (rss_kb(), Instant::now());
        let pending = symbolizer.begin(&me, &stack(pid, &addresses, &[]));
        let named = symbolizer.finish(&me, &pending);
        let with_symbol = named.frames.iter().filter(|f| !f.name.starts_with("libjvm.so+0x")).count();
        println!(
            "libjvm {}: {with_symbol} of {} addresses, {:?}, resident +{} KB",
            facts.version,
            addresses.len(),
            begun.elapsed(),
            rss_kb().saturating_sub(rss)
        );
        assert!(with_symbol * 10 > addresses.len() * 8);
        let demangled =
            |f: &std::sync::Arc<crate::model::Frame>| f.name.contains("::") && !f.name.starts_with("_Z");
        assert!(named.frames.iter().filter(|f| demangled(f)).count() * 2 > with_symbol);
    }
}

fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok()).unwrap()
}

/// A user of its own, a PID namespace and a mount namespace of its own with another /tmp.
#[test]
fn asks_inside_the_jvms_namespaces_as_its_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make namespaces");
        return;
    }
    let unshared = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !unshared.is_ok_and(|status| status.success()) {
        let says = "asks_inside_the_jvms_namespaces_as_its_user\tthe root directory is no mount point (a plain chroot)\n";
        eprint!("SKIPPED {says}");
        if let Some(path) = std::env::var_os("EMBERSCOPE_SKIP_LOG") {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
            log.unwrap().write_all(says.as_bytes()).unwrap();
        }
        return;
    }
    for jdk in jdks() {
        let work = tempfile::tempdir().unwrap();
        std::fs::set_permissions(work.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/symbolize/testdata/Work.java");
        std::fs::copy(source, work.path().join("Work.java")).unwrap();
        let script = format!(
            "cp {0}/Work.java /run/Work.$$.java; mount -t tmpfs -o mode=1777 tmpfs /tmp; \
             exec setpriv --reuid 12345 --regid 12345 --clear-groups {1}/bin/java -XX:+PreserveFramePointer -Xmx128m \
             /run/Work.$$.java",
            work.path().display(),
            jdk.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount", "--mount-proc", "--kill-child", "sh", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let jvm = working(command);
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", jvm.pid())).unwrap();
        let pid: u32 = children.trim().parse().unwrap();
        let me = target(pid);
        assert_eq!((me.uid, me.gid, me.nspid), (12345, 12345, 1));
        let mut symbolizer = Symbolizer::new(SymbolizerConfig::default());
        let raw = stack(pid, &jit_addresses(pid), &[]);
        let pending = symbolizer.begin(&me, &raw);
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        let named = symbolizer.finish(&me, &pending);
        let java = named.frames.iter().filter(|f| f.kind == FrameKind::JavaCompiled).count();
        println!("{jdk:?} {:?} {java} {:?}", symbolizer.jvm_facts(me.key), symbolizer.counters());
        assert_eq!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Asked);
        assert!(java > 10);
        let left: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/root/tmp"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|n| n.starts_with("perf-") || n.starts_with(".attach"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        drop(jvm);
        let _ = std::fs::remove_file("/run/Work.1.java");
    }
}

/// An address every 256 bytes of the code heaps.
fn jit_addresses(pid: u32) -> Vec<u64> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap();
    let (all, _) = maps::parse(&text);
    all.iter()
        .filter(|m| m.backing == maps::Backing::Anonymous)
        .flat_map(|m| (m.start + 16..m.end).step_by(256))
        .collect()
}

/// SIGQUIT kills a JVM that has not installed its handler: asked at any moment of its start, it lives.
#[test]
fn a_hundred_starting_jvms_survive_being_asked() {
    let Some(jdk) = jdks().into_iter().next() else { return };
    let jdk25 = jdks().into_iter().last().unwrap_or_else(|| jdk.clone());
    let (mut answered, mut not_ready, mut other) = (0, 0, Vec::new());
    for batch in 0..10u64 {
        let started = Instant::now();
        let mut jvms: Vec<(Java, Duration)> = (0..10u64)
            .map(|i| {
                let jdk = if i % 2 == 0 { &jdk } else { &jdk25 };
                let mut command = Command::new(jdk.join("bin/java"));
                command.args(["-Xshare:auto", "-Xmx64m", "-cp", "/nonexistent"]);
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/symbolize/testdata/Sleep.java"));
                command.stdout(Stdio::null()).stderr(Stdio::null());
                // Spread over the start, and dense at its beginning.
                let delay = Duration::from_millis((batch * 10 + i).pow(2) / 8);
                (Java(command.spawn().unwrap()), delay)
            })
            .collect();
        for (jvm, delay) in &mut jvms {
            std::thread::sleep((started + *delay).saturating_duration_since(Instant::now()));
            let me = target(jvm.pid());
            let process_dir = PathBuf::from(format!("/proc/{}", jvm.pid()));
            let Ok(root) = open::root(&process_dir.join("root")) else { continue };
            let ask = attach::Jvm {
                process_dir,
                pid: jvm.pid(),
                nspid: me.nspid,
                start_ticks: me.key.start_ticks,
                uid: me.uid,
                gid: me.gid,
            };
            // Hammered, as fast as can be, until it answers or a while has passed.
            let until = Instant::now() + Duration::from_millis(300);
            loop {
                match attach::ask(&ask, &root, "Compiler.perfmap", Duration::from_secs(20)) {
                    Ok(_) => {
                        answered += 1;
                        break;
                    }
                    // Before exec and before libjvm is mapped it is no JVM.
                    Err(AskError::NotReady | AskError::Never(_)) if Instant::now() < until => {}
                    Err(AskError::NotReady | AskError::Never(_)) => {
                        not_ready += 1;
                        break;
                    }
                    Err(error) => {
                        other.push(error);
                        break;
                    }
                }
            }
            let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", jvm.pid()));
        }
        for (jvm, delay) in &mut jvms {
            assert!(jvm.alive(), "killed by being asked {delay:?} after its start");
        }
    }
    println!("asked 100 starting JVMs: {answered} answered, {not_ready} were not ready, others {other:?}");
    assert!(answered > 30);
}

#[test]
fn a_jvm_that_is_killed_meanwhile_is_an_error_value() {
    for jdk in jdks().into_iter().take(1) {
        let mut jvm = working(java(&jdk, &[]));
        let me = target(jvm.pid());
        let config = SymbolizerConfig { ask_interval: Duration::ZERO, ..Default::default() };
        let mut symbolizer = Symbolizer::new(config);
        let all = jit_addresses(jvm.pid());
        let (known, new) = all.split_at(all.len() / 2);
        symbolizer.begin(&me, &stack(jvm.pid(), known, &[]));
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        assert_eq!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::Asked);
        // Stopped: the kernel takes the connection and nobody answers. Killed: the connection breaks.
        let pid = rustix::process::Pid::from_raw(jvm.pid() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let pending = symbolizer.begin(&me, &stack(jvm.pid(), new, &[]));
        assert!(symbolizer.ask(&me));
        std::thread::sleep(Duration::from_millis(300));
        assert!(symbolizer.poll().is_empty() && symbolizer.asking());
        jvm.0.kill().unwrap();
        jvm.0.wait().unwrap();
        settle(&mut symbolizer);
        symbolizer.on_exit(me.key);
        let named = symbolizer.finish(&me, &pending);
        assert_eq!(named.frames.len(), pending.frames.len());
        let failed = symbolizer.counters().asks_failed;
        assert_eq!(failed.get("gone"), Some(&1), "{failed:?}");
        assert!(!symbolizer.ask(&me), "nobody asks the dead");
    }
}

#[test]
fn a_jvm_that_may_not_be_asked_is_not() {
    for jdk in jdks().into_iter().take(1) {
        let jvm = working(java(&jdk, &["-XX:+DisableAttachMechanism"]));
        let me = target(jvm.pid());
        let config = SymbolizerConfig { ask_interval: Duration::ZERO, ..Default::default() };
        let mut symbolizer = Symbolizer::new(config);
        let pending = symbolizer.begin(&me, &stack(jvm.pid(), &jit_addresses(jvm.pid()), &[]));
        assert!(symbolizer.ask(&me));
        settle(&mut symbolizer);
        let facts = symbolizer.jvm_facts(me.key).unwrap();
        assert!(
            matches!(&facts.names, NameSource::None(why) if why.contains("DisableAttachMechanism")),
            "{facts:?}"
        );
        let named = symbolizer.finish(&me, &pending);
        assert!(named.frames.iter().all(|f| f.unknown == Some(UnknownReason::JvmNotAsked)));
        // Switched off: the same without touching it.
        let mut symbolizer = Symbolizer::new(SymbolizerConfig { ask_jvms: false, ..Default::default() });
        let pending = symbolizer.begin(&me, &stack(jvm.pid(), &jit_addresses(jvm.pid()), &[]));
        symbolizer.ask(&me);
        settle(&mut symbolizer);
        assert!(matches!(symbolizer.jvm_facts(me.key).unwrap().names, NameSource::None(_)));
        assert_eq!(symbolizer.counters().asks_failed.len(), 0);
        assert!(symbolizer.finish(&me, &pending).frames.iter().all(|f| f.unknown.is_some()));
    }
}

/// What a hostile process may put in the place of its map.
mod hostile_maps {
    use super::*;
    use crate::symbolize::asker::{Job, run};
    use crate::symbolize::perf_map::Wanted;
    use std::os::unix::fs::symlink;

    /// A fake /proc with one process whose root is a temporary directory.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("7/root/tmp")).unwrap();
            let stat = format!("7 (a b) c) S {}\n", "1 ".repeat(30));
            std::fs::write(dir.path().join("7/stat"), stat).unwrap();
            Self(dir)
        }
        fn map(&self) -> PathBuf {
            self.0.path().join("7/root/tmp/perf-3.map")
        }
        fn read(&self, max_bytes: u64) -> Result<perf_map::Scan, Refusal> {
            let key = ProcessKey { pid: 7, start_ticks: 1 };
            let jvm = attach::Jvm {
                process_dir: self.0.path().join("7"),
                pid: 7,
                nspid: 3,
                start_ticks: 1,
                uid: 4321,
                gid: 4321,
            };
            let wanted = Wanted { addresses: vec![0x1000, 0x2000], known: Vec::new() };
            let begun = Instant::now();
            let outcome = run(Job {
                key,
                epoch: 0,
                jvm,
                libjvm: None,
                may_ask: true,
                first: true,
                ours: false,
                version: None,
                wanted,
                max_bytes,
                timeout: Duration::from_millis(100),
            });
            assert!(begun.elapsed() < Duration::from_secs(20));
            assert!(outcome.asked.is_none());
            outcome.read
        }
    }

    #[test]
    fn a_good_one() {
        let fake = Fake::new();
        std::fs::write(fake.map(), "0x1000 0x10 int a.B.c()\n2000 10 half").unwrap();
        let scan = fake.read(1 << 30).unwrap();
        assert_eq!((scan.entries.len(), scan.lines), (1, 1));
    }

    #[test]
    fn missing_and_gone() {
        let fake = Fake::new();
        assert_eq!(fake.read(1 << 30), Err(Refusal::Missing));
        std::fs::write(fake.0.path().join("7/stat"), format!("7 (x) S {}\n", "2 ".repeat(30))).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::ProcessGone));
    }

    #[test]
    fn a_fifo_is_not_opened() {
        let fake = Fake::new();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, fake.map(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::NotRegular));
    }

    #[test]
    fn a_symlink_to_shadow_is_refused() {
        let fake = Fake::new();
        symlink("/etc/shadow", fake.map()).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::Symlink));
    }

    #[test]
    fn a_directory_above_that_is_a_symlink_stays_inside_the_root() {
        let fake = Fake::new();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("perf-3.map"), "1000 10 secret\n").unwrap();
        std::fs::remove_dir(fake.0.path().join("7/root/tmp")).unwrap();
        // Inside the root the link's absolute path leads to itself.
        symlink(outside.path(), fake.0.path().join("7/root/tmp")).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::Symlink));
    }

    #[test]
    fn a_directory() {
        let fake = Fake::new();
        std::fs::create_dir(fake.map()).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::NotRegular));
    }

    #[test]
    fn ten_gigabytes_of_zeros() {
        let fake = Fake::new();
        let file = std::fs::File::create(fake.map()).unwrap();
        file.set_len(10 << 30).unwrap();
        let before = rss_kb();
        assert_eq!(fake.read(1 << 30), Err(Refusal::Rubbish));
        assert!(rss_kb() < before + (64 << 10));
        // Behind a good line, where the limit of bytes has to stop it.
        std::fs::write(fake.map(), "1000 10 good\n").unwrap();
        std::fs::OpenOptions::new().write(true).open(fake.map()).unwrap().set_len(10 << 30).unwrap();
        let scan = fake.read(64 << 20).unwrap();
        assert!(scan.cut && scan.entries.len() == 1 && scan.bytes <= (64 << 20) + (1 << 20));
    }

    #[test]
    fn binary_rubbish() {
        let fake = Fake::new();
        std::fs::copy("/proc/self/exe", fake.map()).unwrap();
        assert_eq!(fake.read(1 << 30), Err(Refusal::Rubbish));
    }

    #[test]
    fn another_users() {
        let fake = Fake::new();
        std::fs::write(fake.map(), "1000 10 good\n").unwrap();
        if std::os::unix::fs::chown(fake.map(), Some(999), None).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        assert_eq!(fake.read(1 << 30), Err(Refusal::WrongOwner));
        std::os::unix::fs::chown(fake.map(), Some(4321), None).unwrap();
        assert!(fake.read(1 << 30).is_ok());
        assert_eq!(std::fs::metadata(fake.map()).unwrap().uid(), 4321);
    }

    /// Over 200 MB of entries, of which two were sampled.
    #[test]
    fn a_large_one_takes_no_memory() {
        use std::io::Write;
        let fake = Fake::new();
        let mut out = std::io::BufWriter::new(std::fs::File::create(fake.map()).unwrap());
        let name =
            "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIterator.next".repeat(3);
        for i in 0..800_000u64 {
            writeln!(out, "0x{:016x} 0x{:016x} void {name}{i}()", i * 0x100, 0x100).unwrap();
        }
        out.flush().unwrap();
        drop(out);
        let size = std::fs::metadata(fake.map()).unwrap().len();
        let (before, begun) = (rss_kb(), Instant::now());
        let scan = fake.read(1 << 30).unwrap();
        println!(
            "{} MB in {:?}, resident +{} KB",
            size >> 20,
            begun.elapsed(),
            rss_kb().saturating_sub(before)
        );
        assert!(size > 200 << 20);
        assert_eq!((scan.lines, scan.entries.len(), scan.cut), (800_000, 2, false));
        assert!(rss_kb() < before + (32 << 10));
    }
}
