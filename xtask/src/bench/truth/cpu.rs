//! Samples against the CPU time that the kernel accounts to each JVM, and the share of JIT frames that have a
//! name: a Spark job keeps both executors busy, and /proc/PID/stat is read at both ends of a minute of whole
//! windows.

use super::row::Row;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::clock::over_windows;
use crate::launch::SparkJob;
use anyhow::{Context as _, Result};
use serde_json::Value;

/// Measures.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let (daemon, work) = (&bench.daemon, bench.work.join("spark"));
    let mut job = SparkJob::new("fixed_work.py", &bench.kit.venv, &bench.kit.jdk.home, &work)
        .arg("20000000")
        .start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    let executors = job.fact("executors").context("the job names no executors")?;
    let executors: Vec<u32> = executors.split(',').filter_map(|pid| pid.parse().ok()).collect();
    // More runs than fit into the time.
    for run in 1..=1000 {
        std::fs::write(work.join(format!("go.{run}")), "").context("starting a run")?;
    }
    let read = || executors.iter().map(|pid| procfs::cpu_seconds(*pid)).collect::<Result<Vec<_>>>();
    let (from, until, before, after) = over_windows(bench.options.windows, read)?;
    let selected = |selection: &str| {
        daemon.json(&format!("/api/v1/flamegraph?{selection}&from={from}&until={until}&format=json"))
    };
    let mut rows = Vec::new();
    for (i, pid) in executors.iter().enumerate() {
        let answer = selected(&format!("pid={pid}"))?;
        let samples = answer["quality"]["samples"].as_f64().context("no samples in the answer")?;
        let seen = samples / f64::from(bench.options.hz);
        let what = format!("cpu: executor {pid}, samples x period against /proc");
        rows.push(Row::deviation(what, seen, after[i] - before[i], "s", 1.0, samples));
    }
    let answer = selected(&format!("app={app}&role=executor"))?;
    println!("executors' quality: {}", answer["quality"]);
    let (named, unnamed) = jit_frames(&answer);
    let what = "cpu: frames in the executors' JIT code that have a name";
    rows.push(Row::share(what, named as usize, 99.0, (named + unnamed) as usize));
    Ok(rows)
}

/// Frames of all samples that lie in a JVM's code cache: those with a name, and those without.
fn jit_frames(answer: &Value) -> (u64, u64) {
    let kinds = ["java", "java-inlined", "java-interpreted", "stub"];
    let nodes = answer["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let in_jit = nodes.iter().filter(|node| kinds.iter().any(|kind| node["kind"] == *kind));
    let named = in_jit.filter_map(|node| node["total"].as_u64()).sum();
    let reasons = ["no perf map", "not in perf map", "jvm not asked", "jvm not ready"];
    let unnamed = reasons.iter().filter_map(|reason| answer["quality"]["unnamed"][*reason].as_u64()).sum();
    (named, unnamed)
}
