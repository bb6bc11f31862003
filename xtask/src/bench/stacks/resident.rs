//! What ten JVMs of a busy Spark job cost: CPU of the daemon and of its programs in the kernel, and the memory of
//! both, at the settings that a user gets. Twice: just after the JVMs' start, while they compile and nearly every method
//! is seen for the first time, and when they have run for some minutes, as an always-on profiler finds them.
//!
//! BPF maps are the kernel's memory: /proc/PID/fdinfo says of each how much (`memlock`).

use super::Bench;
use super::spark::{Kernel, TIMEOUT, job, kit};
use crate::bench::bpf_stats::BpfStats;
use crate::bench::procfs;
use crate::bench::row::Row;
use crate::clock::over_windows;
use crate::launch::Daemon;
use anyhow::Result;
use std::time::{Duration, Instant};

/// A driver and nine executors.
const MASTER: &str = "local-cluster[9,1,1024]";
/// Rows that the job reads in a run: the first must end before anything is known of the job.
const FEW_ROWS: &str = "2000000";
/// From the first measurement's end to the second's begin.
const SETTLED: Duration = Duration::from_secs(180);
/// Of the machine, in percent; microseconds a sample; MB.
const SHARE: f64 = 0.5;
const SAMPLE_US: f64 = 50.0;
const MEMORY: f64 = 64.0;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let (version, kit) = match kit(major) {
            Ok(kit) => kit,
            Err(why) => {
                skipped.push(format!("cost of ten JVMs with Java {major}: {why:#}"));
                continue;
            }
        };
        let work = bench.work.join(format!("ten-{major}"));
        let _stats = BpfStats::enable()?;
        let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, &[])?;
        let mut job = job(&kit, &work, MASTER, &bench.options.java_flags, "", (FEW_ROWS, 10_000))?;
        // Ten JVMs start on what cores there are.
        job.wait_fact("app", TIMEOUT * 3)?;
        let executors =
            job.fact("executors").unwrap_or_default().split(',').filter(|pid| !pid.is_empty()).count();
        for settled in [Duration::ZERO, SETTLED] {
            std::thread::sleep(settled);
            let what = if settled.is_zero() { "starting".to_owned() } else { format!("{settled:?} later") };
            let on = format!("cost: Spark {version}, Java {major}, {} JVMs, {what}", executors + 1);
            rows.extend(cpu(&daemon, bench.options.windows, &on)?);
        }
        let rss = procfs::peak_rss_bytes(daemon.pid())? as f64 / 1e6;
        let maps = procfs::bpf_bytes(daemon.pid())? as f64 / 1e6;
        daemon.stop()?;
        let on = format!("cost: Spark {version}, Java {major}, {} JVMs", executors + 1);
        let figure = format!("{:.1} MB: daemon {rss:.1}, BPF {maps:.1}", rss + maps);
        let holds = rss + maps <= MEMORY && maps > 0.0;
        rows.push(Row::is(format!("{on}, memory at its peak"), figure, &format!("<= {MEMORY} MB"), holds, 1));
    }
    Ok(rows)
}

/// CPU of so many windows.
fn cpu(daemon: &Daemon, windows: u64, on: &str) -> Result<[Row; 2]> {
    let measure = || Ok((Kernel::read(daemon)?, procfs::cpu_seconds(daemon.pid())?, Instant::now()));
    let (_, _, before, after) = over_windows(windows, measure)?;
    let kernel = after.0.since(&before.0);
    let (user, kernel_s) = (after.1 - before.1, kernel.all_ns / 1e9);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let share = (user + kernel_s) / (after.2 - before.2).as_secs_f64() / cores * 100.0;
    let sample = (user + kernel_s) * 1e6 / kernel.samples.max(1.0);
    let n = kernel.samples as usize;
    Ok([
        Row::is(
            format!("{on}, of the machine"),
            format!("{share:.2} %: daemon {user:.2} s, kernel {kernel_s:.2} s"),
            &format!("<= {SHARE} %"),
            share <= SHARE,
            n,
        ),
        Row::is(
            format!("{on}, a sample"),
            format!("{sample:.0} us, {:.1} frames walked", kernel.frames / kernel.samples.max(1.0)),
            &format!("<= {SAMPLE_US} us"),
            sample <= SAMPLE_US,
            n,
        ),
    ])
}
