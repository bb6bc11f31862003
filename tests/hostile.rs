//! A neighbour without any rights whose program is a burden to read: the daemon lives, stays small and goes on answering.
//!
//! The small part of `cargo xtask bench hostile` that a test can have. Needs root and the optimised daemon; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
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

/// Folded stacks of a process, once there are some.
fn stacks(daemon: &Daemon, pid: u32) -> Result<String> {
    let begun = Instant::now();
    loop {
        let reply = daemon.get(&format!("/api/v1/flamegraph?pid={pid}&format=folded"));
        let reply = reply.with_context(|| format!("the daemon does not answer: {:?}", daemon.log()))?;
        if reply.status == 200 && !reply.body.is_empty() {
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
