//! Waiting for a CPU: the ledger's run-queue delay against the kernel's own account of each task's thread,
//! /proc/PID/task/TID/schedstat, before and after a busy neighbour on each CPU has started.
//!
//! The same stretch, and the executor's life before it, is what [`super::tax`] is held against.

use super::row::Row;
use super::tasks::Ran;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::clock::{WINDOW_MS, border, now, sleep_until, sleep_until_visible};
use crate::launch::{Job, Running};
use anyhow::{Context as _, Result};
use std::process::Command;

/// Windows before the neighbours and with them.
const WINDOWS: u64 = 2;
/// Deviation allowed, in percent of the wall time: readings are some milliseconds apart at each end.
const BAR: f64 = 1.0;

/// What was read while the phase `steady` ran.
pub struct Seen {
    /// The executor's process.
    pub executor: u32,
    /// The driver's process.
    pub driver: u32,
    /// When the application began, Unix milliseconds.
    pub from: u64,
    /// Instants: first, when the neighbours came, last. Starts of windows.
    pub instants: [u64; 3],
    /// Delay of the task threads at each, nanoseconds.
    delays: [u64; 3],
    /// CPU seconds of executor and driver at each.
    pub cpu: [(f64, f64); 3],
}

impl Seen {
    /// Waits for the phase, then watches it; starts and ends the neighbours.
    pub fn watch(bench: &Bench, job: &mut Job, app: &str, from: u64) -> Result<Self> {
        job.wait_fact("steady.started", TIMEOUT)?;
        let answer = bench.daemon.json(&format!("/api/v1/executors?app={app}&role=executor"))?;
        let pid = answer["executors"][0]["pids"][0].as_u64().context("the daemon knows no executor")?;
        let (executor, driver) = (u32::try_from(pid).context("the executor's pid")?, job.pid());
        let first = border(now() + 1_000);
        let instants = [first, first + WINDOWS * WINDOW_MS, first + 2 * WINDOWS * WINDOW_MS];
        let (mut delays, mut cpu) = ([0; 3], [(0.0, 0.0); 3]);
        let mut neighbours = Vec::new();
        for (i, instant) in instants.into_iter().enumerate() {
            sleep_until(instant);
            delays[i] =
                procfs::threads(executor, "Executor task")?.iter().map(|thread| thread.delay_ns).sum();
            cpu[i] = (procfs::cpu_seconds(executor)?, procfs::cpu_seconds(driver)?);
            if i == 1 {
                let cpus = std::thread::available_parallelism().map_or(1, usize::from);
                neighbours = (0..cpus).map(|n| neighbour(bench, n)).collect::<Result<_>>()?;
            }
        }
        drop(neighbours);
        sleep_until_visible(now());
        Ok(Self { executor, driver, from, instants, delays, cpu })
    }

    /// The ledger's figures beside what was read.
    pub fn rows(&self, bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
        let stage = *ran.stages("steady").first().context("the job did not name its steady stage")?;
        let mut rows = Vec::new();
        for (i, what) in ["alone", "with busy neighbours"].into_iter().enumerate() {
            let (from, until) = (self.instants[i], self.instants[i + 1]);
            let query = format!("app={}&stage={stage}&thread_class=task&from={from}&until={until}", ran.app);
            let answer = bench.daemon.json(&format!("/api/v1/ledger?{query}"))?;
            let exact = &answer["ledger"][0]["exact"];
            let figure = |name: &str| exact[name].as_f64().with_context(|| format!("no {name} in {answer}"));
            let (seen, wall) = (figure("run_delay_seconds")?, figure("wall_seconds")?);
            let truth = (self.delays[i + 1] - self.delays[i]) as f64 / 1e9;
            let off = (seen - truth) / wall * 100.0;
            let text =
                format!("{seen:.3} s of {wall:.1} s wall, schedstat {truth:.3} s: {off:+.2} % of wall");
            rows.push(Row::is(format!("delay: {what}"), text, &format!("{BAR} %"), off.abs() <= BAR, 2));
        }
        Ok(rows)
    }
}

fn neighbour(bench: &Bench, n: usize) -> Result<Running> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    Running::start("a busy neighbour", &mut shell, &bench.work.join(format!("neighbour-{n}.log")))
}
