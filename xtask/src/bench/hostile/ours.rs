//! What is done to the daemon without a neighbour: panics in its own threads, and spoiled blocks. Both need a door of the
//! product; where the binary or the tree has none, the row says so.

use super::watch;
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;

/// Asks a daemon for faults of its own: `ACTION:POINT:FIRST:TIMES,...`. It says so in its log.
const VARIABLE: &str = "EMBERSCOPE_DANGEROUS_FAULTS";
/// Threads (profiler/supervise) and places of the way of a sample that are passed often.
const POINTS: [&str; 10] = [
    "http",
    "query",
    "naming",
    "journal",
    "blocks",
    "unwind-tables",
    "unwind-builder",
    "reader",
    "discovery",
    "spark-names",
];
/// Of these, whose panic is an answer to the one who asked: only each other of its jobs fails, so that answers go on.
const ANSWERED: usize = 2;
/// How often each panics.
const TIMES: usize = 100;

/// A daemon of its own whose threads panic, beside the victim's executors.
pub fn panics(binary: &Path, work: &Path, windows: u64, executors: &[u32]) -> Result<Vec<Row>> {
    let faults = POINTS.iter().enumerate().map(|(place, point)| {
        let every = if place < ANSWERED { 2 } else { 1 };
        format!("panic:{point}:1:{TIMES}:{every}")
    });
    let environment = [(VARIABLE.to_owned(), faults.collect::<Vec<_>>().join(","))];
    // A window closes ten times as often as it does by default: so do the jobs of those that keep it.
    let daemon = Daemon::start_in(binary, &work.join("panics"), &["--window", "1s"], &environment)?;
    if !std::fs::read_to_string(daemon.log()).unwrap_or_default().contains(VARIABLE) {
        daemon.stop()?;
        return Ok(vec![Row::told("panics: skipped", format!("the binary knows no {VARIABLE}"), 0)]);
    }
    let mut seen = watch::over(&daemon, windows, executors)?;
    std::thread::sleep(std::time::Duration::from_secs(8));
    let alive = watch::alive(daemon.pid());
    let log = std::fs::read_to_string(daemon.log()).context("reading the daemon's log")?;
    // Those that were asked for are no failures of ours.
    seen.failures = seen.failures.saturating_sub(ANSWERED * TIMES);
    let mut rows = super::verdict::rows("panics", &seen, alive.then_some(&daemon));
    for point in POINTS {
        let times = log.matches(&format!("an injected panic at {point}")).count();
        rows.push(Row::told(format!("panics: of {point} in the log"), times.to_string(), TIMES));
    }
    daemon.stop()?;
    Ok(rows)
}

/// 10,000 mutations of real blocks, by an example of the product.
pub fn archive() -> Result<Vec<Row>> {
    if !places::workspace().join("profiler/archive/examples/bad_blocks").exists() {
        return Ok(vec![Row::told(
            "archive: skipped",
            "there is no profiler/archive/examples/bad_blocks",
            0,
        )]);
    }
    let mut cargo = places::cargo();
    let words =
        ["build", "--locked", "--release", "--package", "emberscope-archive", "--example", "bad_blocks"];
    cargo.current_dir(places::workspace()).args(words);
    step::run("building the spoiler of blocks", &mut cargo, "the compiler's message is above")?;
    let program = places::target().join("release/examples/bad_blocks");
    let output = Command::new(&program).arg("10000").current_dir(places::workspace()).output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("   {}", text.trim());
    let figure = if output.status.success() { "none" } else { "see above" };
    let what = "archive: mutations that end the reader, or are not named";
    Ok(vec![Row::is(what, figure, "none", output.status.success(), 10_000)])
}
