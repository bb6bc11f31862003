//! A neighbour without any rights whose program is a burden to read: the daemon lives, stays small and goes on answering.
//!
//! The small part of `cargo xtask bench hostile` that a test can have. Needs root and the optimised daemon; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::bench::hostile::names;
use xtask::bench::procfs;

/// A uid without a name, a group or anything else.
const NEIGHBOUR: u32 = 64002;
/// Of the daemon alone.
const MOST_RESIDENT: u64 = 128 << 20;
/// A daemon that grows ends here, and the machine does not.
const MOST_WRITABLE: u64 = 1 << 30;
/// Longest name of a frame.
const LONGEST_NAME: usize = 64 << 10;

/// Starts a program of these functions as the neighbour.
fn neighbour(dir: &Path, name: &str, functions: &[String]) -> Result<Running> {
    let (source, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&source, names::source(functions, 300))?;
    let status = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(&source).status().context("cc")?;
    ensure!(status.success(), "cc failed on {}", source.display());
    let mut command = Command::new(&program);
    Running::start(name, command.uid(NEIGHBOUR).gid(NEIGHBOUR), &dir.join(format!("{name}.log")))
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
