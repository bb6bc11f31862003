//! `bench settings`: what each setting of the daemon costs beside a real Spark job that goes on and on.
//!
//! One job (tests/jobs/demo.py: SQL with sorts, joins and text) on two executors; daemons one after the other, each
//! with other settings, from nothing. Printed of each, once the daemon has settled: its CPU time and that of its BPF programs as
//! parts of the machine, microseconds a sample of both, memory and BPF maps, what it writes, what was lost. These are the figures
//! of docs/cost.md.

use super::bpf_stats::{BpfStats, programs};
use super::row::Row;
use super::{kit, procfs, row};
use crate::launch::{Daemon, SparkJob};
use crate::{build, places};
use anyhow::{Context as _, Result};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the job may take to start.
const STARTS: Duration = Duration::from_secs(180);
/// How long the JIT has, before the first daemon.
const WARM_UP: Duration = Duration::from_secs(60);

/// What is set, by its name in the table.
const SETTINGS: [(&str, &[&str]); 6] = [
    ("default", &[]),
    ("CPU time alone", &["--events", "cpu", "--pauses=false"]),
    ("with allocations", &["--events", "cpu,off-cpu,alloc"]),
    ("with page faults", &["--events", "cpu,off-cpu,page-faults"]),
    ("with both", &["--events", "cpu,off-cpu,alloc,page-faults"]),
    ("997 Hz", &["--hz", "997"]),
];

#[derive(Parser)]
#[command(name = "settings", about = "What each setting of the daemon costs beside a Spark job that goes on")]
struct Options {
    #[command(flatten)]
    kit: kit::Options,
    /// How long each is looked at, seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How long each has before that, seconds
    #[arg(long, default_value_t = 45)]
    settle: u64,
    /// The daemon's program, where it is built already
    #[arg(long)]
    bin: Option<PathBuf>,
}

/// What a daemon has used and done so far.
struct Used {
    at: Instant,
    cpu: f64,
    bpf: f64,
    samples: f64,
    lost: f64,
    written: f64,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options =
        Options::parse_from(std::iter::once("settings".to_owned()).chain(arguments.iter().cloned()));
    let kit = options.kit.kit()?;
    let binary = options.bin.clone().map_or_else(build::run, Ok)?;
    let work = places::target().join("bench/settings");
    let _ = std::fs::remove_dir_all(&work);
    let mut job = SparkJob::new("demo.py", &kit.venv, &kit.jdk.home, &work.join("spark"))
        .arg("--seconds")
        .arg("86400")
        .start()?;
    let app = job.wait_fact("app", STARTS)?;
    println!("application {app} on {} CPUs", cpus()?);
    std::thread::sleep(WARM_UP);
    let mut rows = Vec::new();
    for (name, words) in SETTINGS {
        rows.extend(cost(&options, &binary, &work.join(name.replace(' ', "-")), (name, words))?);
    }
    row::print(&rows);
    Ok(())
}

fn cpus() -> Result<f64> {
    Ok(std::thread::available_parallelism().context("CPUs")?.get() as f64)
}

/// Of one daemon.
fn cost(options: &Options, binary: &Path, data: &Path, (name, words): (&str, &[&str])) -> Result<[Row; 3]> {
    let daemon = Daemon::start(binary, data, None, words)?;
    std::thread::sleep(Duration::from_secs(options.settle));
    let _stats = BpfStats::enable()?;
    let before = Used::of(&daemon)?;
    std::thread::sleep(Duration::from_secs(options.seconds));
    let after = Used::of(&daemon)?;
    let (rss, maps) = (procfs::peak_rss_bytes(daemon.pid())?, procfs::bpf_bytes(daemon.pid())?);
    daemon.stop()?;
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    let machine = |used: f64| 100.0 * used / seconds / cpus().unwrap_or(1.0);
    let (cpu, bpf, samples) =
        (after.cpu - before.cpu, after.bpf - before.bpf, after.samples - before.samples);
    let each = |used: f64| 1e6 * used / samples.max(1.0);
    Ok([
        Row::told(
            format!("{name}: CPU of the machine, of a sample"),
            format!(
                "daemon {:.2} %, BPF {:.2} %; {:.0} + {:.0} us",
                machine(cpu),
                machine(bpf),
                each(cpu),
                each(bpf)
            ),
            samples as usize,
        ),
        Row::told(
            format!("{name}: memory at its peak"),
            format!("{:.1} MB, BPF maps {:.1} MB", rss as f64 / 1e6, maps as f64 / 1e6),
            1,
        ),
        Row::told(
            format!("{name}: written, lost"),
            format!(
                "{:.1} KB/s, {:.0} samples",
                (after.written - before.written) / seconds / 1e3,
                after.lost - before.lost
            ),
            samples as usize,
        ),
    ])
}

impl Used {
    fn of(daemon: &Daemon) -> Result<Self> {
        let text = daemon.get("/metrics")?.body;
        let sum = |name: &str| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
        };
        let bpf: f64 = programs(daemon)?.into_values().map(|(_, ns)| ns / 1e9).sum();
        let io = PathBuf::from(format!("/proc/{}/io", daemon.pid()));
        let io = std::fs::read_to_string(&io).with_context(|| format!("reading {}", io.display()))?;
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
        Ok(Self {
            at: Instant::now(),
            cpu: procfs::cpu_seconds(daemon.pid())?,
            bpf,
            samples: sum("emberscope_samples_total{type=\"cpu\"}"),
            lost: sum("emberscope_lost_total"),
            written: written.context("no write_bytes")?,
        })
    }
}
