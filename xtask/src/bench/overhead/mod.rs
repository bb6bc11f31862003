//! `bench overhead`: what the daemon costs a real Spark job.
//!
//! One warm Spark session on two executors runs the same job, a fixed number of calls, again and again;
//! the daemon is on in one run of each pair and off in the other, in alternating order (on-off, off-on),
//! so that a drift of the machine falls on both. Printed: the slowdown in the task threads' CPU time
//! (Spark's own executorCpuTime), in the executors' CPU time and in wall time, each as mean of the
//! pairs' ratios with a 95 % interval; the daemon's share of the machine and its memory; nanoseconds a
//! sample in the kernel, from bpf_stats, in a run of its own.

use super::bpf_stats::BpfStats;
use super::procfs;
use super::stats::Summary;
use crate::launch::{Daemon, Job, SparkJob};
use crate::{build, places, setup};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one run may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Runs before the first that counts: the JIT settles.
const WARM_UP: usize = 3;

#[derive(Parser)]
#[command(name = "overhead", about = "What the daemon costs a real Spark job: paired on/off runs")]
struct Options {
    /// Pairs of runs
    #[arg(long, default_value_t = 8)]
    pairs: usize,
    /// Rows the job reads in a run: the fixed number of calls
    #[arg(long, default_value_t = 12_000_000)]
    rows: u64,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 99)]
    hz: u32,
}

/// One run of the job.
struct Run {
    wall: f64,
    thread_cpu: f64,
    process_cpu: f64,
}

/// What the daemon used during a run.
struct Cost {
    share: f64,
    rss: f64,
}

struct Bench {
    options: Options,
    binary: PathBuf,
    work: PathBuf,
    job: Job,
    run: usize,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options =
        Options::parse_from(std::iter::once("overhead".to_owned()).chain(arguments.iter().cloned()));
    if options.pairs < 2 {
        bail!("--pairs {} gives no interval: two at least", options.pairs);
    }
    let tools = setup::spark()?;
    let binary = build::run()?;
    let work = places::target().join("bench/overhead");
    let _ = std::fs::remove_dir_all(&work);
    let mut job = SparkJob::new("fixed_work.py", &tools.venv, &tools.jdk.home, &work)
        .arg(options.rows.to_string())
        .start()?;
    let app = job.wait_fact("app", RUN_TIMEOUT)?;
    println!(
        "job: {} rows a run, application {app}, executors {}",
        options.rows,
        job.fact("executors").unwrap_or_default()
    );
    let mut bench = Bench { options, binary, work, job, run: 0 };
    for _ in 0..WARM_UP {
        bench.off()?;
    }
    bench.pairs()
}

impl Bench {
    fn pairs(mut self) -> Result<()> {
        let (mut cpu, mut process, mut wall, mut costs) = (vec![], vec![], vec![], vec![]);
        for pair in 0..self.options.pairs {
            let (on, off, cost) = if pair % 2 == 0 {
                let (on, cost) = self.on(false)?;
                (on, self.off()?, cost)
            } else {
                let off = self.off()?;
                let (on, cost) = self.on(false)?;
                (on, off, cost)
            };
            println!(
                "pair {:>2}: on {:.3} s CPU {:.3} s wall, off {:.3} s CPU {:.3} s wall, daemon {:.2} % of the machine",
                pair + 1,
                on.thread_cpu,
                on.wall,
                off.thread_cpu,
                off.wall,
                cost.share * 100.0
            );
            cpu.push((on.thread_cpu / off.thread_cpu - 1.0) * 100.0);
            process.push((on.process_cpu / off.process_cpu - 1.0) * 100.0);
            wall.push((on.wall / off.wall - 1.0) * 100.0);
            costs.push(cost);
        }
        println!(
            "\nslowdown, percent: mean of the pairs' ratios, 95 % interval (Student's t), median, extremes"
        );
        for (what, figures) in
            [("task threads' CPU", &cpu), ("executors' CPU", &process), ("wall time", &wall)]
        {
            let s = Summary::of(figures).context("no pairs")?;
            println!(
                "{what:<20} n={} {:+.2} [{:+.2}, {:+.2}]  median {:+.2}  {:+.2} .. {:+.2}",
                s.n,
                s.mean,
                s.mean - s.half95,
                s.mean + s.half95,
                s.median,
                s.min,
                s.max
            );
        }
        let share =
            Summary::of(&costs.iter().map(|c| c.share * 100.0).collect::<Vec<_>>()).context("no pairs")?;
        let rss = Summary::of(&costs.iter().map(|c| c.rss / 1e6).collect::<Vec<_>>()).context("no pairs")?;
        println!(
            "daemon's CPU, percent of the machine: median {:.2}, {:.2} .. {:.2} (aim 0.5)",
            share.median, share.min, share.max
        );
        println!("daemon's peak RSS, MB: median {:.1}, {:.1} .. {:.1}", rss.median, rss.min, rss.max);
        self.on(true)?;
        std::fs::write(self.work.join("stop"), "").context("stopping the job")?;
        self.job.wait(RUN_TIMEOUT)
    }

    fn off(&mut self) -> Result<Run> {
        self.run += 1;
        std::fs::write(self.work.join(format!("go.{}", self.run)), "").context("starting a run")?;
        let text = self.job.wait_fact(&format!("run.{}", self.run), RUN_TIMEOUT)?;
        let value: serde_json::Value = serde_json::from_str(&text).context("the job's figures")?;
        let figure = |name: &str| value[name].as_f64().with_context(|| format!("the job gave no {name}"));
        Ok(Run {
            wall: figure("wall_s")?,
            thread_cpu: figure("thread_cpu_s")?,
            process_cpu: figure("process_cpu_s")?,
        })
    }

    /// A run with the daemon; with `kernel`, bpf_stats are on and the kernel's figures are printed.
    fn on(&mut self, kernel: bool) -> Result<(Run, Cost)> {
        let stats = kernel.then(BpfStats::enable).transpose()?;
        let hz = self.options.hz.to_string();
        let daemon = Daemon::start(&self.binary, &self.work.join("daemon"), None, &["--hz", &hz])?;
        // The start (reading /proc, loading programs) is not what a job pays all day.
        std::thread::sleep(Duration::from_secs(2));
        let (before, begun) = (procfs::cpu_seconds(daemon.pid())?, Instant::now());
        let run = self.off()?;
        let elapsed = begun.elapsed().as_secs_f64();
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let share = (procfs::cpu_seconds(daemon.pid())? - before) / elapsed / cores;
        let rss = procfs::peak_rss_bytes(daemon.pid())? as f64;
        if kernel {
            print_kernel_figures(&daemon)?;
        }
        drop(stats);
        daemon.stop()?;
        Ok((run, Cost { share, rss }))
    }
}

/// Reads the daemon's metrics and prints what the kernel side costs.
fn print_kernel_figures(daemon: &Daemon) -> Result<()> {
    let text = daemon.get("/metrics")?.body;
    let sum = |name: &str, label: &str| -> f64 {
        text.lines()
            .filter(|line| line.starts_with(name) && line.contains(label))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum()
    };
    let (runs, ns) =
        (sum("emberscope_bpf_runs_total", "sample"), sum("emberscope_bpf_run_nanoseconds_total", "sample"));
    let (samples, frames) = (sum("emberscope_samples_total", ""), sum("emberscope_frames_walked_total", ""));
    println!(
        "kernel: {:.0} ns a run of the sampling program (n = {runs:.0}, idle left out ones too), {:.0} ns a sample, mean depth {:.1} user frames; BPF maps {:.1} MB",
        ns / runs.max(1.0),
        ns / samples.max(1.0),
        frames / samples.max(1.0),
        sum("emberscope_bpf_map_bytes", "") / 1e6
    );
    println!("lost samples: {:.0}", sum("emberscope_lost_total", "sample"));
    Ok(())
}
