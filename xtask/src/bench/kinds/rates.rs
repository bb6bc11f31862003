//! What sampling waits costs the machine when threads of tasks switch so often: what the kernel counts for the programs that
//! watch switches, and the daemon's CPU time with waits sampled and without, in turn.

use super::super::bpf_stats::{BpfStats, programs};
use super::super::procfs::cpu_seconds;
use super::super::row::Row;
use super::super::stats::Summary;
use super::{Bench, WITH_WAITS, WITHOUT};
use crate::launch::{Daemon, JavaProgram, Running};
use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};

/// Switches a second, and the part of the machine that they may cost, percent.
const RATES: [(u32, f64); 3] = [(5_000, 0.1), (20_000, 0.3), (100_000, 1.0)];
/// Pairs of threads: as many as can run at once on two CPUs.
const PAIRS: u32 = 2;
/// Before anything is counted: names are read, causes are known.
const WARM_UP: Duration = Duration::from_secs(12);
/// How long is counted.
const COUNTED: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(60);

/// In a second.
struct Cost {
    switches: f64,
    /// Seconds of the programs, of the daemon.
    programs: f64,
    daemon: f64,
}

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let kit = bench.options.kit.kit()?;
    let cpus = std::thread::available_parallelism().context("CPUs")?.get() as f64;
    let mut rows = Vec::new();
    for (rate, bar) in RATES {
        let dir = bench.work.join(format!("rate-{rate}"));
        std::fs::create_dir_all(&dir).context("making a directory")?;
        let program = JavaProgram::new("SparkSubmit", include_str!("Switches.java"), &kit.jdk.home);
        let program = program.package("org.apache.spark.deploy");
        let mut running = program.arg(rate.to_string()).arg(PAIRS.to_string()).flag("-Xmx64m").start(&dir)?;
        running.wait_fact("started", TIMEOUT)?;
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for round in 0..bench.options.rounds {
            for (name, words, out) in
                [("with", &WITH_WAITS[..], &mut with), ("without", &WITHOUT[..], &mut without)]
            {
                let data = dir.join(format!("{name}-{round}"));
                out.push(cost(bench, &running, &data, words)?);
            }
        }
        let percent = |seconds: f64| 100.0 * seconds / cpus;
        let mean = |costs: &[Cost], what: fn(&Cost) -> f64| {
            Summary::of(&costs.iter().map(what).collect::<Vec<_>>()).map_or(f64::NAN, |of| of.mean)
        };
        let kernel = mean(&with, |cost| cost.programs);
        let more = mean(&with, |cost| cost.daemon) - mean(&without, |cost| cost.daemon);
        let switches = mean(&with, |cost| cost.switches);
        let whole = percent(kernel + more.max(0.0));
        rows.push(Row::is(
            format!("{switches:.0} switches a second of tasks' threads, of the machine"),
            format!("{whole:.3} %: programs {:.3}, daemon {:+.3}", percent(kernel), percent(more)),
            &format!("<= {bar} %"),
            whole <= bar,
            with.len(),
        ));
    }
    Ok(rows)
}

/// Of a daemon that watches the program for a time.
fn cost(bench: &Bench, running: &Running, data: &std::path::Path, words: &[&str]) -> Result<Cost> {
    let daemon = Daemon::start(&bench.binary, data, None, words)?;
    std::thread::sleep(WARM_UP);
    let _stats = BpfStats::enable()?;
    let look = || -> Result<(Instant, f64, f64, u64)> {
        let of_waits = |(name, (_, ns)): (String, (f64, f64))| name.starts_with("off_cpu").then_some(ns);
        let ns: f64 = programs(&daemon)?.into_iter().filter_map(of_waits).sum();
        Ok((Instant::now(), ns / 1e9, cpu_seconds(daemon.pid())?, switches(running.pid())))
    };
    let before = look()?;
    std::thread::sleep(COUNTED);
    let after = look()?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    let seconds = (after.0 - before.0).as_secs_f64();
    Ok(Cost {
        switches: (after.3 - before.3) as f64 / seconds,
        programs: (after.1 - before.1) / seconds,
        daemon: (after.2 - before.2) / seconds,
    })
}

/// Times that threads of a process gave up their CPU by themselves (proc_pid_status(5)).
fn switches(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |task: std::fs::DirEntry| -> Option<u64> {
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
    };
    tasks.filter_map(of_thread).sum()
}
