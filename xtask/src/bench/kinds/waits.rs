//! A job whose tasks wait for things of a known kind and measure it (tests/jobs/WaitJobs.java).
//!
//! A task measures by the wall clock, less what the kernel has on the thread's account for running and for waiting for a CPU.

use super::super::row::Row;
use super::{Bench, WITH_WAITS, measured};
use crate::clock::{now, sleep_until_visible};
use crate::launch::spark::{KEPT_LOCKS, WAIT_JOBS};
use crate::launch::{Daemon, Job, SparkJob};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(300);

/// Kinds of waits of the job, their reason, and the method that waits.
const KINDS: [(&str, &str, &str); 6] = [
    ("sleep", "sleep", "WaitJobs.sleeps"),
    ("monitor", "lock", "WaitJobs.entersMonitor"),
    ("lock", "lock", "WaitJobs.takesLock"),
    ("socket", "network", "WaitJobs.readsSocket"),
    ("file", "storage", "WaitJobs.writesFile"),
    ("short", "lock", "WaitJobs.parksShortly"),
];

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let kit = bench.options.kit.kit()?;
    let daemon = Daemon::start(&bench.binary, &bench.work.join("waits-daemon"), None, &WITH_WAITS)?;
    let from = now();
    let work = bench.work.join("waits");
    let mut job = SparkJob::java(&WAIT_JOBS, &kit.venv, &kit.jdk.home, &work)
        .master("local-cluster[1,2,1024]")
        .arg(bench.options.times.to_string())
        .arg(bench.options.millis.to_string())
        .start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact("done", TIMEOUT)?;
    let until = sleep_until_visible(now());
    let query = format!("app={app}&from={from}&until={until}");
    let mut rows = Vec::new();
    for kind in KINDS {
        rows.extend(of_kind(&daemon, &job, &query, kind)?);
    }
    for (name, class) in KEPT_LOCKS {
        rows.extend(of_lock(&daemon, &job, &query, (name, class))?);
    }
    rows.push(whole(&daemon, &job, &query)?);
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    Ok(rows)
}

/// What the tasks of a kind waited in its method, for its reason and for others, nanoseconds.
fn of_kind(
    daemon: &Daemon,
    job: &Job,
    query: &str,
    (kind, reason, method): (&str, &str, &str),
) -> Result<[Row; 2]> {
    let stage = job.fact(&format!("{kind}.stages")).context("no stage")?;
    let tasks = measured::told(job, &format!("{kind}.waited"))?;
    let truth = tasks.values().sum::<f64>() / 1e9;
    let path =
        format!("/api/v1/flamegraph?{query}&stage={stage}&type=off-cpu&group=wait&unit=ns&format=folded");
    let (mut right, mut all) = (0.0, 0.0);
    for line in daemon.get(&path)?.body.lines() {
        let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
        if stack.split(';').any(|frame| frame == method) {
            let weight = weight.parse::<f64>()? / 1e9;
            all += weight;
            right += if stack.starts_with(&format!("wait={reason};")) { weight } else { 0.0 };
        }
    }
    let what = format!("{kind}: waited in {method}");
    let waited = Row::exact(what, all, truth, "s", 3.0, tasks.len());
    let share = (right / all.max(f64::MIN_POSITIVE) * 1e4).round() as usize;
    Ok([waited, Row::share(format!("{kind}: of it for {reason}, n in 10,000"), share, 98.0, 10_000)])
}

/// What a task waited for a lock by its class, and of that, for the thread that kept it.
fn of_lock(daemon: &Daemon, job: &Job, query: &str, (name, class): (&str, &str)) -> Result<[Row; 2]> {
    let stage = job.fact(&format!("{name}.stages")).context("no stage")?;
    let truth = measured::told(job, &format!("{name}.waited"))?.values().sum::<f64>() / 1e9;
    let shape = "type=lock&group=lock,lock_owner&unit=ns&format=folded";
    let (mut owned, mut all) = (0.0, 0.0);
    for line in daemon.get(&format!("/api/v1/flamegraph?{query}&stage={stage}&{shape}"))?.body.lines() {
        let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
        if let Some(rest) = stack.strip_prefix(&format!("lock={class};")) {
            let weight = weight.parse::<f64>()? / 1e9;
            all += weight;
            owned += if rest.starts_with(&format!("lock_owner=keeper of {name};")) { weight } else { 0.0 };
        }
    }
    let waited = Row::exact(format!("{name}: waited for {class}"), all, truth, "s", 3.0, 1);
    let share = (owned / all.max(f64::MIN_POSITIVE) * 1e4).round() as usize;
    let row = Row::share(format!("{name}: of it held by its keeper, n in 10,000"), share, 95.0, 10_000);
    Ok([waited, row])
}

/// All that the tasks waited for, against the time in which they were blocked by the kernel's accounts. From Spark 4.2 on;
/// before, the time until the thread's next task is in the latter.
fn whole(daemon: &Daemon, job: &Job, query: &str) -> Result<Row> {
    let mut sums = (0.0, 0.0);
    let mut n = 0;
    for (kind, ..) in KINDS {
        let stage = job.fact(&format!("{kind}.stages")).context("no stage")?;
        let answer = daemon.json(&format!("/api/v1/tasks?{query}&stage={stage}&join=no"))?;
        for task in answer["tasks"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let of = |value: &Value| value.as_f64().unwrap_or_default();
            sums.0 += of(&task["waited"]["seconds"]);
            sums.1 += of(&task["exact"]["blocked_seconds"]);
            n += 1;
        }
    }
    Ok(Row::exact("all waits of the tasks, against blocked (Spark 4.2 on)", sums.0, sums.1, "s", 1.0, n))
}
