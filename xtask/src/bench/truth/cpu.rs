//! `bench truth`: whether the picture is true.
//!
//! 1. A Spark job keeps both executors busy. For each of its JVMs: samples x period over a minute of
//!    whole windows, against what /proc/PID/stat says the process used between the same two instants.
//! 2. A Java program whose CPU time splits 70 to 30 by construction ([`Split.java`]): the share seen.
//! 3. Of all frames of the executors that lie in JIT code, the share that has a name.
//!
//! A deviation is within its bar when it is at most the bar plus 0.7/sqrt(n), n being the samples that
//! the figure rests on; both are printed.
//!
//! [`Split.java`]: ../../../../tests/jobs/Split.java

use super::procfs;
use crate::launch::{Daemon, JavaProgram, SparkJob, spark::FRAME_POINTERS};
use crate::setup::SparkKit;
use crate::{build, places, setup};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length of a window, in milliseconds.
const WINDOW_MS: u64 = 10_000;
/// A closed window is visible after the grace for late samples and the naming of its stacks.
const VISIBLE_AFTER: Duration = Duration::from_secs(8);
const TIMEOUT: Duration = Duration::from_secs(180);

#[derive(Parser)]
#[command(name = "truth", about = "Samples against /proc CPU time, a known split, names of JIT frames")]
struct Options {
    /// Windows of ten seconds to measure over
    #[arg(long, default_value_t = 6)]
    windows: u64,
    /// Samples a second and CPU
    #[arg(long, default_value_t = 99)]
    hz: u32,
}

/// A line of the table.
struct Row {
    what: String,
    seen: f64,
    truth: f64,
    unit: &'static str,
    /// Deviation allowed, in percent (of the truth, or points of a share).
    bar: f64,
    deviation: f64,
    samples: f64,
}

impl Row {
    /// 0.7/sqrt(n), in percent.
    fn sampling_error(&self) -> f64 {
        70.0 / self.samples.max(1.0).sqrt()
    }

    fn holds(&self) -> bool {
        self.deviation.abs() <= self.bar + self.sampling_error()
    }
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options = Options::parse_from(std::iter::once("truth".to_owned()).chain(arguments.iter().cloned()));
    let tools = setup::spark()?;
    let binary = build::run()?;
    let work = places::target().join("bench/truth");
    let _ = std::fs::remove_dir_all(&work);
    let hz = options.hz.to_string();
    let daemon = Daemon::start(&binary, &work.join("daemon"), None, &["--hz", &hz])?;
    let mut rows = cpu_time(&daemon, &options, &tools, &work.join("spark"))?;
    rows.extend(split(&daemon, &options, &tools, &work.join("split"))?);
    println!(
        "{:<44} {:>12} {:>12} {:>10} {:>16} {:>9}  holds",
        "figure", "seen", "truth", "deviation", "bar + error", "samples"
    );
    for row in &rows {
        println!(
            "{:<44} {:>9.3} {:<2} {:>9.3} {:<2} {:>+9.2}% {:>7.2} + {:>5.2}% {:>9.0}  {}",
            row.what,
            row.seen,
            row.unit,
            row.truth,
            row.unit,
            row.deviation,
            row.bar,
            row.sampling_error(),
            row.samples,
            if row.holds() { "yes" } else { "NO" }
        );
    }
    let lost = daemon.json("/api/v1/flamegraph?format=json")?["quality"]["lost"].clone();
    println!("lost samples: {lost}");
    daemon.stop()?;
    match rows.iter().filter(|row| !row.holds()).count() {
        0 => Ok(()),
        n => bail!("{n} figures are outside their bars"),
    }
}

/// Sleeps to the next start of a window, measures there, and again `windows` later.
fn over_windows<T>(windows: u64, mut measure: impl FnMut() -> Result<T>) -> Result<(u64, u64, T, T)> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    let from = now() / WINDOW_MS * WINDOW_MS + WINDOW_MS;
    let until = from + windows * WINDOW_MS;
    let sleep_until = |t: u64| std::thread::sleep(Duration::from_millis(t.saturating_sub(now())));
    sleep_until(from);
    let before = measure()?;
    sleep_until(until);
    let after = measure()?;
    std::thread::sleep(VISIBLE_AFTER);
    Ok((from, until, before, after))
}

/// The answer for a selection, as JSON.
fn selected(daemon: &Daemon, selection: &str, from: u64, until: u64) -> Result<Value> {
    daemon.json(&format!("/api/v1/flamegraph?{selection}&from={from}&until={until}&format=json"))
}

fn cpu_time(daemon: &Daemon, options: &Options, tools: &SparkKit, work: &Path) -> Result<Vec<Row>> {
    std::fs::create_dir_all(work).with_context(|| format!("creating {}", work.display()))?;
    let mut job =
        SparkJob::new("fixed_work.py", &tools.venv, &tools.jdk.home, work).arg("20000000").start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    let executors: Vec<u32> = job
        .fact("executors")
        .context("the job names no executors")?
        .split(',')
        .filter_map(|pid| pid.parse().ok())
        .collect();
    // More runs than fit into the time.
    for run in 1..=1000 {
        std::fs::write(work.join(format!("go.{run}")), "").context("starting a run")?;
    }
    let read = || executors.iter().map(|pid| procfs::cpu_seconds(*pid)).collect::<Result<Vec<_>>>();
    let (from, until, before, after) = over_windows(options.windows, read)?;
    let mut rows = Vec::new();
    for (i, pid) in executors.iter().enumerate() {
        let answer = selected(daemon, &format!("pid={pid}"), from, until)?;
        let samples = answer["quality"]["samples"].as_f64().context("no samples in the answer")?;
        let seen = samples / f64::from(options.hz);
        let truth = after[i] - before[i];
        rows.push(Row {
            what: format!("executor {pid}: samples x period"),
            seen,
            truth,
            unit: "s",
            bar: 1.0,
            deviation: (seen / truth - 1.0) * 100.0,
            samples,
        });
    }
    let answer = selected(daemon, &format!("app={app}&role=executor"), from, until)?;
    println!("executors' quality: {}", answer["quality"]);
    let (named, unnamed) = jit_frames(&answer);
    let share = named / (named + unnamed).max(1.0) * 100.0;
    println!("frames in the executors' JIT code: {share:.3} % of {:.0} named (bar 99)", named + unnamed);
    if share < 99.0 {
        bail!("fewer than 99 % of the frames in JIT code have a name");
    }
    Ok(rows)
}

/// Frames of all samples that lie in a JVM's code cache: those with a name, and those without.
fn jit_frames(answer: &Value) -> (f64, f64) {
    let kinds = ["java", "java-inlined", "java-interpreted", "stub"];
    let nodes = answer["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let in_jit = nodes.iter().filter(|node| kinds.iter().any(|kind| node["kind"] == *kind));
    let named = in_jit.filter_map(|node| node["total"].as_f64()).sum();
    let reasons = ["no perf map", "not in perf map", "jvm not asked"];
    let unnamed = reasons.iter().filter_map(|reason| answer["quality"]["unnamed"][*reason].as_f64()).sum();
    (named, unnamed)
}

fn split(daemon: &Daemon, options: &Options, tools: &SparkKit, work: &Path) -> Result<Vec<Row>> {
    std::fs::create_dir_all(work).with_context(|| format!("creating {}", work.display()))?;
    let source = std::fs::read_to_string(places::workspace().join("tests/jobs/Split.java"))
        .context("reading tests/jobs/Split.java")?;
    let seconds = options.windows * WINDOW_MS / 1000 + 30;
    let mut program = JavaProgram::new("Split", &source, &tools.jdk.home)
        .flag(FRAME_POINTERS)
        .flag("-XX:CompileCommand=quiet")
        .flag("-XX:CompileCommand=dontinline,Split::*")
        .arg(seconds.to_string())
        .start(work)?;
    let pid: u32 = program.wait_fact("started", TIMEOUT)?.parse().context("the program's pid")?;
    // Past the interpreter and the first compilations.
    std::thread::sleep(Duration::from_secs(3));
    let (from, until, before, after) = over_windows(options.windows, || procfs::cpu_seconds(pid))?;
    let reply =
        daemon.get(&format!("/api/v1/flamegraph?pid={pid}&from={from}&until={until}&format=folded"))?;
    let total = |part: &str| -> f64 {
        reply
            .body
            .lines()
            .filter(|line| line.contains(part))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum()
    };
    let (seven, three, all) = (total(";Split.seven"), total(";Split.three"), total(""));
    let both = seven + three;
    if both == 0.0 {
        bail!("no sample of Split.seven or Split.three among {all} samples:\n{}", reply.body);
    }
    let share = seven / both * 100.0;
    let (seen, truth) = (all / f64::from(options.hz), after - before);
    Ok(vec![
        Row {
            what: "70/30 split: share of the 70".to_owned(),
            seen: share,
            truth: 70.0,
            unit: "%",
            bar: 1.0,
            deviation: share - 70.0,
            samples: both,
        },
        Row {
            what: "its JVM: samples x period".to_owned(),
            seen,
            truth,
            unit: "s",
            bar: 1.0,
            deviation: (seen / truth - 1.0) * 100.0,
            samples: all,
        },
    ])
}
