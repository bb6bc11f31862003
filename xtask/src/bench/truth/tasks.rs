//! The application of tests/jobs/TaskJobs.java, which the rows ledger, sampled, short, two, delay, tax and slow
//! share: run under the daemon, with its event log read when all windows are there.
//!
//! One executor with two cores, so that tasks of all kinds follow each other in the same threads. Its last
//! phase is met half way by a busy neighbour on each CPU ([`super::delay`]).

use super::row::Row;
use super::{Bench, Rows, TIMEOUT, delay, labels, ledger, sampled, slow, tax};
use crate::bench::procfs::{self, Machine};
use crate::clock::{now, sleep_until_visible};
use crate::launch::spark::{NOT_INLINED, TASK_JOBS};
use crate::launch::{EventLog, Job, SparkJob};
use anyhow::{Context as _, Result};
use std::path::Path;

/// The phases, in order, and the rows that need them.
const PHASES: &[(&str, &[Rows])] = &[
    ("short:400:10", &[Rows::Short, Rows::Ledger, Rows::Sampled, Rows::Tax]),
    ("range:1", &[Rows::Ledger, Rows::Sampled, Rows::Tax]),
    ("two:300", &[Rows::Two, Rows::Ledger, Rows::Sampled]),
    ("skew:40", &[Rows::Slow]),
    ("steady:55:2", &[Rows::Delay, Rows::Sampled, Rows::Tax]),
];

/// An application that has done its work, all of it visible.
pub struct Ran {
    /// Its id.
    pub app: String,
    /// What Spark says.
    pub log: EventLog,
    /// First and last instant of its windows, Unix milliseconds.
    pub range: (u64, u64),
    /// What all CPUs had done before it began.
    pub machine: Machine,
    job: Job,
}

impl Ran {
    /// Waits until the job has said `done` and all is visible, and lets it end.
    pub fn finish(mut job: Job, (from, machine): (u64, Machine), work: &Path) -> Result<Self> {
        let app = job.wait_fact("app", TIMEOUT)?;
        job.wait_fact("done", TIMEOUT)?;
        // It lives on until its last stacks have been named.
        let until = sleep_until_visible(now());
        let log = EventLog::read(&job.event_log().context("there is no event log")?)?;
        std::fs::write(work.join("stop"), "").context("stopping the job")?;
        job.wait(TIMEOUT)?;
        Ok(Self { app, log, range: (from, until), machine, job })
    }

    /// `app=..&from=..&until=..`
    pub fn query(&self) -> String {
        format!("app={}&from={}&until={}", self.app, self.range.0, self.range.1)
    }

    /// Stages of a phase, in the order in which they ran; none of a phase that was left out.
    pub fn stages(&self, phase: &str) -> Vec<u64> {
        let ids = self.job.fact(&format!("{phase}.stages")).unwrap_or_default();
        ids.split(',').filter_map(|id| id.parse().ok()).collect()
    }
}

/// Runs the application and measures.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let phases: Vec<&str> = PHASES
        .iter()
        .filter(|(_, rows)| rows.iter().any(|rows| bench.wants(*rows)))
        .map(|(phase, _)| *phase)
        .collect();
    let mut rows = Vec::new();
    let mut pools = sampled::Pools::default();
    for round in 0..if phases.is_empty() { 0 } else { bench.options.rounds } {
        println!("== task jobs, round {} of {}", round + 1, bench.options.rounds);
        let work = bench.work.join(format!("tasks-{round}"));
        let (from, machine) = (now(), procfs::machine()?);
        let mut job = start(bench, &work, &phases)?;
        let app = job.wait_fact("app", TIMEOUT)?;
        let neighbours = bench.wants(Rows::Delay) || bench.wants(Rows::Tax);
        let seen = neighbours.then(|| delay::Seen::watch(bench, &mut job, &app, from)).transpose()?;
        let ran = Ran::finish(job, (from, machine), &work)?;
        if bench.wants(Rows::Ledger) {
            rows.extend(ledger::rows(bench, &ran)?);
        }
        if bench.wants(Rows::Sampled) {
            rows.extend(pools.add(bench, &ran)?);
        }
        if bench.wants(Rows::Short) {
            rows.extend(labels::short(bench, &ran)?);
        }
        if bench.wants(Rows::Two) {
            rows.extend(labels::two(bench, &ran)?);
        }
        if let (Some(seen), true) = (&seen, bench.wants(Rows::Delay)) {
            rows.extend(seen.rows(bench, &ran)?);
        }
        if let (Some(seen), true) = (&seen, bench.wants(Rows::Tax)) {
            rows.extend(tax::rows(bench, seen)?);
        }
        if bench.wants(Rows::Slow) {
            rows.extend(slow::rows(bench, &ran)?);
        }
    }
    rows.extend(pools.rows());
    Ok(rows)
}

fn start(bench: &Bench, work: &Path, phases: &[&str]) -> Result<Job> {
    let mut job = SparkJob::java(&TASK_JOBS, &bench.kit.venv, &bench.kit.jdk.home, work)
        .master("local-cluster[1,2,1024]")
        .java_options(NOT_INLINED)
        .conf("spark.scheduler.mode", "FAIR")
        .event_log();
    for phase in phases {
        job = job.arg(*phase);
    }
    job.start()
}
