//! Frames and shares of each CPython, against a program that tells its own (tests/jobs/python_oracle.py).

use super::{Bench, Rows, VISIBLE_AFTER, WINDOW_MS};
use crate::bench::bpf_stats::BpfStats;
use crate::bench::row::Row;
use crate::bench::stacks::Kernel;
use crate::launch::Daemon;
use crate::oracle::python::{
    self, C_SCENES, Judged, LINES, NUMPY, Part, Plan, Python, Ran, SCENES, SPLIT, Split,
};
use crate::setup::packages;
use anyhow::Result;
use std::path::{Path, PathBuf};
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
        let library = library(bench, python, skipped);
        let python = with_numpy(bench, python, skipped);
        let daemon = bench.daemon(bench.options.hz)?;
        rows.extend(one(bench, &daemon, &python, library.as_deref())?);
        daemon.stop()?;
    }
    Ok(rows)
}

/// The same interpreter, with numpy where it can be had for it and is asked for.
fn with_numpy(bench: &Bench, python: &Python, skipped: &mut Vec<String>) -> Python {
    if !bench.wants(Rows::Numpy) {
        return python.clone();
    }
    let packages = packages::ensure(python.minor, &["numpy"], python.root.as_deref());
    let with = packages.and_then(|packages| {
        let with = Python { packages: Some(packages), ..python.clone() };
        with.imports("numpy")?;
        Ok(with)
    });
    with.unwrap_or_else(|why| {
        skipped.push(format!("numpy {}: {why:#}", python.version));
        python.clone()
    })
}

/// The oracle's C half, where this interpreter can load one and stacks are asked for.
fn library(bench: &Bench, python: &Python, skipped: &mut Vec<String>) -> Option<PathBuf> {
    if !bench.wants(Rows::Frames) {
        return None;
    }
    let library = python::library(python, &bench.work);
    library.inspect_err(|why| skipped.push(format!("oracle {}, with C: {why:#}", python.version))).ok()
}

/// The rows of one interpreter.
fn one(bench: &Bench, daemon: &Daemon, python: &Python, library: Option<&Path>) -> Result<Vec<Row>> {
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
    if library.is_some() {
        scenes.extend(C_SCENES);
    }
    scenes.extend(splits.iter().filter(|split| wanted(split.0)).flat_map(|split| split.1));
    let before = Kernel::read(daemon)?;
    let log = bench.work.join("oracle.log");
    let (each, window) = (Duration::from_secs(bench.options.seconds), Duration::from_millis(WINDOW_MS));
    let plan = Plan { scenes: &scenes, each, window, log: &log, library };
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

/// Of all scenes of stacks but for the first: those of Python alone, and those with C functions in them.
fn frames(daemon: &Daemon, version: &str, ran: &Ran) -> Result<Vec<Row>> {
    let mut sums = [Judged::default(), Judged::default()];
    for scene in ran.scenes.iter().skip(1).filter(|scene| scene.shares.is_empty()) {
        let judged = Judged::of(daemon, ran.pid, scene)?;
        let sum = &mut sums[usize::from(C_SCENES.contains(&scene.name.as_str()))];
        (sum.n, sum.rooted, sum.equal) =
            (sum.n + judged.n, sum.rooted + judged.rooted, sum.equal + judged.equal);
        for (count, other) in judged.others.iter().take(3) {
            println!("   {version} {}: {count} of {} as {}", scene.name, judged.n, tail(other));
        }
    }
    let [python, c] = sums;
    let mut rows = vec![
        Row::share(format!("rooted {version}"), python.rooted + c.rooted, ROOTED, python.n + c.n),
        Row::share(format!("oracle {version}"), python.equal, EQUAL, python.n),
    ];
    if ran.scenes.iter().any(|scene| C_SCENES.contains(&scene.name.as_str())) {
        rows.push(Row::share(format!("oracle {version}, with C"), c.equal, EQUAL, c.n));
    }
    Ok(rows)
}

/// The innermost functions of a stack.
fn tail(names: &str) -> String {
    let all: Vec<&str> = names.split(';').collect();
    all.get(all.len().saturating_sub(8)..).unwrap_or_default().join(";")
}
