//! Pauses of JVMs against the JVM's own log (tests/jobs/Pauses.java): when, how long, and what for; and how much of them fell
//! into a task. And a JVM whose libjvm does not tell.

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, jdk, skip, stripped_libjvm, wait_for, wait_visible};
use std::path::Path;
use std::time::Duration;
use xtask::launch::pauses::{compare, median_and_worst, program};

const SOON: Duration = Duration::from_secs(180);
/// Of the pauses' length, what may be missing in the task: it begins a moment after the work, and ends before.
const SHARE: f64 = 0.05;
/// Seconds.
const MOMENT: f64 = 0.15;
/// Seconds of work.
const WORK: u32 = 8;
/// Of begin and end, microseconds, at the median. A VM thread that had to wait for a CPU between the JVM's own look at the
/// clock and the probe is off by as long: `xtask bench kinds --rows gc` tells how many are.
const WITHIN: f64 = 200.0;
/// Pauses that are looked for are as long, at the least; of ZGC, whose whole art is that they are short, as long as the second.
const LEAST: [Duration; 2] = [Duration::from_millis(1), Duration::from_micros(50)];

#[test]
fn pauses_of_jdk_17() -> Result<()> {
    let Some(here) = Here::or_skip("pauses_of_jdk_17") else { return Ok(()) };
    pauses(&here, &here.java, &["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseZGC"])
}

#[test]
fn pauses_of_jdk_11() -> Result<()> {
    let test = "pauses_of_jdk_11";
    let Some((here, java)) = Here::or_skip(test).zip(jdk(test, 11)) else { return Ok(()) };
    pauses(&here, &java, &["-XX:+UseG1GC"])
}

#[test]
fn pauses_of_jdk_25() -> Result<()> {
    let test = "pauses_of_jdk_25";
    let Some((here, java)) = Here::or_skip(test).zip(jdk(test, 25)) else { return Ok(()) };
    pauses(&here, &java, &["-XX:+UseG1GC", "-XX:+UseZGC"])
}

#[test]
fn a_stripped_jvm_says_that_its_pauses_are_not_known() -> Result<()> {
    let test = "a_stripped_jvm_says_that_its_pauses_are_not_known";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let Some(server) = stripped_libjvm(&here.java, &dir.path().join("jdk"))? else {
        skip(test, "strip of binutils is not there");
        return Ok(());
    };
    let daemon = here.daemon(dir.path(), &[])?;
    let stripped = program(&here.java, 1, 1).flag(format!("-XXaltjvm={}", server.display()));
    let mut java = stripped.start(dir.path())?;
    java.wait_fact("ready", SOON)?;
    let says = wait_for("its state", SOON, || {
        let jvm = daemon.jvm(java.pid())?;
        let says = jvm["pauses_say"].to_string();
        // Before, it was still starting.
        Ok((jvm["pauses"] == "none" && says.contains("record_safepoint_begin")).then_some(says))
    })?;
    println!("{says}");
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn pauses(here: &Here, home: &Path, collectors: &[&str]) -> Result<()> {
    for collector in collectors {
        let dir = tempfile::tempdir()?;
        let daemon = here.daemon(dir.path(), &["--window", "2s"])?;
        let program = program(home, WORK, 60).flag(*collector).flag("-Xmx256m");
        let mut java = program.start(dir.path())?;
        java.wait_fact("ready", SOON)?;
        let pid = java.pid();
        wait_for("probes on its libjvm", SOON, || Ok((daemon.jvm(pid)?["pauses"] == "probe").then_some(())))?;
        let from = WallTime::now().as_millis();
        std::fs::write(dir.path().join("go"), "")?;
        java.wait_fact("done", SOON)?;
        let until = WallTime::now().as_millis();
        wait_visible(&daemon, until)?;
        let range = format!("pid={pid}&from={from}&until={until}");
        let answer = daemon.json(&format!("/api/v1/pauses?{range}&limit=100000"))?;
        let least = LEAST[usize::from(collector.ends_with("ZGC"))];
        let compared = compare(dir.path(), &answer, until, least)?;
        let ((begin, worst_begin), (end, worst_end)) =
            (median_and_worst(&compared.begin), median_and_worst(&compared.end));
        println!(
            "{collector}: {} pauses over {least:?}, {} missing, {} of another cause; begin within {begin:.0} us at the median, \
             {worst_begin:.0} us at worst, end {end:.0} and {worst_end:.0} us",
            compared.logged,
            compared.missing.len(),
            compared.otherwise.len()
        );
        ensure!(compared.logged >= 3, "the JVM's log has {} pauses", compared.logged);
        ensure!(compared.missing.is_empty(), "{collector}: {:?}", compared.missing);
        ensure!(compared.otherwise.is_empty(), "{collector}: another cause: {:?}", compared.otherwise);
        ensure!(begin <= WITHIN, "{collector}: {:?}", compared.begin);
        ensure!(end <= WITHIN, "{collector}: {:?}", compared.end);
        let kept = answer["seconds"].as_f64().context("seconds")?;
        share_of_the_task(&daemon, &range, kept, collector)?;
        if *collector == "-XX:+UseG1GC" {
            compilers(&daemon, pid)?;
        }
        std::fs::write(dir.path().join("stop"), "")?;
        ensure!(daemon.stop()?.success());
    }
    Ok(())
}

/// What the JVM's compilers did, by its own counts: it computed for seconds in methods that were interpreted first. The first look
/// at it may have been before.
fn compilers(daemon: &Daemon, pid: u32) -> Result<()> {
    let (compilations, deoptimizations) = wait_for("what it compiled", SOON, || {
        let jvm = daemon.jvm(pid)?;
        let counts = jvm["compilations"].as_u64().zip(jvm["deoptimizations"].as_u64());
        Ok(counts.filter(|(compilations, _)| *compilations >= 10))
    })?;
    println!("{compilations} compilations, {deoptimizations} deoptimisations");
    ensure!(compilations < 1_000_000, "{compilations} compilations");
    ensure!(deoptimizations < 1_000_000, "{deoptimizations} deoptimisations");
    Ok(())
}

/// The task ran all the time, so that all pauses fell into it.
fn share_of_the_task(daemon: &Daemon, range: &str, kept: f64, collector: &str) -> Result<()> {
    let stages = daemon.json(&format!("/api/v1/stages?{range}&join=no"))?;
    let exact = &stages["stages"][0]["exact"];
    let figure = |name: &str| exact[name].as_f64().with_context(|| format!("no {name} in {stages}"));
    let (paused, wall) = (figure("paused_seconds")?, figure("wall_seconds")?);
    println!("{collector}: {paused:.3} s of the task's {wall:.3} s fell into pauses, of {kept:.3} s in all");
    ensure!(paused <= wall, "{stages}");
    ensure!((paused - kept).abs() <= kept * SHARE + MOMENT, "{paused} s, {kept} s of pauses");
    Ok(())
}
