//! `bench python`: Python frames, with no flag on the interpreter.
//!
//! | rows | held against |
//! |---|---|
//! | [`frames`]: `rooted`, `oracle` | a program that tells its own stacks (tests/jobs/python_oracle.py), by `sys._getframe` and by CPython's C API: recursion, generators, callbacks from C; with C functions of its own between Python's and below them |
//! | [`frames`]: `split`, `lines`, `numpy` | the CPU time of two functions, of two lines of one, of Python and of numpy, by the program's own clock |
//! | [`frames`]: `cost` | the kernel's count of what the sampling program took, beside a sample's frames |
//! | [`py_spy`]: `py-spy` | py-spy on the same run of a program of thirty functions; what each of the two slows it by |
//! | [`reload`]: `reload` | names that carry the worker, the generation and the line of their code, of a thousand workers that make code and drop it |
//! | [`workers`]: `workers` | the tasks of PySpark's workers: what a partition's function runs; their CPU time by stage: their own clocks |
//! | [`busy`]: `busy` | twenty busy Python processes, and two busy JVMs: CPU and memory of the daemon, a sample's cost in the kernel and its frames |
//!
//! `rooted` to `cost` are measured on each CPython from 3.8 on that this machine has, the others on one.

mod busy;
mod frames;
mod py_spy;
mod reload;
mod workers;

use super::row::{self, Row};
use crate::launch::Daemon;
use crate::oracle::python::{self, Python};
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Length of the daemon's windows.
const WINDOW_MS: u64 = 2_000;
/// A window is visible after its grace and the naming of what waited.
const VISIBLE_AFTER: Duration = Duration::from_secs(8);

/// What may be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// `rooted` and `oracle`, and with them `cost`
    Frames,
    Split,
    Lines,
    Numpy,
    PySpy,
    Reload,
    Workers,
    Busy,
}

#[derive(Parser)]
#[command(name = "python", about = "Python frames: whole, rightly named, what they cost")]
struct Options {
    /// Which figures (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Rows>,
    /// Minor versions (default: all that the machine has)
    #[arg(long, value_delimiter = ',')]
    minor: Vec<u32>,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 499)]
    hz: u32,
    /// Seconds of each scene, in whole windows
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Rounds of a run alone and one with each profiler
    #[arg(long, default_value_t = 5)]
    pairs: u32,
    /// Workers that make code and drop it
    #[arg(long, default_value_t = 1_000)]
    workers: u32,
    /// A daemon that is built already, instead of this source's
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// What all figures need.
struct Bench {
    options: Options,
    binary: PathBuf,
    work: PathBuf,
    pythons: Vec<Python>,
}

impl Bench {
    fn wants(&self, rows: Rows) -> bool {
        self.options.rows.is_empty() || self.options.rows.contains(&rows)
    }

    /// A daemon of its own, whose counts are of one program.
    fn daemon(&self, hz: u32) -> Result<Daemon> {
        let (hz, window) = (hz.to_string(), format!("{}s", WINDOW_MS / 1000));
        let words = ["--hz", &hz, "--window", &window, "--store-bytes", "512MiB"];
        Daemon::start(&self.binary, &self.work.join("data"), None, &words)
    }

    /// The interpreter of the figures that take one: the system's release or what is nearest to it, outside of a chroot.
    fn python(&self) -> Result<&Python> {
        let here = self.pythons.iter().filter(|python| python.root.is_none());
        here.min_by_key(|python| python.minor.abs_diff(11)).context("no CPython outside of a chroot")
    }
}

/// Runs it.
pub fn run(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("python").chain(arguments.iter().map(String::as_str));
    let options = Options::parse_from(words);
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::run()?,
    };
    let work = places::target().join("xtask").join("bench-python");
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let mut pythons = python::pythons();
    pythons.retain(|python| options.minor.is_empty() || options.minor.contains(&python.minor));
    if pythons.is_empty() {
        bail!("this machine has no CPython from 3.8 on: pyenv, or the system's");
    }
    let bench = Bench { options, binary, work, pythons };
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    let figures = [
        (&[Rows::Frames, Rows::Split, Rows::Lines, Rows::Numpy][..], frames::rows as Figures),
        (&[Rows::PySpy], py_spy::rows),
        (&[Rows::Reload], reload::rows),
        (&[Rows::Workers], workers::rows),
        (&[Rows::Busy], busy::rows),
    ];
    for (which, figures) in figures {
        if which.iter().any(|rows| bench.wants(*rows)) {
            rows.extend(figures(&bench, &mut skipped)?);
        }
    }
    row::print(&rows);
    for why in &skipped {
        println!("skipped: {why}");
    }
    if rows.iter().any(Row::fails) {
        bail!("not all figures are within their bars");
    }
    Ok(())
}

/// Figures, and what was left out with the reason.
type Figures = fn(&Bench, &mut Vec<String>) -> Result<Vec<Row>>;
