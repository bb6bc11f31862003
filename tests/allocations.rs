//! What a JVM's threads allocate, by class and method, against what the JVM has on their accounts
//! (tests/jobs/Allocates.java); and a JVM whose libjvm does not tell.

use anyhow::{Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, Running, jdk, skip, stripped_libjvm, wait_for, wait_visible};
use std::path::Path;
use std::time::Duration;
use xtask::launch::allocates::{MIXED, PARTS, program};

const SOON: Duration = Duration::from_secs(180);
/// What a thread allocates of the first class, MB: in all some 7,000 periods.
const MB: u32 = 1024;
/// Of what the JVM counts of a class: three standard errors of some thousand samples.
const WITHIN: f64 = 0.10;
/// The same of all that it counts.
const ALL_WITHIN: f64 = 0.05;
/// Standard errors of the classes' objects, in units of that of objects of one size: arrays of bytes have all sizes from 32 to 8,223
/// (the root of their mean size times the mean of one over it), and of 200 arrays of Strings one takes most of the bytes.
const ERRORS: [f64; 3] = [1.7, 1.0, 3.2];
/// What the smallest objects among large ones may have too much of: what is in a buffer when a collection takes it is told of the next
/// object, which is mostly one of these. Parallel's buffers have some MB.
const COLLECTED: [f64; 4] = [0.5, 0.0, 0.0, 0.0];
/// Of a method's bytes, those of its class. The rest has no name.
const OF_ITS_CLASS: f64 = 0.97;
/// Of what is counted, what has its method at the least: on a crowded machine a stack may come up before the names of code that is
/// compiled anew can be read.
const NAMED: f64 = 0.4;

#[test]
fn allocations_of_jdk_17() -> Result<()> {
    let Some(here) = Here::or_skip("allocations_of_jdk_17") else { return Ok(()) };
    allocations(&here, &here.java, "-XX:+UseG1GC")
}

#[test]
fn allocations_of_jdk_25() -> Result<()> {
    let test = "allocations_of_jdk_25";
    let Some((here, java)) = Here::or_skip(test).zip(jdk(test, 25)) else { return Ok(()) };
    allocations(&here, &java, "-XX:+UseParallelGC")
}

#[test]
fn a_stripped_jvm_says_that_its_allocations_are_not_known() -> Result<()> {
    let test = "a_stripped_jvm_says_that_its_allocations_are_not_known";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let Some(server) = stripped_libjvm(&here.java, &dir.path().join("jdk"))? else {
        skip(test, "strip of binutils is not there");
        return Ok(());
    };
    let daemon = here.daemon(dir.path(), &["--events", "cpu,alloc"])?;
    let stripped = program(&here.java, 1).flag(format!("-XXaltjvm={}", server.display()));
    let mut java = stripped.start(dir.path())?;
    java.wait_fact("ready", SOON)?;
    let says = wait_for("its state", SOON, || {
        let jvm = daemon.jvm(java.pid())?;
        let says = jvm["allocations_say"].to_string();
        // One that was met as it started is asked again.
        Ok((jvm["allocations"] == "none" && !says.contains("still starting")).then_some(says))
    })?;
    ensure!(says.contains("AllocTracer"), "{says}");
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn allocations(here: &Here, home: &Path, collector: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--events", "cpu,alloc", "--window", "2s"])?;
    // What was recorded just before classes are unloaded is `[unloaded]`: a part of this program lasts no longer than it takes to
    // read names.
    let program = program(home, MB).flag(collector).flag("-Xmx1g").flag("-XX:-ClassUnloading");
    let mut java = program.start(dir.path())?;
    java.wait_fact("ready", SOON)?;
    let pid = java.pid();
    wait_for("probes on its libjvm", SOON, || {
        let jvm = daemon.jvm(pid)?;
        Ok((jvm["allocations"] == "probe" && jvm["stacks"] == "code_tables").then_some(()))
    })?;
    let from = WallTime::now().as_millis();
    std::fs::write(dir.path().join("go"), "")?;
    java.wait_fact("done", SOON)?;
    let until = WallTime::now().as_millis();
    wait_visible(&daemon, until)?;
    let query = format!("pid={pid}&from={from}&until={until}");
    let bytes = folded(&daemon, &query, "alloc", "bytes")?;
    let mut wrong = Vec::new();
    let (mut sampled, mut counted) = (0.0, 0.0);
    for part in PARTS {
        let (truth, found) = (part.counted(&java)?, part.sampled(&bytes)?);
        println!("{part:?}: {found:?}, {truth} counted");
        (sampled, counted) = (sampled + found.of_class, counted + truth);
        let amount = (found.of_class - truth).abs() <= truth * WITHIN;
        let place = found.in_method >= truth * NAMED && found.in_method <= truth * (1.0 + WITHIN);
        if !amount || !place || found.both < found.in_method * OF_ITS_CLASS {
            wrong.push(format!("{part:?}: {found:?}, {truth} counted"));
        }
    }
    println!("{sampled} bytes sampled, {counted} counted");
    let body: String = bytes.chars().take(6_000).collect();
    ensure!(wrong.is_empty(), "{}\n{body}", wrong.join("\n"));
    ensure!((sampled - counted).abs() <= counted * ALL_WITHIN, "{sampled} bytes of {counted}\n{body}");
    objects(&daemon, &java, &query)?;
    mixed(&daemon, &java, &query, &bytes)?;
    std::fs::write(dir.path().join("stop"), "")?;
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// Folded stacks of a kind, in a unit.
fn folded(daemon: &Daemon, query: &str, kind: &str, unit: &str) -> Result<String> {
    let reply = daemon.get(&format!("/api/v1/flamegraph?{query}&type={kind}&unit={unit}&format=folded"))?;
    ensure!(reply.status == 200, "{}", reply.body);
    Ok(reply.body)
}

/// Bytes of objects of 48 bytes to 580 KB, one among the other, of which some fit into their thread's buffer unseen, and some do not.
fn mixed(daemon: &Daemon, java: &Running, query: &str, bytes: &str) -> Result<()> {
    let samples = folded(daemon, query, "alloc", "samples")?;
    let (mut parts, mut sums) = (Vec::new(), [0.0; 2]);
    for (part, collected) in MIXED.into_iter().zip(COLLECTED) {
        let (truth, found) = (part.counted(java)?, part.sampled(bytes)?.both);
        let samples = part.sampled(&samples)?.both;
        println!("{part:?}: {found} bytes of {samples} samples, {truth} counted: {:.3}", found / truth);
        sums = [sums[0] + found, sums[1] + truth];
        parts.push((part, truth, found, WITHIN + 3.0 / samples.max(1.0).sqrt(), collected));
    }
    let mut wrong = Vec::new();
    for (part, truth, found, slack, collected) in parts {
        // Where a method was compiled anew, its older code has no name in some runs.
        if found > truth * (1.0 + slack + collected) {
            wrong.push(format!("{part:?}: {found} bytes, {truth} counted"));
        }
        // By what was seen of all, each has its part.
        let (truth, found) = (truth / sums[1], found / sums[0].max(1.0));
        if found < truth * (1.0 - slack) || found > truth * (1.0 + slack + collected) {
            wrong.push(format!("{part:?}: {found:.3} of all bytes, not {truth:.3}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// There are as many objects of each class as the program made, but for three standard errors and what bytes are off, too.
fn objects(daemon: &Daemon, java: &Running, query: &str) -> Result<()> {
    let of = |unit| folded(daemon, query, "alloc-objects", unit);
    let (objects, samples) = (of("objects")?, of("samples")?);
    let mut wrong = Vec::new();
    for (part, error) in PARTS.into_iter().zip(ERRORS) {
        let (truth, found) = (part.objects(java)?, part.sampled(&objects)?.of_class);
        let samples = part.sampled(&samples)?.of_class;
        let slack = WITHIN + 3.0 * error / samples.max(1.0).sqrt();
        println!("{part:?}: {found} objects of {samples} samples, {truth} counted");
        if (found - truth).abs() > truth * slack {
            wrong.push(format!("{part:?}: {found} objects of {samples} samples, {truth} counted"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
