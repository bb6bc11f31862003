//! What watching switches costs threads that run no task: two of them that wake each other by pipes on one CPU, with the
//! programs and without, in turn; and the nanoseconds of the programs by the kernel's count.

use super::super::bpf_stats::{BpfStats, programs};
use super::super::row::Row;
use super::{Bench, WITH_WAITS, WITHOUT};
use crate::launch::Daemon;
use anyhow::{Context as _, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// How long one round lasts.
const ROUND: Duration = Duration::from_secs(3);
/// Round trips whose time is taken together.
const TRIPS: u32 = 200;

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for round in 0..bench.options.rounds {
        for (name, words, out) in
            [("without", &WITHOUT[..], &mut without), ("with", &WITH_WAITS[..], &mut with)]
        {
            let data = bench.work.join(format!("switches-{name}-{round}"));
            let daemon = Daemon::start(&bench.binary, &data, None, words)?;
            out.extend(ping_pong(ROUND)?);
            ensure!(daemon.stop()?.success(), "the daemon failed");
        }
    }
    let n = with.len();
    let (with, without) = (median(with), median(without));
    let more = with - without;
    let mut rows = vec![Row::is(
        "a switch and its wake-up, more at the median",
        format!("{more:.0} ns ({without:.0} without)"),
        "<= 250 ns",
        more <= 250.0,
        n,
    )];
    rows.extend(counted(bench)?);
    Ok(rows)
}

/// By the kernel's count, which costs some tens of nanoseconds itself.
fn counted(bench: &Bench) -> Result<Vec<Row>> {
    let daemon = Daemon::start(&bench.binary, &bench.work.join("switches-counted"), None, &WITH_WAITS)?;
    let _stats = BpfStats::enable()?;
    let before = programs(&daemon)?;
    ping_pong(ROUND)?;
    let after = programs(&daemon)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    let row = |name: &str| {
        let zero = (0.0, 0.0);
        let (a, b) = (after.get(name).unwrap_or(&zero), before.get(name).unwrap_or(&zero));
        let (runs, ns) = (a.0 - b.0, a.1 - b.1);
        Row::told(
            format!("{name}, a run for a thread without a task"),
            format!("{:.0} ns", ns / runs.max(1.0)),
            runs as usize,
        )
    };
    Ok(vec![row("off_cpu_switch"), row("off_cpu_wakeup")])
}

/// Nanoseconds of one switch, of each so many round trips, each of which is two.
fn ping_pong(time: Duration) -> Result<Vec<f64>> {
    let (mut from_us, mut to_other) = std::io::pipe().context("a pipe")?;
    let (mut from_other, mut to_us) = std::io::pipe().context("a pipe")?;
    let other = std::thread::spawn(move || {
        pin();
        let mut byte = [0];
        while from_us.read(&mut byte).is_ok_and(|n| n == 1) && to_us.write_all(&byte).is_ok() {}
    });
    let ours = std::thread::spawn(move || -> Result<Vec<f64>> {
        pin();
        let (mut all, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < time {
            let start = Instant::now();
            for _ in 0..TRIPS {
                to_other.write_all(&[1])?;
                from_other.read_exact(&mut [0])?;
            }
            all.push(start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS));
        }
        Ok(all)
    });
    let all = ours.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    all
}

/// Both on one CPU: each trip is then two switches.
fn pin() {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    // Where it may not, the rows say more, for both sides alike.
    let _ = sched_setaffinity(None, &cpus);
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}
