//! Whose word counts: strangers who forge arguments, environment and web servers beside a real Spark job, and what
//! a job's secrets leave behind. Both on a real daemon; the truth is /proc.

mod forged;
mod secrets;

use anyhow::{Context as _, Result, ensure};
use emberscope::model::WallTime;
use emberscope_tests::{Daemon, Job, WARM_UP};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn now_ms() -> u64 {
    WallTime::now().as_millis()
}

fn words(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The processes of a job (its group) with this word on their command line.
fn with_word(job: &Job, word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| group(*pid) == Some(job.pid()) && words(*pid).iter().any(|w| w == word)).collect()
}

/// Process group: field 5 of /proc/PID/stat.
fn group(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Waits until something is there.
fn wait<T>(what: &str, look: impl Fn() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(begun.elapsed() < WARM_UP, "{what}: not within {} s", WARM_UP.as_secs());
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Pids whose samples an answer holds.
fn pids(daemon: &Daemon, query: &str) -> Result<BTreeSet<u32>> {
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}&group=pid"))?;
    ensure!(reply.status == 200, "{query}: {} {}", reply.status, reply.body);
    let pid = |line: &str| line.split(';').next()?.strip_prefix("pid=")?.parse().ok();
    reply.body.lines().map(|line| pid(line).with_context(|| line.to_owned())).collect()
}
