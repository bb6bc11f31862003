//! `bench truth`: whether what Emberscope says is true. A module for each truth that it is held against.
//!
//! | rows | held against |
//! |---|---|
//! | [`cpu`], [`split`] | samples: /proc/PID/stat, a known split |
//! | [`ledger`] | exact CPU time of each task: Spark's event log |
//! | [`sampled`] | sampled CPU time of each stage: the ledger |
//! | [`labels`] | stage and task of each sample: the method it is in |
//! | [`delay`] | waiting for a CPU: /proc/PID/task/TID/schedstat, with busy neighbours from half way on |
//! | [`tax`] | CPU by class of thread: /proc/PID/stat |
//! | [`slow`] | `diff` of slow and usual tasks: the method that makes the difference |
//! | [`attempts`], [`python`] | speculative copies, stages tried twice; helpers of Python functions |
//!
//! The daemon is one for all, and so is the application of the middle five ([`tasks`]).

mod attempts;
mod cpu;
mod delay;
mod labels;
mod ledger;
mod python;
mod sampled;
mod slow;
mod split;
mod tasks;
mod tax;

use super::{kit, row};
use crate::launch::Daemon;
use crate::setup::SparkKit;
use crate::{build, places};
use anyhow::{Result, bail};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for a fact of a job.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Parser)]
#[command(
    name = "truth",
    about = "Samples and ledger against the kernel's accounts, Spark's own, known work"
)]
struct Options {
    /// Windows of ten seconds for the rows cpu and split
    #[arg(long, default_value_t = 6)]
    windows: u64,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 99)]
    hz: u32,
    #[command(flatten)]
    kit: kit::Options,
    /// Only these (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Rows>,
    /// Runs of the application with the task jobs; their samples are pooled
    #[arg(long, default_value_t = 1)]
    rounds: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rows {
    Cpu,
    Split,
    Ledger,
    Sampled,
    Short,
    Two,
    Delay,
    Tax,
    Slow,
    Attempts,
    Python,
}

/// What every measurement needs.
struct Bench {
    options: Options,
    kit: SparkKit,
    daemon: Daemon,
    work: PathBuf,
}

impl Bench {
    /// Whether these rows are asked for.
    fn wants(&self, rows: Rows) -> bool {
        self.options.rows.is_empty() || self.options.rows.contains(&rows)
    }
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("truth".to_owned()).chain(arguments.iter().cloned()));
    let kit = options.kit.kit()?;
    let binary = build::run()?;
    let work = places::target().join("bench/truth");
    let _ = std::fs::remove_dir_all(&work);
    let hz = options.hz.to_string();
    // Room for all windows of a run: what is asked for at its end began at its start.
    let words = ["--hz", &hz, "--store-bytes", "512MiB"];
    let daemon = Daemon::start(&binary, &work.join("daemon"), None, &words)?;
    let bench = Bench { options, kit, daemon, work };
    let mut rows = Vec::new();
    if bench.wants(Rows::Cpu) {
        rows.extend(cpu::rows(&bench)?);
    }
    if bench.wants(Rows::Split) {
        rows.extend(split::rows(&bench)?);
    }
    rows.extend(tasks::rows(&bench)?);
    if bench.wants(Rows::Attempts) {
        rows.extend(attempts::rows(&bench)?);
    }
    if bench.wants(Rows::Python) {
        rows.extend(python::rows(&bench)?);
    }
    row::print(&rows);
    println!("lost samples: {}", bench.daemon.json("/api/v1/flamegraph?format=json")?["quality"]["lost"]);
    bench.daemon.stop()?;
    match rows.iter().filter(|row| row.fails()).count() {
        0 => Ok(()),
        n => bail!("{n} figures are outside their bars"),
    }
}
