//! Python stacks of interpreters without any flag, against a program that tells its own (tests/jobs/python_oracle.py): frame
//! by frame, with callbacks from C, C functions in between, generators and coroutines. `cargo xtask bench python` asks the
//! same of every CPython of the machine, and more.
//!
//! Needs root and the optimised daemon; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, skip, wait_visible};
use std::path::Path;
use std::time::Duration;
use xtask::oracle::python::{self, C_SCENES, Judged, Plan, Python, SCENES, SPLIT, Split};

const TEST: &str = "python_stacks_are_as_their_threads_tell_them";
/// Windows of the daemon; scenes begin and end with one, and one lies between.
const WINDOW: Duration = Duration::from_secs(1);
/// Far from what the kernel's tick (250 or 1,000 a second) goes into: beside other work the program's turns begin and end with
/// a tick, and samples that keep pace with it see the same part of each turn for a third of a second.
const HZ: &str = "701";
/// Scenes that are run once more, before all others: unwind tables are built when a stack first leads through a file, and
/// coroutines lead through a library of their own (`_asyncio`). Until one is there, stacks are cut. One of those with C
/// functions, which lead through libffi, is the third.
const WARM_UP: [&str; 2] = ["generators", "coroutines"];
/// Of the samples of a scene, as told.
const BAR: f64 = 0.995;
/// Points that a share of two functions may be off, beside the sampling error.
const SPLIT_BAR: f64 = 0.01;

#[test]
fn python_stacks_are_as_their_threads_tell_them() -> Result<()> {
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let mut pythons = python::pythons();
    // Of each way to group frames one: up to 3.10, 3.11, from 3.12 on, 3.14.
    pythons.dedup_by_key(|python| if python.minor < 14 { python.minor.clamp(10, 12) } else { 14 });
    if pythons.is_empty() {
        skip(TEST, "no CPython from 3.8 on");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "1s", "--hz", HZ])?;
    // Two at a time: between its scenes a program sleeps as long as a scene takes.
    for pair in pythons.chunks(2) {
        std::thread::scope(|scope| {
            let judged: Vec<_> =
                pair.iter().map(|python| scope.spawn(|| as_told(&daemon, python, dir.path()))).collect();
            judged
                .into_iter()
                .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn as_told(daemon: &Daemon, python: &Python, dir: &Path) -> Result<()> {
    let dir = dir.join(&python.version);
    std::fs::create_dir(&dir)?;
    let library = python::library(python, &dir);
    let library = library.inspect_err(|why| skip(TEST, &format!("{}, with C: {why:#}", python.version))).ok();
    let with_c: &[&str] = if library.is_some() { &C_SCENES } else { &[] };
    let warm_up: Vec<&str> = WARM_UP.iter().chain(with_c.first()).copied().collect();
    // So many samples of two functions that chance is beyond the bar in one run of thousands.
    let split = [SPLIT; 4];
    let scenes = warm_up.iter().chain(&SCENES).chain(with_c).chain(split.as_flattened());
    let scenes: Vec<&str> = scenes.copied().collect();
    let log = dir.join("oracle.log");
    let library = library.as_deref();
    let plan = Plan { scenes: &scenes, each: WINDOW, window: WINDOW, log: &log, library };
    let ran = python::run(daemon, python, &plan)?;
    let ended = ran.scenes.iter().map(|scene| scene.range.1).max().context("no scene has run")?;
    wait_visible(daemon, ended)?;
    for scene in ran.scenes.iter().skip(warm_up.len()).filter(|scene| scene.shares.is_empty()) {
        judge(python, scene, &Judged::of(daemon, ran.pid, scene)?)?;
    }
    let split = Split::of(daemon, &ran)?;
    println!("{} {split:?}", python.version);
    let bar = SPLIT_BAR + 0.7 / (split.n.max(1) as f64).sqrt();
    let off = split.shares.values().any(|(seen, truth)| (seen - truth).abs() > bar);
    ensure!(!off && split.n > 0, "{}: {split:?}", python.version);
    Ok(())
}

fn judge(python: &Python, scene: &python::Scene, judged: &Judged) -> Result<()> {
    let (version, name, n) = (&python.version, &scene.name, judged.n);
    println!("{version} {name}: {} of {n} as told, {} rooted", judged.equal, judged.rooted);
    ensure!(n > 100, "{version} {name}: {n} samples");
    let others: Vec<_> = judged.others.iter().take(5).collect();
    let right = judged.equal as f64 >= BAR * n as f64;
    ensure!(right, "{version} {name}: {} of {n} as told ({:?}), not {others:#?}", judged.equal, scene.stack);
    Ok(())
}
