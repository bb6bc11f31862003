//! Twenty busy Python processes, as a node full of PySpark workers has them, and as many busy JVMs' threads: CPU and memory of the
//! daemon at its own settings, and what the kernel pays for a sample of each.

use super::{Bench, VISIBLE_AFTER};
use crate::bench::bpf_stats::BpfStats;
use crate::bench::procfs;
use crate::bench::row::Row;
use crate::bench::stacks::Kernel;
use crate::clock::{WINDOW_MS, over_windows};
use crate::launch::{Daemon, JavaProgram, Running};
use crate::places;
use crate::setup::jdk;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Processes.
const WORKERS: usize = 20;
/// Whole windows of the daemon's own length that are measured, after one.
const WINDOWS: u64 = 3;
/// Java programs of one busy thread each.
const JVMS: usize = 2;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let _stats = BpfStats::enable()?;
    let python = bench.python()?;
    let seconds = ((WINDOWS + 3) * WINDOW_MS / 1000 + VISIBLE_AFTER.as_secs()).to_string();
    let (first, rest) = python.command.split_first().context("a Python without a program")?;
    let script = places::workspace().join("tests/jobs/python_work.py");
    let pythons = || -> Result<Vec<Running>> {
        let start = |at: usize| {
            let mut command = Command::new(first);
            command.args(rest).arg(&script).args(["seconds", &seconds]);
            Running::start("a busy Python", &mut command, &bench.work.join(format!("busy-{at}.log")))
        };
        (0..WORKERS).map(start).collect()
    };
    let mut rows = measured(bench, &format!("{WORKERS} busy processes of {}", python.version), pythons)?;
    match jdk::ensure() {
        Ok(jdk) => {
            let jvms = || (0..JVMS).map(|at| java(bench, &jdk.home, &seconds, at)).collect();
            rows.extend(measured(bench, &format!("{JVMS} busy threads of Java {}", jdk.major), jvms)?);
        }
        Err(why) => skipped.push(format!("busy Java beside: {why:#}")),
    }
    Ok(rows)
}

fn java(bench: &Bench, home: &Path, seconds: &str, at: usize) -> Result<Running> {
    let dir = bench.work.join(format!("java-{at}"));
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let source = std::fs::read_to_string(places::workspace().join("tests/jobs/Split.java"))
        .context("reading tests/jobs/Split.java")?;
    JavaProgram::new("Split", &source, home).arg(seconds).start(&dir)
}

/// The daemon beside these programs.
fn measured(bench: &Bench, what: &str, start: impl FnOnce() -> Result<Vec<Running>>) -> Result<Vec<Row>> {
    let daemon = Daemon::start(&bench.binary, &bench.work.join("data-busy"), None, &[])?;
    let programs = start()?;
    // Until all are known, and their names read.
    std::thread::sleep(Duration::from_millis(WINDOW_MS));
    let measure = || Ok((Kernel::read(&daemon)?, procfs::cpu_seconds(daemon.pid())?, Instant::now()));
    let (_, _, before, after) = over_windows(WINDOWS, measure)?;
    drop(programs);
    let kernel = after.0.since(&before.0);
    let (user, all) = (after.1 - before.1, kernel.all_ns / 1e9);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let share = (user + all) / (after.2 - before.2).as_secs_f64() / cores * 100.0;
    let (rss, maps) = (procfs::peak_rss_bytes(daemon.pid())?, procfs::bpf_bytes(daemon.pid())?);
    daemon.stop()?;
    let n = kernel.samples as usize;
    let (ns, frames) =
        (kernel.sampling_ns / kernel.samples.max(1.0), kernel.frames / kernel.samples.max(1.0));
    Ok(vec![
        Row::told(
            format!("busy: {what}, kernel"),
            format!("{ns:.0} ns a sample, {frames:.1} frames walked"),
            n,
        ),
        Row::told(
            format!("busy: {what}, of the machine"),
            format!("{share:.2} %: daemon {user:.2} s, kernel {all:.2} s"),
            n,
        ),
        Row::told(
            format!("busy: {what}, memory at its peak"),
            format!("daemon {:.1} MB, BPF {:.1} MB", rss as f64 / 1e6, maps as f64 / 1e6),
            n,
        ),
    ])
}
