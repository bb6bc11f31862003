//! `bench probe`: what the probe on thread names costs a job of short tasks.
//!
//! One warm application, one executor with two cores, a fixed number of calls in tasks of some 15 ms: about a
//! hundred tasks a second. The daemon is on in one run of each pair and off in the other, in alternating order.
//! Printed: the slowdown in the task threads' CPU time as the kernel accounts it (/proc/PID/task/TID/schedstat:
//! Spark's own clock leaves the rename out), in Spark's figure and in wall time, as mean of the pairs' ratios with
//! a 95 % interval; then, in a run of its own with bpf_stats on, runs and nanoseconds of each BPF program.
//! `--hz 1` all but leaves the sampling out.

use super::bpf_stats::{self, BpfStats};
use super::kit;
use super::procfs;
use super::stats::Summary;
use crate::launch::spark::TASK_JOBS;
use crate::launch::{Daemon, Job, SparkJob};
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// How long one run may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Runs before the first that counts: the JIT settles.
const WARM_UP: usize = 4;
/// The upper end of the interval may not reach it, in percent.
const BAR: f64 = 1.0;

#[derive(Parser)]
#[command(name = "probe", about = "What naming threads costs a job of short tasks")]
struct Options {
    /// Pairs of runs
    #[arg(long, default_value_t = 16)]
    pairs: usize,
    /// Tasks in a run
    #[arg(long, default_value_t = 800)]
    tasks: u32,
    /// Steps of a task, some 15 microseconds each
    #[arg(long, default_value_t = 1000)]
    steps: u32,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 99)]
    hz: u32,
    #[command(flatten)]
    kit: kit::Options,
}

/// One run of the job, in seconds.
struct Run {
    wall: f64,
    threads: f64,
    spark: f64,
}

struct Bench {
    options: Options,
    binary: PathBuf,
    work: PathBuf,
    job: Job,
    executor: u32,
    run: usize,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("probe".to_owned()).chain(arguments.iter().cloned()));
    if options.pairs < 2 {
        bail!("--pairs {} gives no interval: two at least", options.pairs);
    }
    let kit = options.kit.kit()?;
    let binary = build::run()?;
    let work = places::target().join("bench/probe");
    let _ = std::fs::remove_dir_all(&work);
    let mut job = SparkJob::java(&TASK_JOBS, &kit.venv, &kit.jdk.home, &work)
        .master("local-cluster[1,2,1024]")
        .java_options("")
        .conf("spark.ui.enabled", "false")
        .arg(format!("fixed:{}:{}", options.tasks, options.steps))
        .start()?;
    let app = job.wait_fact("app", RUN_TIMEOUT)?;
    job.wait_fact("fixed.started", RUN_TIMEOUT)?;
    let executor = procfs::executors(&app).first().copied().context("the application has no executor")?;
    let mut bench = Bench { options, binary, work, job, executor, run: 0 };
    for _ in 0..WARM_UP {
        bench.off()?;
    }
    let holds = bench.pairs()?;
    bench.programs()?;
    std::fs::write(bench.work.join("stop"), "").context("stopping the job")?;
    bench.job.wait(RUN_TIMEOUT)?;
    if !holds {
        bail!("the slowdown's upper end is not below {BAR} %");
    }
    Ok(())
}

impl Bench {
    /// Runs the pairs; whether the bar holds.
    fn pairs(&mut self) -> Result<bool> {
        let (mut threads, mut spark, mut wall) = (vec![], vec![], vec![]);
        for pair in 0..self.options.pairs {
            let on_first = pair % 2 == 0;
            let first = if on_first { self.on()? } else { self.off()? };
            let second = if on_first { self.off()? } else { self.on()? };
            let (on, off) = if on_first { (first, second) } else { (second, first) };
            println!(
                "pair {:>2}: on {:.3} s CPU {:.3} s wall, off {:.3} s CPU {:.3} s wall, {:.0} tasks/s",
                pair + 1,
                on.threads,
                on.wall,
                off.threads,
                off.wall,
                f64::from(self.options.tasks) / on.wall
            );
            threads.push((on.threads / off.threads - 1.0) * 100.0);
            spark.push((on.spark / off.spark - 1.0) * 100.0);
            wall.push((on.wall / off.wall - 1.0) * 100.0);
        }
        println!(
            "\nslowdown, percent: mean of the pairs' ratios, 95 % interval (Student's t), median, extremes"
        );
        let mut upper = f64::INFINITY;
        for (what, figures) in
            [("wall time", &wall), ("Spark's CPU time", &spark), ("task threads' CPU", &threads)]
        {
            let s = Summary::of(figures).context("no pairs")?;
            upper = s.mean + s.half95;
            println!(
                "{what:<20} n={} {:+.2} [{:+.2}, {upper:+.2}]  median {:+.2}  {:+.2} .. {:+.2}",
                s.n,
                s.mean,
                s.mean - s.half95,
                s.median,
                s.min,
                s.max
            );
        }
        let holds = upper < BAR;
        println!(
            "upper end for the task threads' CPU: {upper:+.2} % (bar {BAR}): {}",
            if holds { "yes" } else { "NO" }
        );
        Ok(holds)
    }

    fn off(&mut self) -> Result<Run> {
        self.run += 1;
        let cpu = |pid| -> Result<f64> {
            Ok(procfs::threads(pid, "Executor task")?.iter().map(|thread| thread.cpu_ns as f64 / 1e9).sum())
        };
        let before = cpu(self.executor)?;
        std::fs::write(self.work.join(format!("go.{}", self.run)), "").context("starting a run")?;
        let text = self.job.wait_fact(&format!("run.{}", self.run), RUN_TIMEOUT)?;
        let threads = cpu(self.executor)? - before;
        let value: serde_json::Value = serde_json::from_str(&text).context("the job's figures")?;
        let figure = |name: &str| value[name].as_f64().with_context(|| format!("the job gave no {name}"));
        Ok(Run { wall: figure("wall_s")?, threads, spark: figure("spark_cpu_s")? })
    }

    fn daemon(&self) -> Result<Daemon> {
        let hz = self.options.hz.to_string();
        let daemon = Daemon::start(&self.binary, &self.work.join("daemon"), None, &["--hz", &hz])?;
        // The start (reading /proc, loading programs) is not what a job pays all day.
        std::thread::sleep(Duration::from_secs(2));
        Ok(daemon)
    }

    fn on(&mut self) -> Result<Run> {
        let daemon = self.daemon()?;
        let run = self.off()?;
        daemon.stop()?;
        Ok(run)
    }

    /// What each program costs, in a run that does not count: bpf_stats cost something themselves.
    fn programs(&mut self) -> Result<()> {
        let _stats = BpfStats::enable()?;
        let daemon = self.daemon()?;
        let before = bpf_stats::programs(&daemon)?;
        let run = self.off()?;
        let after = bpf_stats::programs(&daemon)?;
        println!("\nBPF programs, {:.0} tasks/s:", f64::from(self.options.tasks) / run.wall);
        for (program, (runs, ns)) in &after {
            let (runs_before, ns_before) = before.get(program).copied().unwrap_or_default();
            let (runs, ns) = (runs - runs_before, ns - ns_before);
            let (each, second) = (ns / runs.max(1.0), runs / run.wall);
            println!("{program:<20} {runs:>9.0} runs ({second:>7.0}/s)  {each:>7.0} ns each");
        }
        daemon.stop()?;
        Ok(())
    }
}
