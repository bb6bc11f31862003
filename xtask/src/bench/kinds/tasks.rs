//! Tasks of 0.2 to 20 s that wait for everything in turn and measure it (tests/jobs/MixedWaits.java), all together and each by
//! itself: what they waited for by its reason, and whether their wall time is all there.
//!
//! A task's own measure is the wall clock less its CPU time and its run delay. Its wall time is held against Spark's clocks
//! (event log: deserialising, running and serialising), which begin a moment after the thread has the task's name and end a
//! moment before it has another; up to Spark 4.1 the wait for the next task is taken off the ledger's, as sampled.

use super::super::row::Row;
use super::measured::{ByTask, seen, told};
use super::{Bench, WITH_WAITS};
use crate::clock::{now, sleep_until_visible};
use crate::launch::asked::{Labelled, samples};
use crate::launch::{Daemon, EventLog, Job, SparkJob};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(600);
/// The job's class, and what it is made with.
const JOB: [&str; 3] = ["MixedWaits", "WaitJobs", "KeptLocks"];
/// Four at a time: they run for a quarter of their time.
const MASTER: &str = "local-cluster[1,4,1024]";
/// How many tasks, the shortest and the longest in milliseconds.
const TASKS: [u32; 3] = [50, 200, 20_000];
/// A part of what a task measured that may be missing, or too much.
const WITHIN: f64 = 0.03;
/// Nanoseconds that are not judged by themselves.
const SLACK_NS: f64 = 1e6;
/// Of 100 tasks, those that are within that, or two stated errors.
const GOOD: f64 = 95.0;
/// A part of a task's wall time that may be missing.
const MISSED: f64 = 0.01;
/// What Spark's clocks may miss of a task, seconds, beside that.
const AROUND: f64 = 0.010;

/// Why tasks wait, and the methods in which they do.
const REASONS: [(&str, &[&str]); 5] = [
    ("sleep", &["MixedWaits.sleeps"]),
    ("lock", &["MixedWaits.entersMonitor", "MixedWaits.takesLock"]),
    ("network", &["MixedWaits.readsSocket"]),
    ("storage", &["MixedWaits.readsFile"]),
    ("python", &["MixedWaits.readsLines"]),
];

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let kit = bench.options.kit.kit()?;
    let daemon = Daemon::start(&bench.binary, &bench.work.join("tasks-daemon"), None, &WITH_WAITS)?;
    let from = now();
    let work = bench.work.join("tasks");
    let job = SparkJob::java(&JOB, &kit.venv, &kit.jdk.home, &work).master(MASTER).event_log();
    let mut job = TASKS.into_iter().fold(job, |job, number| job.arg(number.to_string())).start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact("done", TIMEOUT)?;
    let until = sleep_until_visible(now());
    let log = EventLog::read(&job.event_log().context("there is no event log")?)?;
    let stage: u64 = job.fact("mixed.stage").context("no stage")?.parse().context("the id of the stage")?;
    let query = format!("app={app}&from={from}&until={until}&stage={stage}");
    let mut rows = by_reason(&daemon, &job, &query)?;
    rows.extend(wall(&daemon, &query, (&log, stage))?);
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    Ok(rows)
}

/// Whether all that a task waited for is within [`WITHIN`] of what it measured, and whether it is within that or two errors.
#[derive(Clone, Copy)]
struct Good {
    close: bool,
    stated: bool,
}

impl Good {
    /// Of one reason: nanoseconds seen, on how many samples, and measured.
    fn of(seen: f64, samples: f64, truth: f64) -> Self {
        let off = (seen - truth).abs();
        let close = off <= truth * WITHIN || off <= SLACK_NS;
        Self { close, stated: close || off <= 2.0 * seen / samples.max(1.0).sqrt() }
    }

    fn and(self, other: Self) -> Self {
        Self { close: self.close && other.close, stated: self.stated && other.stated }
    }
}

/// Whether it is in the job's own code: what Spark waits for around it, a task does not measure.
fn own(sample: &Labelled) -> bool {
    sample.stack.split(';').any(|frame| frame.starts_with("MixedWaits."))
}

/// What the tasks waited for each reason, together and each, and of what they waited in its methods, for it.
fn by_reason(daemon: &Daemon, job: &Job, query: &str) -> Result<Vec<Row>> {
    let ask = |more: &str| samples(daemon, &format!("{query}&type=off-cpu{more}"));
    let (all, total) = (ask("&unit=ns")?, |sums: &ByTask| sums.values().sum::<f64>() / 1e9);
    let mut rows = Vec::new();
    let mut tasks: BTreeMap<u64, Good> = BTreeMap::new();
    for (reason, methods) in REASONS {
        let truth = told(job, &format!("{reason}.waited"))?;
        let found = ask(&format!("&wait={reason}&unit=ns"))?;
        let counted = seen(&ask(&format!("&wait={reason}&unit=samples"))?, own);
        let sums = seen(&found, own);
        let what = format!("tasks: waited for {reason}");
        rows.push(Row::exact(what, total(&sums), total(&truth), "s", WITHIN * 100.0, truth.len()));
        let inside = |sample: &Labelled| methods.iter().any(|method| sample.is_in(method));
        let (right, of) = (total(&seen(&found, inside)), total(&seen(&all, inside)));
        let share = (right / of.max(f64::MIN_POSITIVE) * 1e4).round() as usize;
        let what = format!("tasks: of waits in its methods for {reason}, n in 10,000");
        rows.push(Row::share(what, share, 98.0, 10_000));
        for (task, truth) in &truth {
            let of = |sums: &ByTask| sums.get(task).copied().unwrap_or(0.0);
            let good = Good::of(of(&sums), of(&counted), *truth);
            tasks.entry(*task).and_modify(|known| *known = known.and(good)).or_insert(good);
        }
    }
    let count = |of: fn(&Good) -> bool| tasks.values().filter(|good| of(good)).count();
    let what = "tasks: each reason within 3 % or two stated errors";
    rows.push(Row::share(what, count(|good| good.stated), GOOD, tasks.len()));
    let close = format!("{} of {}", count(|good| good.close), tasks.len());
    rows.push(Row::told("tasks: of them each reason within 3 %", close, tasks.len()));
    Ok(rows)
}

/// A task's seconds.
struct Wall {
    /// By the ledger.
    ledger: f64,
    /// On a CPU and waiting for one by the ledger, and sampled waits.
    parts: f64,
    /// By Spark's clocks.
    spark: f64,
}

impl Wall {
    /// A row of `/api/v1/tasks`, and what Spark says of its task.
    fn of(row: &Value, log: &EventLog, stage: u64) -> Option<Self> {
        let tid: u64 = row["task"].as_str()?.parse().ok()?;
        let exact = |name: &str| row["exact"][name].as_f64();
        let waited = row["waited"]["seconds"].as_f64().unwrap_or(0.0);
        Some(Self {
            ledger: exact("wall_seconds")?,
            parts: exact("cpu_seconds")? + exact("run_delay_seconds")? + waited,
            spark: log.tasks_of(stage).find(|task| task.tid == tid)?.wall_ms() as f64 / 1e3,
        })
    }

    /// What is in no part, or in two.
    fn missed(&self) -> f64 {
        (self.ledger - self.parts).abs()
    }
}

/// Wall time = CPU + run delay + waits + what was missed: of all tasks and of each. Blocked is by definition the last two.
fn wall(daemon: &Daemon, query: &str, (log, stage): (&EventLog, u64)) -> Result<Vec<Row>> {
    let answer = daemon.json(&format!("/api/v1/tasks?{query}&join=no"))?;
    let rows = answer["tasks"].as_array().context("no tasks in the answer")?;
    let tasks: Vec<Wall> = rows.iter().filter_map(|row| Wall::of(row, log, stage)).collect();
    let (n, expected) = (tasks.len(), TASKS[0] as usize);
    ensure!(n == expected, "{n} of {expected} tasks are both in the ledger and in the event log");
    let sum = |of: fn(&Wall) -> f64| tasks.iter().map(of).sum::<f64>();
    let beyond = |far: fn(&Wall) -> bool| tasks.iter().filter(|task| far(task)).count();
    let (ledger, parts, spark) = (sum(|task| task.ledger), sum(|task| task.parts), sum(|task| task.spark));
    let missed = 100.0 * sum(Wall::missed) / ledger;
    let short = beyond(|task| task.missed() > MISSED * task.ledger);
    let far = beyond(|task| (task.ledger - task.spark).abs() > MISSED * task.spark + AROUND);
    let mut lengths: Vec<f64> = tasks.iter().map(|task| task.ledger).collect();
    lengths.sort_by(f64::total_cmp);
    let ends = lengths.first().zip(lengths.last()).context("no tasks")?;
    Ok(vec![
        Row::told("tasks: the shortest and the longest", format!("{:.2} and {:.2} s", ends.0, ends.1), n),
        Row::exact("tasks: CPU + run delay + waits, against their wall time", parts, ledger, "s", 1.0, n),
        Row::is("tasks: missed, of wall time", format!("{missed:.2} %"), "<= 1 %", missed <= 1.0, n),
        Row::at_most("tasks: with more than 1 % of their wall time missed", short, 0, n),
        Row::exact("tasks: wall time, against Spark's clocks", ledger, spark, "s", 1.0, n),
        Row::at_most("tasks: over 1 % and 10 ms off Spark's clocks", far, 0, n),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_judged_by_its_worst_reason() {
        let (close, stated, off) =
            (Good::of(1.02e9, 9.0, 1e9), Good::of(1.5e9, 9.0, 1e9), Good::of(4e9, 9.0, 1e9));
        assert!(close.close && close.stated && !stated.close && stated.stated && !off.stated);
        let both = close.and(stated);
        assert!(!both.close && both.stated && !both.and(off).stated);
        assert!(Good::of(0.0, 0.0, 1e5).close && !Good::of(0.0, 0.0, 1e9).stated);
    }
}
