//! `bench compare`: whether `emberscope compare --fail-over 10%` tells a run that became slower from one that did not.
//!
//! One job (tests/jobs/Nightly.java), each run an application in a JVM of its own, under one daemon. A round is three runs: two
//! alike, and one in which a method takes 20 % longer that has most of the job's CPU time. The second is compared with the
//! first, which must not fail, and the third with the first, which must, with that method first in the list. Names of stages
//! are not read of runs so short, so stages are lined up by order here; tests/compare.rs has them by name.

use super::{kit, row};
use crate::launch::{Daemon, SparkJob};
use crate::setup::SparkKit;
use crate::{build, places};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a run may take on a crowded machine.
const RUN: Duration = Duration::from_secs(300);
/// Windows are short, so that runs are asked about soon.
const WINDOW: Duration = Duration::from_secs(2);
/// By how many percent the method takes longer.
const SLOWER: &str = "20";
/// Growth that is allowed.
const ALLOWED: &str = "10%";
/// The method.
const METHOD: &str = "Nightly.score";
/// Of twenty pairs without a change so many may fail, and of twenty with one so many must.
const FALSE_ALARMS_OF_20: usize = 1;
const FOUND_OF_20: usize = 19;

#[derive(Parser)]
#[command(name = "compare", about = "Runs of one job compared: false alarms, changes found")]
struct CompareOptions {
    #[command(flatten)]
    kit: kit::Options,
    /// Pairs without a change, and as many with one
    #[arg(long, default_value_t = 20)]
    pairs: usize,
    /// The daemon's program, where it is built already
    #[arg(long)]
    bin: Option<PathBuf>,
}

/// What came of a comparison.
struct Outcome {
    failed: bool,
    growth: f64,
    error: f64,
    first: String,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options =
        CompareOptions::parse_from(std::iter::once("compare".to_owned()).chain(arguments.iter().cloned()));
    if options.pairs == 0 {
        bail!("--pairs 0 compares nothing");
    }
    let kit = options.kit.kit()?;
    let binary = options.bin.clone().map_or_else(build::run, Ok)?;
    let work = places::target().join("bench/compare");
    let _ = std::fs::remove_dir_all(&work);
    let window = format!("{}s", WINDOW.as_secs());
    let daemon = Daemon::start(&binary, &work.join("data"), None, &["--window", &window])?;
    let (mut alarms, mut found, mut first) = (0, 0, 0);
    for pair in 1..=options.pairs {
        let of = |slower: &str| one(&kit, &work, slower);
        let (left, same, slow) = (of("0")?, of("0")?, of(SLOWER)?);
        // Until the last window has closed.
        std::thread::sleep(3 * WINDOW);
        let (same, slow) =
            (compare(&binary, &daemon, &left, &same)?, compare(&binary, &daemon, &left, &slow)?);
        for (what, outcome) in [("unchanged", &same), ("slower", &slow)] {
            println!(
                "pair {pair:>2} {what:<9} {} {:+.2} +- {:.2} %, first {}",
                if outcome.failed { "FAILED" } else { "passed" },
                outcome.growth * 100.0,
                outcome.error * 100.0,
                outcome.first
            );
        }
        alarms += usize::from(same.failed);
        found += usize::from(slow.failed);
        first += usize::from(slow.first == METHOD);
    }
    let n = options.pairs;
    let of_twenty = |bar: usize| 100.0 * bar as f64 / 20.0;
    let rows = [
        row::Row::at_most("pairs without a change that failed", alarms, n * FALSE_ALARMS_OF_20 / 20, n),
        row::Row::share("pairs with a method 20 % slower that failed", found, of_twenty(FOUND_OF_20), n),
        row::Row::share("of these: the method first in the list", first, of_twenty(FOUND_OF_20), n),
    ];
    row::print(&rows);
    if rows.iter().any(row::Row::fails) {
        bail!("not all within their bars");
    }
    Ok(())
}

/// A run: its application.
fn one(kit: &SparkKit, work: &Path, slower: &str) -> Result<String> {
    let job = SparkJob::java(&["Nightly"], &kit.venv, &kit.jdk.home, &work.join("spark")).master("local[2]");
    let mut job = job.arg(slower).arg("false").arg("false").start()?;
    let app = job.wait_fact("app", RUN)?;
    job.wait_fact("done", RUN)?;
    job.wait(RUN)?;
    Ok(app)
}

fn compare(binary: &Path, daemon: &Daemon, left: &str, right: &str) -> Result<Outcome> {
    let words = ["compare", left, right, "--fail-over", ALLOWED, "--format", "json", "--url", daemon.url()];
    let output = Command::new(binary).args(words).output().context("cannot start the command")?;
    let says = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    ensure!(matches!(code, Some(0 | 1)), "compare ended with {code:?}: {says}");
    let answer: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("no answer: {says}"))?;
    let pair = &answer["whole"]["cpu"];
    let figure = |name: &str| pair[name].as_f64().with_context(|| format!("no {name} in {pair}"));
    let before = figure("left_seconds")?;
    Ok(Outcome {
        failed: code == Some(1),
        growth: figure("difference")? / before,
        error: figure("difference_error")? / before,
        first: answer["methods"]["rows"][0]["name"].as_str().unwrap_or("-").to_owned(),
    })
}
