//! What is done to the daemon without a neighbour: panics in its own threads, and spoiled blocks. Both need a door of the
//! product; where the binary or the tree has none, the row says so.

use super::watch;
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Asks a daemon for faults of its own: `ACTION:POINT:FIRST:TIMES,...`. It says so in its log.
const VARIABLE: &str = "EMBERSCOPE_DANGEROUS_FAULTS";
/// Threads (profiler/supervise) and places of the way of a sample that are passed often.
const POINTS: [&str; 14] = [
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
    "spark-words",
    "push",
    "push-otlp",
    "watchdog",
];
/// Of these, whose panic is an answer to the one who asked: only each other of its jobs fails, so that answers go on.
const ANSWERED: usize = 2;
/// How often each panics.
const TIMES: usize = 100;
/// Where nobody listens (discard).
const NOWHERE: &str = "http://127.0.0.1:9";
/// The victim's driver, which is the first of this machine: whose names are asked for while it is not found, as discovery panics.
const DRIVER: &str = "http://127.0.0.1:4040";
/// The most windows that are waited for the last of them: who finds drivers is asked each 10 s after it failed often
/// (`registry/turn.rs`).
const MOST_WINDOWS: u64 = 150;
/// Between two questions about names of stages and tasks.
const PAUSE: Duration = Duration::from_millis(250);

/// A daemon of its own whose threads panic, beside the victim's executors.
pub fn panics(binary: &Path, work: &Path, windows: u64, executors: &[u32], app: &str) -> Result<Vec<Row>> {
    let faults = POINTS.iter().enumerate().map(|(place, point)| {
        let every = if place < ANSWERED { 2 } else { 1 };
        format!("panic:{point}:1:{TIMES}:{every}")
    });
    let environment = [(VARIABLE.to_owned(), faults.collect::<Vec<_>>().join(","))];
    // A window closes ten times as often as it does by default, and is a block soon: so are the jobs of those that
    // keep it.
    // Windows are packed for servers that are not there, too.
    let settings = ["--window", "1s", "--store-bytes", "64KiB", "--spark-url", DRIVER];
    let settings = [&settings[..], &["--push", NOWHERE, "--push-otlp", NOWHERE]].concat();
    let daemon = Daemon::start_in(binary, &work.join("panics"), &settings, &environment)?;
    if !std::fs::read_to_string(daemon.log()).unwrap_or_default().contains(VARIABLE) {
        daemon.stop()?;
        return Ok(vec![Row::told("panics: skipped", format!("the binary knows no {VARIABLE}"), 0)]);
    }
    let struck = || {
        let log = std::fs::read_to_string(daemon.log()).unwrap_or_default();
        POINTS.map(|point| log.matches(&format!("an injected panic at {point}")).count())
    };
    let mut seen = asked_for_names(&daemon, app, || {
        watch::over(&daemon, (watch::next(), windows..=MOST_WINDOWS.max(windows)), executors, || {
            struck().iter().all(|times| *times >= TIMES)
        })
    })?;
    std::thread::sleep(Duration::from_secs(8));
    let alive = watch::alive(daemon.pid());
    // Those that were asked for are no failures of ours.
    seen.failures = seen.failures.saturating_sub(ANSWERED * TIMES);
    let mut rows = super::verdict::rows("panics", &seen, alive.then_some(&daemon));
    for (point, times) in POINTS.iter().zip(struck()) {
        let what = format!("panics: of {point} in the log");
        rows.push(Row::is(what, times.to_string(), &format!(">= {TIMES}"), times >= TIMES, TIMES));
    }
    daemon.stop()?;
    Ok(rows)
}

/// Watches while somebody wants the names of the application's stages and tasks: nobody else gives the thread that asks
/// Spark something to do.
fn asked_for_names<T>(daemon: &Daemon, app: &str, watched: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for path in ["stages", "tasks"].iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let _ = daemon.get(&format!("/api/v1/{path}?app={app}&from=-10s"));
                std::thread::sleep(PAUSE);
            }
        });
        let watched = watched();
        done.store(true, Ordering::Relaxed);
        watched
    })
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
