//! A neighbour without any rights whose program is a burden to read: the daemon lives, stays small and goes on answering.
//!
//! The small part of `cargo xtask bench hostile` that a test can have. Needs root and a daemon; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running, is_root, required, skip};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::bench::hostile::names;
use xtask::bench::procfs;

/// A uid without a name, a group or anything else.
const NEIGHBOUR: u32 = 64002;
/// Another, who does nothing to anybody.
const CALM: u32 = 64003;
/// Of the daemon alone.
const MOST_RESIDENT: u64 = 128 << 20;
/// A daemon that grows ends here, and the machine does not.
const MOST_WRITABLE: u64 = 1 << 30;
/// Samples of a process that has got to its work.
const SOME: u64 = 20;
/// Longest name of a frame.
const LONGEST_NAME: usize = 64 << 10;

/// Where the attacks of `cargo xtask bench hostile` are.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/src/bench/hostile/programs");

/// Starts a program of these functions as the neighbour.
fn neighbour(dir: &Path, name: &str, functions: &[String]) -> Result<Running> {
    start(dir, name, &names::source(functions, 300), NEIGHBOUR)
}

/// Starts a program of this source as this user.
fn start(dir: &Path, name: &str, text: &str, uid: u32) -> Result<Running> {
    let (source, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&source, text)?;
    let status = Command::new("cc")
        .args(["-O1", "-fno-omit-frame-pointer", "-I", PROGRAMS, "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .context("cc")?;
    ensure!(status.success(), "cc failed on {}", source.display());
    let mut command = Command::new(&program);
    Running::start(name, command.uid(uid).gid(uid), &dir.join(format!("{name}.log")))
}

/// Folded stacks of a process, once there are some: the first alone may be of its exec.
fn stacks(daemon: &Daemon, pid: u32) -> Result<String> {
    let begun = Instant::now();
    loop {
        let reply = daemon.get(&format!("/api/v1/flamegraph?pid={pid}&format=folded"));
        let reply = reply.with_context(|| format!("the daemon does not answer: {:?}", daemon.log()))?;
        let counts = reply.body.lines().filter_map(|stack| stack.rsplit_once(' ')?.1.parse::<u64>().ok());
        if reply.status == 200 && counts.sum::<u64>() >= SOME {
            return Ok(reply.body);
        }
        ensure!(begun.elapsed() < Duration::from_secs(120), "no stacks of {pid}: {reply:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_short_symbol_that_stands_for_gigabytes() -> Result<()> {
    let Some(here) = Here::or_skip("a_short_symbol_that_stands_for_gigabytes") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
    let pid = Pid::from_raw(i32::try_from(daemon.pid())?);
    let limit = Rlimit { current: Some(MOST_WRITABLE), maximum: Some(MOST_WRITABLE) };
    prlimit(pid, Resource::Data, limit).context("limiting the daemon's memory")?;
    for (name, symbol) in [("cpp", names::small()), ("rust", names::rust())] {
        let running = neighbour(dir.path(), name, std::slice::from_ref(&symbol))?;
        let folded = stacks(&daemon, running.pid())?;
        // Named or kept mangled, and no longer than a name may be.
        let longest = folded.split([';', '\n']).map(str::len).max().unwrap_or(0);
        ensure!(longest < LONGEST_NAME, "a frame of {longest} bytes");
        let named = ["f<", "a::f"].iter().any(|name| folded.contains(name));
        ensure!(named || folded.contains(&symbol), "{folded:.2000}");
    }
    let resident = procfs::peak_rss_bytes(daemon.pid())?;
    ensure!(resident < MOST_RESIDENT, "{resident} bytes");
    daemon.stop()?;
    Ok(())
}

/// What the status says that users lost in the ring: user, table, how many.
fn lost_in_the_ring(daemon: &Daemon) -> Result<Vec<(u64, String, u64)>> {
    let status = daemon.json("/api/v1/status")?;
    // Not there until the daemon has looked once.
    let quotas = status["quotas"].as_array().map_or(&[][..], |quotas| quotas);
    let of_ring = quotas.iter().filter_map(|loss| {
        let table = loss["table"].as_str().filter(|table| table.starts_with("ring_"))?;
        Some((loss["uid"].as_u64()?, table.to_owned(), loss["refused"].as_u64()?))
    });
    Ok(of_ring.collect())
}

#[test]
fn a_flood_of_stacks_beside_a_calm_program() -> Result<()> {
    let Some(here) = Here::or_skip("a_flood_of_stacks_beside_a_calm_program") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
    let ring = ["--window", "2s", "--hz", "199", "--ring-bytes", "512KiB"];
    let daemon = here.daemon(dir.path(), &ring)?;
    let text = std::fs::read_to_string(Path::new(PROGRAMS).join("stacks.c"))?;
    let _flood = start(dir.path(), "stacks", &text, NEIGHBOUR)?;
    let calm = start(dir.path(), "calm", &names::source(&["calm_work".to_owned()], 300), CALM)?;
    let pid = Pid::from_raw(i32::try_from(daemon.pid())?).context("a pid")?;
    let of = |lost: &[(u64, String, u64)], user: u32| -> u64 {
        lost.iter().filter(|(uid, ..)| *uid == u64::from(user)).map(|(.., count)| count).sum()
    };
    let begun = Instant::now();
    let lost = loop {
        // As on a machine where it gets no CPU for a while: nothing is read meanwhile.
        kill_process(pid, Signal::STOP)?;
        std::thread::sleep(Duration::from_millis(1500));
        kill_process(pid, Signal::CONT)?;
        std::thread::sleep(Duration::from_millis(500));
        let lost = lost_in_the_ring(&daemon)?;
        if of(&lost, NEIGHBOUR) > 200 && begun.elapsed() > Duration::from_secs(10) {
            break lost;
        }
        ensure!(begun.elapsed() < Duration::from_secs(120), "nothing was lost by the flooder: {lost:?}");
    };
    // None, unless the daemon had no CPU for much longer than that.
    ensure!(of(&lost, CALM) * 20 <= of(&lost, NEIGHBOUR), "{lost:?}");
    let folded = stacks(&daemon, calm.pid())?;
    let count = |line: &str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let (mut all, mut named) = (0, 0);
    for line in folded.lines() {
        all += count(line);
        named += if line.contains("calm_work") { count(line) } else { 0 };
    }
    ensure!(!folded.contains("stack lost") && named * 100 >= all * 95, "{named} of {all}: {folded:.2000}");
    eprintln!("{named} of {all} samples named; lost {lost:?}");
    daemon.stop()?;
    Ok(())
}

/// What the attackers' programs share, and their sources.
const SOURCES: [(&str, &str); 5] = [
    ("hostile.h", include_str!("../xtask/src/bench/hostile/programs/hostile.h")),
    ("fuse.c", include_str!("../xtask/src/bench/hostile/programs/fuse.c")),
    ("onfuse.c", include_str!("../xtask/src/bench/hostile/programs/onfuse.c")),
    ("mappings.c", include_str!("../xtask/src/bench/hostile/programs/mappings.c")),
    ("library.c", include_str!("../xtask/src/bench/hostile/programs/library.c")),
];
/// Somebody whose profile is wanted.
const VICTIM: &str = "
    static volatile unsigned long sink;
    __attribute__((noinline)) void victim_works(void) { for (int i = 0; i < 1000000; i++) sink += i; }
    int main(void) { for (;;) victim_works(); }";
/// How long a program may take to be under way, and the daemon to show what it must.
const PATIENCE: Duration = Duration::from_secs(300);
/// Windows that must close while the attacks last.
const WINDOWS: usize = 8;
/// The daemon's own, and those that may be stuck (docs/internals.md).
const MOST_THREADS: usize = 96;

fn compiled(dir: &Path, name: &str, more: &[&str]) -> Result<PathBuf> {
    let program = dir.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(dir.join(format!("{name}.c")));
    ensure!(cc.arg("-ldl").args(more).status().context("cc")?.success(), "cc failed on {name}.c");
    Ok(program)
}

/// Mounted until it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A file system that is read through an overlay, as in a container, whose type does not say that a program serves it.
fn overlay(dir: &Path, below: &Path) -> Result<Option<Mounted>> {
    let (empty, over) = (dir.join("empty"), dir.join("over"));
    std::fs::create_dir(&empty)?;
    std::fs::create_dir(&over)?;
    // The overlay's root has the rights that the kernel knows of the one below: none, before it has asked.
    std::fs::metadata(below)?;
    let lower = format!("lowerdir={}:{}", below.display(), empty.display());
    let mut mount = Command::new("mount");
    mount.args(["-t", "overlay", "-o", &lower, "none"]).arg(&over);
    Ok(mount.output()?.status.success().then_some(Mounted(over)))
}

fn as_user(uid: u32, dir: &Path, name: &str, command: &mut Command) -> Result<Running> {
    Running::start(name, command.uid(uid).gid(uid), &dir.join(format!("{name}.log")))
}

fn children(pid: u32) -> Result<Vec<u32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// Who is stuck or left alone, by pid, what was read of it, and which file.
fn left_alone(status: &serde_json::Value) -> Vec<(u64, String, String)> {
    let lists = ["stuck", "left_alone"].into_iter().filter_map(|list| status["reads"][list].as_array());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    lists
        .flatten()
        .map(|one| (one["pid"].as_u64().unwrap_or(0), text(&one["what"]), text(&one["path"])))
        .collect()
}

#[test]
fn reads_that_never_end_stop_no_window() -> Result<()> {
    let test = "reads_that_never_end_stop_no_window";
    if !is_root() {
        skip(test, "loading BPF programs needs root");
        return Ok(());
    }
    let Some(binary) = required(test, "EMBERSCOPE_BIN") else { return Ok(()) };
    if !Path::new("/dev/fuse").exists() {
        skip(test, "there is no /dev/fuse");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
    for (name, source) in SOURCES.into_iter().chain([("victim.c", VICTIM)]) {
        std::fs::write(dir.join(name), source)?;
    }
    let library = compiled(dir, "library", &["-shared", "-fPIC"])?;
    let (victim, onfuse) = (compiled(dir, "victim", &[])?, compiled(dir, "onfuse", &[])?);
    let below = dir.join("fuse-mount");
    std::fs::create_dir(&below)?;
    let mut server = Command::new(compiled(dir, "fuse", &[])?);
    server.arg("admin").arg(&below).arg(&library).arg(&library).arg(NEIGHBOUR.to_string());
    let mut server = Running::start("fuse", &mut server, &dir.join("fuse.log"))?;
    server.wait_fact("mounted", PATIENCE)?;
    let below = Mounted(below);
    let Some(over) = overlay(dir, &below.0)? else {
        skip(test, "this kernel mounts no overlay above FUSE");
        return Ok(());
    };
    let mut victim = Running::start("victim", &mut Command::new(victim), &dir.join("victim.log"))?;
    let mut dead = as_user(NEIGHBOUR, dir, "onfuse", Command::new(onfuse).arg("600").arg(&over.0))?;
    dead.wait_fact("library", PATIENCE)?;
    dead.wait_fact("arguments", PATIENCE)?;
    let mut words = Command::new(compiled(dir, "mappings", &[])?);
    // Another user: what reading takes for him is no reason not to read the first one's.
    let mut mappings = as_user(NEIGHBOUR + 1, dir, "mappings", words.args(["600", "5"]))?;
    mappings.wait_fact("mappings", PATIENCE)?;
    // The second's command line ends where its pages are the file's: Linux reads none but anonymous ones for it (FOLL_ANON,
    // mm/gup.c, since 4.17). Before, it would never have come.
    let [with_library, _] = children(dead.pid())?[..] else { anyhow::bail!("not two children") };
    // From now on nobody gets a page that was not read before.
    server.signal(Signal::USR1);

    let daemon = Daemon::start(&binary, &dir.join("data"), None, &["--window", "2s"])?;
    let begun = Instant::now();
    let (mut windows, mut oldest, mut last) = (0, 0.0_f64, f64::MAX);
    let mut file = false;
    while windows < WINDOWS || !file {
        let status = daemon.json("/api/v1/status")?;
        let health = &status["health"];
        let age = health["last_window_seconds"].as_f64().unwrap_or(f64::MAX);
        // One was stored: the newest is younger than it was. Those before the reads were given up do not count.
        windows += usize::from(age < last && file);
        oldest = if age < f64::MAX { oldest.max(age) } else { oldest };
        last = age;
        file |= left_alone(&status).iter().any(|(pid, what, path)| {
            *pid == u64::from(with_library) && what == "file" && path.ends_with("/lib.so")
        });
        let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.pid()))?.count();
        ensure!(threads <= MOST_THREADS, "{threads} threads");
        ensure!(begun.elapsed() < PATIENCE, "{windows} windows, {file}: {health} {}", status["reads"]);
        std::thread::sleep(Duration::from_millis(250));
    }
    eprintln!("{windows} windows in {:?}, the newest one {oldest:.1} s old at most", begun.elapsed());
    let reads = daemon.json("/api/v1/status")?["reads"].take();
    eprintln!("{reads}");
    // Others are named, and so is what the stuck ones run from elsewhere.
    let folded = stacks(&daemon, victim.pid())?;
    ensure!(folded.contains("victim_works"), "{folded:.2000}");
    let folded = stacks(&daemon, with_library)?;
    ensure!(folded.contains("main;") && folded.contains("[unknown: file "), "{folded:.2000}");
    ensure!(victim.ended()?.is_none() && mappings.ended()?.is_none(), "a program has ended");
    // What waits for the server cannot be killed before it is: the daemon's threads, and the neighbours.
    drop(server);
    drop((dead, mappings));
    daemon.stop()?;
    Ok(())
}
