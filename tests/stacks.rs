//! Java stacks of JVMs without any flag, against programs that tell their own (tests/jobs/oracle): frame by frame,
//! inlined frames included. `cargo xtask bench stacks` asks the same of every JDK, and more.
//!
//! Needs root and the optimised daemon; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, jdk, wait_visible};
use std::path::Path;
use xtask::oracle::{Oracle, Report, Told, program, stacks};

/// Windows of the daemon; programs begin and end with one.
const WINDOW_MS: u64 = 2_000;
/// Of the samples of a program, as told.
const BAR: f64 = 0.99;

/// Compiled and inlined code as it comes, and what only the interpreter runs.
const MIXED: [&str; 4] = ["deep300", "lambdas", "inlined", "exceptions"];
const INTERPRETED: [&str; 2] = ["deep300", "lambdas"];

#[test]
fn stacks_of_java_17_are_as_its_threads_tell_them() -> Result<()> {
    as_told("stacks_of_java_17_are_as_its_threads_tell_them", 17)
}

#[test]
fn stacks_of_java_25_are_as_its_threads_tell_them() -> Result<()> {
    as_told("stacks_of_java_25_are_as_its_threads_tell_them", 25)
}

fn as_told(test: &str, major: u32) -> Result<()> {
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let Some(home) = jdk(test, major) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let classes = program::compile(&here.java, dir.path())?;
    let daemon = here.daemon(dir.path(), &["--window", "2s", "--hz", "499", "--store-bytes", "256MiB"])?;
    for (flags, programs) in [(&[][..], &MIXED[..]), (&["-Xint"][..], &INTERPRETED[..])] {
        run(&daemon, &home, &classes, dir.path(), flags, programs)?;
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// Runs programs in one JVM and holds each to its bar.
fn run(
    daemon: &Daemon,
    home: &Path,
    classes: &Path,
    dir: &Path,
    flags: &[&str],
    programs: &[&str],
) -> Result<()> {
    let oracle = Oracle {
        java: vec![home.join("bin/java").display().to_string()],
        flags: program::TELL_ALL.iter().chain(flags).map(|flag| (*flag).to_owned()).collect(),
        programs: programs.iter().map(|name| (*name).to_owned()).collect(),
        seconds: 4,
        window_ms: WINDOW_MS,
    };
    let ran = oracle.run(classes, &dir.join("oracle.log"))?;
    let ended = ran.told.iter().filter_map(|told| told.range.as_ref().ok()).map(|(_, until)| *until).max();
    wait_visible(daemon, ended.context("no program has run")?)?;
    for Told { name, range, truth } in &ran.told {
        let (from, until) = range.clone().map_err(anyhow::Error::msg)?;
        let query = format!("pid={}&from={from}&until={until}&group=thread_class&annotate=1", ran.jvm.pid());
        let answer = daemon.json(&format!("/api/v1/flamegraph?{query}&format=json"))?;
        let mut report = Report::default();
        report.add(truth, &stacks(&answer));
        println!(
            "{flags:?} {name}: {} of {} as told, {} of them borrowed at the leaf",
            report.right(),
            report.n(),
            report.borrowed
        );
        let differences = report.worst(10);
        ensure!(report.n() > 200, "{name}: {} samples; ends {}", report.n(), answer["quality"]["ends"]);
        ensure!(
            report.right() as f64 >= BAR * report.n() as f64,
            "{flags:?} {name}: {} of {} are as told; ends {}; {differences:#?}",
            report.right(),
            report.n(),
            answer["quality"]["ends"]
        );
    }
    Ok(())
}
