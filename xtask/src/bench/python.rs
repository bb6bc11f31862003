//! `bench python`: Python frames, on each CPython from 3.8 on that this machine has, with no flag on the interpreter.
//!
//! | rows | held against |
//! |---|---|
//! | `rooted`, `oracle` | a program that tells its own stacks (tests/jobs/python_oracle.py): recursion, generators, callbacks from C |
//! | `split` | the CPU time of two functions, measured by the program itself |
//! | `cost` | the kernel's count of what the sampling program took, beside a sample's frames |

use super::bpf_stats::{self, BpfStats};
use super::row::{self, Row};
use crate::launch::Daemon;
use crate::oracle::python::{self, Judged, Python, SCENES, SPLIT, Split};
use crate::{build, places};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Length of the daemon's windows.
const WINDOW_MS: u64 = 2_000;
/// A window is visible after its grace and the naming of what waited.
const VISIBLE_AFTER: Duration = Duration::from_secs(8);
/// Of 100 samples.
const ROOTED: f64 = 99.0;
const EQUAL: f64 = 99.5;
/// Points that a share may be off, beside the sampling error.
const SPLIT_BAR: f64 = 1.0;
/// A scene that is run once more, before all others.
const WARM_UP: &str = "generators";
/// Up to 3.10 a Python call is three native ones, and 330 of them are more than the walker goes.
const DEEP_FROM: u32 = 11;

#[derive(Parser)]
#[command(name = "python", about = "Python frames: whole, rightly named, what they cost")]
struct Options {
    /// Minor versions (default: all that the machine has)
    #[arg(long, value_delimiter = ',')]
    minor: Vec<u32>,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 499)]
    hz: u32,
    /// Seconds of each scene, in whole windows
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// A daemon that is built already, instead of this source's
    #[arg(long)]
    binary: Option<PathBuf>,
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
    let _stats = BpfStats::enable()?;
    let (hz, window) = (options.hz.to_string(), format!("{}s", WINDOW_MS / 1000));
    let words = ["--hz", &hz, "--window", &window, "--store-bytes", "512MiB"];
    let mut rows = Vec::new();
    for python in &pythons {
        // A daemon each: the kernel's counts are of one interpreter.
        let daemon = Daemon::start(&binary, &work.join("data"), None, &words)?;
        one(&options, &daemon, python, &work, &mut rows)?;
        daemon.stop()?;
    }
    row::print(&rows);
    if rows.iter().any(Row::fails) {
        bail!("not all figures are within their bars");
    }
    Ok(())
}

/// The rows of one interpreter.
fn one(options: &Options, daemon: &Daemon, python: &Python, work: &Path, rows: &mut Vec<Row>) -> Result<()> {
    // Until the interpreter is known: the first scene is not judged.
    let mut scenes: Vec<&str> = std::iter::once(WARM_UP).chain(SCENES).collect();
    scenes.retain(|scene| *scene != "deep" || python.minor >= DEEP_FROM);
    scenes.extend(SPLIT);
    let before = bpf_stats::programs(daemon)?;
    let ran = python::run(python, &scenes, options.seconds, WINDOW_MS, &work.join("oracle.log"))?;
    std::thread::sleep(VISIBLE_AFTER);
    let after = bpf_stats::programs(daemon)?;
    let (mut n, mut rooted, mut equal) = (0, 0, 0);
    for scene in ran.scenes.iter().skip(1).filter(|scene| scene.shares.is_empty()) {
        let judged = Judged::of(daemon, ran.pid, scene)?;
        (n, rooted, equal) = (n + judged.n, rooted + judged.rooted, equal + judged.equal);
        for (count, other) in judged.others.iter().take(3) {
            let (version, n) = (&python.version, judged.n);
            println!("   {version} {}: {count} of {n} as {}", scene.name, tail(other));
        }
    }
    let split = Split::of(daemon, &ran)?;
    for (function, (seen, truth)) in &split.shares {
        let what = format!("split {} {function}", python.version);
        rows.push(Row::deviation(what, seen * 100.0, truth * 100.0, "%", SPLIT_BAR, split.n as f64));
    }
    rows.push(Row::share(format!("rooted {}", python.version), rooted, ROOTED, n));
    rows.push(Row::share(format!("oracle {}", python.version), equal, EQUAL, n));
    let spent = |counts: &std::collections::BTreeMap<String, (f64, f64)>| {
        counts
            .iter()
            .filter(|(name, _)| name.starts_with("sample"))
            .fold((0.0, 0.0), |sum, (_, count)| (sum.0 + count.0, sum.1 + count.1))
    };
    let ((runs, ns), (runs_before, ns_before)) = (spent(&after), spent(&before));
    let each = (ns - ns_before) / (runs - runs_before).max(1.0);
    rows.push(Row::told(format!("cost {}", python.version), format!("{each:.0} ns a run"), n));
    Ok(())
}

/// The innermost functions of a stack.
fn tail(names: &str) -> String {
    let all: Vec<&str> = names.split(';').collect();
    all.get(all.len().saturating_sub(8)..).unwrap_or_default().join(";")
}
