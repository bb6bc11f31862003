//! Frames and shares of each CPython, against a program that tells its own (tests/jobs/python_oracle.py).

use super::{Bench, Rows, VISIBLE_AFTER, WINDOW_MS};
use crate::bench::bpf_stats::BpfStats;
use crate::bench::row::Row;
use crate::bench::stacks::Kernel;
use crate::launch::Daemon;
use crate::oracle::python::{self, Judged, LINES, NUMPY, Part, Plan, Python, Ran, SCENES, SPLIT, Split};
use crate::setup::packages;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// Of 100 samples.
const ROOTED: f64 = 99.0;
const EQUAL: f64 = 99.5;
/// Points that a share may be off, beside the sampling error.
const SPLIT_BAR: f64 = 1.0;
/// A scene that is run once more, before all others.
const WARM_UP: &str = "generators";

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let _stats = BpfStats::enable()?;
    let mut rows = Vec::new();
    for python in &bench.pythons {
        let python = with_numpy(bench, python, skipped);
        let daemon = bench.daemon(bench.options.hz)?;
        rows.extend(one(bench, &daemon, &python)?);
        daemon.stop()?;
    }
    Ok(rows)
}

/// The same interpreter, with numpy where it can be had for it and is asked for.
fn with_numpy(bench: &Bench, python: &Python, skipped: &mut Vec<String>) -> Python {
    let mut python = python.clone();
    if bench.wants(Rows::Numpy) {
        match packages::ensure(python.minor, &["numpy"], python.root.as_deref()) {
            Ok(there) if imports_numpy(&python, &there) => python.packages = Some(there),
            Ok(there) => {
                skipped.push(format!("numpy {}: it cannot import {}", python.version, there.display()));
            }
            Err(why) => skipped.push(format!("numpy {}: {why:#}", python.version)),
        }
    }
    python
}

fn imports_numpy(python: &Python, packages: &std::path::Path) -> bool {
    let Some((first, rest)) = python.command.split_first() else { return false };
    let mut command = Command::new(first);
    command.args(rest).args(["-c", "import numpy"]).env("PYTHONPATH", packages);
    command.output().is_ok_and(|output| output.status.success())
}

/// The rows of one interpreter.
fn one(bench: &Bench, daemon: &Daemon, python: &Python) -> Result<Vec<Row>> {
    let version = &python.version;
    let splits = [
        (Rows::Split, &SPLIT[..], "split", Part::Function),
        (Rows::Lines, &LINES, "lines", Part::Line),
        (Rows::Numpy, &NUMPY, "numpy", Part::Numpy),
    ];
    let wanted = |rows| bench.wants(rows) && (rows != Rows::Numpy || python.packages.is_some());
    // Until its tables are built: the first scene is not judged.
    let mut scenes = vec![WARM_UP];
    if bench.wants(Rows::Frames) {
        scenes.extend(SCENES);
    }
    scenes.extend(splits.iter().filter(|split| wanted(split.0)).flat_map(|split| split.1));
    let before = Kernel::read(daemon)?;
    let log = bench.work.join("oracle.log");
    let (each, window) = (Duration::from_secs(bench.options.seconds), Duration::from_millis(WINDOW_MS));
    let plan = Plan { scenes: &scenes, each, window, log: &log };
    let ran = python::run(daemon, python, &plan)?;
    std::thread::sleep(VISIBLE_AFTER);
    let kernel = Kernel::read(daemon)?.since(&before);
    let mut rows = Vec::new();
    for (which, _, scene, part) in splits {
        if !wanted(which) {
            continue;
        }
        let split = Split::by(daemon, &ran, scene, part)?;
        if split.others > 0 {
            println!(
                "   {version} {scene}: {} of {} in none of the two",
                split.others,
                split.n + split.others
            );
        }
        for (part, (seen, truth)) in &split.shares {
            let what = format!("{scene} {version} {part}");
            rows.push(Row::deviation(what, seen * 100.0, truth * 100.0, "%", SPLIT_BAR, split.n as f64));
        }
    }
    if bench.wants(Rows::Frames) {
        rows.extend(frames(daemon, version, &ran)?);
    }
    let (ns, deep) = (kernel.sampling_ns / kernel.samples.max(1.0), kernel.frames / kernel.samples.max(1.0));
    let figure = format!("{ns:.0} ns a sample, {deep:.1} frames walked");
    rows.push(Row::told(format!("cost {version}"), figure, kernel.samples as usize));
    Ok(rows)
}

fn frames(daemon: &Daemon, version: &str, ran: &Ran) -> Result<[Row; 2]> {
    let (mut n, mut rooted, mut equal) = (0, 0, 0);
    for scene in ran.scenes.iter().skip(1).filter(|scene| scene.shares.is_empty()) {
        let judged = Judged::of(daemon, ran.pid, scene)?;
        (n, rooted, equal) = (n + judged.n, rooted + judged.rooted, equal + judged.equal);
        for (count, other) in judged.others.iter().take(3) {
            println!("   {version} {}: {count} of {} as {}", scene.name, judged.n, tail(other));
        }
    }
    Ok([
        Row::share(format!("rooted {version}"), rooted, ROOTED, n),
        Row::share(format!("oracle {version}"), equal, EQUAL, n),
    ])
}

/// The innermost functions of a stack.
fn tail(names: &str) -> String {
    let all: Vec<&str> = names.split(';').collect();
    all.get(all.len().saturating_sub(8)..).unwrap_or_default().join(";")
}
