//! The attacks, each a function that starts it. What goes on is ended, and what was mounted is unmounted, when the
//! answer is dropped.

use super::host::{ATTACKER, Host};
use super::{elf, fuse, identity, names};
use crate::bench::row::Row;
use crate::launch::{Daemon, Job, Running, large};
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What an attack changes is asked after it: rows of its own.
pub type Check = Box<dyn FnOnce(&Daemon, (u64, u64)) -> Result<Vec<Row>>>;

/// An attack under way.
#[derive(Default)]
pub struct Attack {
    /// Ended in this order.
    pub running: Vec<Running>,
    pub mounts: Vec<fuse::Mount>,
    /// A second job, and its executors, which are judged as the victim's are.
    pub job: Option<Job>,
    pub executors: Vec<u32>,
    /// Asked when it is over.
    pub check: Option<Check>,
    /// What is said of it.
    pub told: Vec<String>,
}

impl Attack {
    /// Ends it. The programs first: a FUSE server's end frees all that wait for it.
    pub fn end(self) {
        drop(self.running);
        drop(self.mounts);
        drop(self.job);
    }
}

/// Mappings that `pieces` makes, and bytes of each.
const PIECES: u64 = 8192;
const PAGE: u64 = 4096;

/// Starts an attack.
pub type Start = fn(&Host, &Daemon) -> Result<Attack>;

/// All there are, in their order: name, what it does, how it is started.
pub const ATTACKS: [(&str, &str, Start); 23] = [
    ("quiet", "nothing: what the others are compared with", |_, _| Ok(Attack::default())),
    ("names", "C++ and Rust symbols of 300 bytes that stand for gigabytes", small_names),
    ("many-names", "1,000 random mangled symbols of up to 64 KiB", many_names),
    ("mappings", "5 processes with 65,000 mappings, a new one every 150 ms", mappings),
    ("pieces", "300 processes with 8,192 executable mappings each", |host, _| {
        one(host, "pieces", &["300".to_owned()])
    }),
    ("long-paths", "40 processes with 8,192 mappings each of a file below a path of 2,000 bytes", long_paths),
    ("fuse-user", "a dead FUSE mount of the attacker's under a library and under argv", fuse::of_user),
    ("fuse-admin", "the same of an administrator's, which everybody sees", fuse::of_admin),
    ("class-path", "an administrator's dead FUSE mount under an executor's class path", fuse::class_path),
    ("forks", "a storm of short processes", |host, _| one(host, "forks", &["fork".to_owned()])),
    ("execs", "a storm of short programs", |host, _| one(host, "forks", &["exec".to_owned()])),
    ("threads", "16,000 threads that take names of Spark's tasks through libjvm", threads),
    ("look-alikes", "300 processes with libjvm.so mapped, silent", look_alikes),
    ("copies", "300 processes, each with a libjvm.so of its own", copies),
    ("stacks", "endless distinct stacks of 100 frames", |host, _| one(host, "stacks", &[])),
    ("drivers", "300 processes that look like drivers, silent", drivers),
    ("identity", "forged executors, containers and a forged driver", identity::start),
    ("http", "idle, slow, deaf clients, regex bombs, wrong tokens", |host, daemon| http(host, daemon, None)),
    ("http-reader", "the same by one who has a token", |host, daemon| http(host, daemon, daemon.token())),
    ("elf", "ELF files with absurd headers, tables, symbols, compressed sections", elf_files),
    ("large", "10 processes that run all of a library of 50 MB each", large_libraries),
    ("jvm-lies", "JVMs whose vmStructs lie", jvm_lies),
    ("jvm-fuse", "the same, one of them about a page of a dead FUSE mount", fuse::jvm_lies),
];

/// One program, so many seconds.
pub fn one(host: &Host, program: &str, words: &[String]) -> Result<Attack> {
    let running = host.attack(&host.program(program)?, words)?;
    Ok(Attack { running: vec![running], ..Attack::default() })
}

fn small_names(host: &Host, _: &Daemon) -> Result<Attack> {
    let mut attack = Attack::default();
    for (program, name) in [("names-cpp", names::small()), ("names-rust", names::rust())] {
        let program = host.compile(program, &names::source(&[name], host.seconds + 120))?;
        attack.running.push(host.attack(&program, &[])?);
    }
    Ok(attack)
}

fn many_names(host: &Host, _: &Daemon) -> Result<Attack> {
    let program =
        host.compile("names-many", &names::source(&names::random(names::MANY), host.seconds + 120))?;
    Ok(Attack { running: vec![host.attack(&program, &[])?], ..Attack::default() })
}

fn mappings(host: &Host, _: &Daemon) -> Result<Attack> {
    one(host, "mappings", &["5".to_owned()])
}

fn long_paths(host: &Host, _: &Daemon) -> Result<Attack> {
    let mut dir = host.attackers_dir("paths")?;
    dir.extend(std::iter::repeat_n("d".repeat(240), 8));
    std::fs::create_dir_all(&dir).context("making directories of long names")?;
    let file = dir.join("code");
    std::fs::File::create(&file)
        .and_then(|made| made.set_len(PIECES * PAGE))
        .context("making a large file")?;
    one(host, "pieces", &["40".to_owned(), file.display().to_string()])
}

fn threads(host: &Host, _: &Daemon) -> Result<Attack> {
    // Half of the pids that there are by default: others on the machine want some.
    let mut words = vec!["16000".to_owned()];
    let libjvm = host.libjvm();
    let symbol = symbol_address(&libjvm, "_ZN2os22set_native_thread_nameEPKc");
    match symbol {
        Some(at) => words.extend([libjvm.display().to_string(), at]),
        // A library of that name that exports the function is taken for a JVM's as well.
        None => {
            let made = host.dir.join("libjvm.so");
            std::fs::copy(host.program("library")?, &made).context("copying a library")?;
            words.extend([made.display().to_string(), "_ZN2os22set_native_thread_nameEPKc".to_owned()]);
        }
    }
    one(host, "threads", &words)
}

/// By nm of binutils, which a C compiler brings.
fn symbol_address(library: &std::path::Path, symbol: &str) -> Option<String> {
    let output = Command::new("nm").arg(library).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}")))?;
    Some(format!("0x{}", line.split(' ').next()?))
}

fn look_alikes(host: &Host, _: &Daemon) -> Result<Attack> {
    one(host, "lookalikes", &["300".to_owned(), host.libjvm().display().to_string()])
}

fn drivers(host: &Host, daemon: &Daemon) -> Result<Attack> {
    let kept = |daemon: &Daemon| -> Result<u64> {
        daemon.json("/api/v1/status")?["store"]["spark_facts"].as_u64().context("no count of Spark's words")
    };
    let mut attack = one(host, "java", &["300".to_owned()])?;
    wait(attack.running.last_mut().context("it does not run")?, "processes")?;
    let before = kept(daemon)?;
    attack.check = Some(Box::new(move |daemon, _| {
        let more = kept(daemon)?.saturating_sub(before);
        let what = "drivers: what the victim's driver says is kept";
        Ok(vec![Row::is(what, format!("{more} times"), "> 0 times", more > 0, 1)])
    }));
    Ok(attack)
}

fn copies(host: &Host, _: &Daemon) -> Result<Attack> {
    let library = host.program("library")?;
    let mut words = vec!["300".to_owned()];
    for n in 0..300 {
        let dir = host.dir.join(format!("copies/{n}/lib/server"));
        std::fs::create_dir_all(&dir).context("making a directory for a copy")?;
        let copy = dir.join("libjvm.so");
        std::fs::copy(&library, &copy).context("copying a library")?;
        words.push(copy.display().to_string());
    }
    one(host, "lookalikes", &words)
}

fn http(host: &Host, daemon: &Daemon, token: Option<&str>) -> Result<Attack> {
    let port = daemon.url().rsplit(':').next().unwrap_or_default().to_owned();
    let mut words = vec![port];
    // Beside its log, where it has one.
    let socket = daemon.log().with_extension("").join("emberscope.sock");
    words.push(if socket.exists() { socket.display().to_string() } else { "-".to_owned() });
    words.extend(token.map(str::to_owned));
    one(host, "http", &words)
}

fn elf_files(host: &Host, _: &Daemon) -> Result<Attack> {
    let files = elf::write(&host.attackers_dir("elf")?)?;
    let words: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let mut attack = one(host, "mapper", &words)?;
    attack.told.push(format!("{} files", files.len()));
    Ok(attack)
}

/// Copies are other files: each has tables and names of its own.
fn large_libraries(host: &Host, _: &Daemon) -> Result<Attack> {
    let dir = host.attackers_dir("libraries")?;
    let made = large::library(&dir, 0, |_| "movl $100000, %eax\n1: decl %eax\njnz 1b".to_owned())?;
    let mut words = vec![large::CODE.to_string(), large::FUNCTIONS.to_string()];
    for n in 0..10 {
        let copy = dir.join(format!("liblarge-{n}.so"));
        std::fs::copy(&made, &copy).context("copying a library")?;
        words.push(copy.display().to_string());
    }
    one(host, "large", &words)
}

fn jvm_lies(host: &Host, _: &Daemon) -> Result<Attack> {
    one(host, "jvmlies", &[host.libjvm().display().to_string()])
}

/// Waits until a program says that it is under way; one that does not is no attack.
pub fn wait(running: &mut Running, fact: &str) -> Result<()> {
    running.wait_fact(fact, Duration::from_secs(60)).map(|_| ())
}

/// A directory for an attacker's mount.
pub fn mount_point(host: &Host, name: &str) -> Result<PathBuf> {
    host.attackers_dir(&format!("mount-{name}-{ATTACKER}"))
}
