//! `bench overhead`: what the daemon costs a real Spark job.
//!
//! One warm Spark session on two executors runs the same job, a fixed number of calls, again and again;
//! the daemon is on in one run of each pair and off in the other, in alternating order (on-off, off-on),
//! so that a drift of the machine falls on both. Then the same pairs with async-profiler, and with nothing: what pairs differ by
//! that are alike. Printed: the slowdown in the task threads' CPU time
//! (Spark's own executorCpuTime), in the executors' CPU time and in wall time, each as mean of the
//! pairs' ratios with a 95 % interval; the daemon's share of the machine and its memory; nanoseconds a
//! sample in the kernel, from bpf_stats, in a run of its own.

mod peer;

use super::bpf_stats::BpfStats;
use super::stats::Summary;
use super::{kit, procfs, row};
use crate::launch::{Daemon, Job, SparkJob};
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use peer::{Agent, Peer};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long one run may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Runs before the first that counts: the JIT settles.
const WARM_UP: usize = 3;
/// The start of a profiler (reading /proc, loading programs, an agent) is not what a job pays all day.
const SETTLE: Duration = Duration::from_secs(2);
/// Upper ends of the 95 % intervals of the daemon's slowdown, in percent: of task threads' CPU time, and of wall time.
const CPU_BAR: f64 = 0.6;
const WALL_BAR: f64 = 1.5;

#[derive(Parser)]
#[command(name = "overhead", about = "What the daemon costs a real Spark job: paired on/off runs")]
struct Options {
    #[command(flatten)]
    kit: kit::Options,
    /// What is on in one run of each pair
    #[arg(long, value_delimiter = ',', default_values = ["ours", "async-profiler", "nothing"])]
    peers: Vec<Peer>,
    /// Pairs of runs of each
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Rows the job reads in a run: the fixed number of calls, some 44 s on two cores
    #[arg(long, default_value_t = 110_000_000)]
    rows: u64,
    /// The daemon's program, where it is built already
    #[arg(long)]
    bin: Option<PathBuf>,
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
    /// Where it is wanted.
    agent: Option<Agent>,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options =
        Options::parse_from(std::iter::once("overhead".to_owned()).chain(arguments.iter().cloned()));
    if options.pairs < 2 {
        bail!("--pairs {} gives no interval: two at least", options.pairs);
    }
    let kit = options.kit.kit()?;
    let binary = options.bin.clone().map_or_else(build::run, Ok)?;
    let work = places::target().join("bench/overhead");
    let _ = std::fs::remove_dir_all(&work);
    let mut job = SparkJob::new("fixed_work.py", &kit.venv, &kit.jdk.home, &work)
        .arg(options.rows.to_string())
        .start()?;
    let app = job.wait_fact("app", RUN_TIMEOUT)?;
    let executors = job.fact("executors").unwrap_or_default();
    println!("job: {} rows a run, application {app}, executors {executors}", options.rows);
    let wants_agent = options.peers.contains(&Peer::AsyncProfiler);
    let agent = wants_agent.then(|| Agent::new(&kit, &executors, options.hz)).transpose()?;
    let mut bench = Bench { options, binary, work, job, run: 0, agent };
    for _ in 0..WARM_UP {
        bench.off()?;
    }
    let mut rows = Vec::new();
    for peer in bench.options.peers.clone() {
        rows.extend(bench.pairs(peer)?);
    }
    if bench.options.peers.contains(&Peer::Ours) {
        bench.daemon(true)?;
    }
    bench.end()?;
    row::print(&rows);
    if rows.iter().any(row::Row::fails) {
        bail!("not all within their bars");
    }
    Ok(())
}

impl Bench {
    fn pairs(&mut self, peer: Peer) -> Result<Vec<row::Row>> {
        println!("pairs with {} and without", peer.name());
        let (mut cpu, mut process, mut wall, mut costs) = (vec![], vec![], vec![], vec![]);
        for pair in 0..self.options.pairs {
            let (on, off) = if pair % 2 == 0 {
                let on = self.on(peer)?;
                (on, self.off()?)
            } else {
                let off = self.off()?;
                (self.on(peer)?, off)
            };
            let (on, cost) = on;
            let share =
                cost.as_ref().map(|cost| format!(", daemon {:.2} % of the machine", cost.share * 100.0));
            println!(
                "pair {:>2}: on {:.3} s CPU {:.3} s wall, off {:.3} s CPU {:.3} s wall{}",
                pair + 1,
                on.thread_cpu,
                on.wall,
                off.thread_cpu,
                off.wall,
                share.unwrap_or_default()
            );
            cpu.push((on.thread_cpu / off.thread_cpu - 1.0) * 100.0);
            process.push((on.process_cpu / off.process_cpu - 1.0) * 100.0);
            wall.push((on.wall / off.wall - 1.0) * 100.0);
            costs.extend(cost);
        }
        let bar = |bar| (peer == Peer::Ours).then_some(bar);
        let mut rows = Vec::new();
        for (what, figures, bar) in [
            ("task threads' CPU", &cpu, bar(CPU_BAR)),
            ("executors' CPU", &process, None),
            ("wall time", &wall, bar(WALL_BAR)),
        ] {
            rows.push(slowdown(&format!("{}: {what}, slowdown", peer.name()), figures, bar)?);
        }
        let share: Vec<f64> = costs.iter().map(|cost| cost.share * 100.0).collect();
        let rss: Vec<f64> = costs.iter().map(|cost| cost.rss / 1e6).collect();
        for (what, figures, unit) in [("CPU of the machine (aim 0.5)", share, "%"), ("peak RSS", rss, "MB")] {
            if let Some(s) = Summary::of(&figures) {
                let figure = format!("median {:.2} {unit}, {:.2} .. {:.2}", s.median, s.min, s.max);
                rows.push(row::Row::told(format!("{}: {what}", peer.name()), figure, s.n));
            }
        }
        Ok(rows)
    }

    fn end(mut self) -> Result<()> {
        std::fs::write(self.work.join("stop"), "").context("stopping the job")?;
        self.job.wait(RUN_TIMEOUT)
    }

    /// A run with the peer on.
    fn on(&mut self, peer: Peer) -> Result<(Run, Option<Cost>)> {
        match peer {
            Peer::Ours => self.daemon(false).map(|(run, cost)| (run, Some(cost))),
            Peer::Nothing => Ok((self.off()?, None)),
            Peer::AsyncProfiler => {
                self.agent.as_ref().context("there is no agent")?.start()?;
                std::thread::sleep(SETTLE);
                let run = self.off()?;
                self.agent.as_ref().context("there is no agent")?.stop()?;
                Ok((run, None))
            }
        }
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
    fn daemon(&mut self, kernel: bool) -> Result<(Run, Cost)> {
        let stats = kernel.then(BpfStats::enable).transpose()?;
        let hz = self.options.hz.to_string();
        let daemon = Daemon::start(&self.binary, &self.work.join("daemon"), None, &["--hz", &hz])?;
        std::thread::sleep(SETTLE);
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

/// A slowdown: the mean of the pairs' ratios with its 95 % interval (Student's t), whose upper end is judged.
fn slowdown(what: &str, figures: &[f64], bar: Option<f64>) -> Result<row::Row> {
    let s = Summary::of(figures).context("no pairs")?;
    let (low, high) = (s.mean - s.half95, s.mean + s.half95);
    let figure = format!("{:+.2} % [{low:+.2}, {high:+.2}], median {:+.2}", s.mean, s.median);
    Ok(match bar {
        Some(bar) => row::Row::is(what, figure, &format!("upper end < {bar} %"), high < bar, s.n),
        None => row::Row::told(what, figure, s.n),
    })
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
