//! What unwind tables take: the memory of those of a JVM and of 50 libraries, and a daemon's start on a node where 200
//! processes run, without and with what it kept on disk.

use super::{Bench, java};
use crate::bench::procfs;
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::oracle::Oracle;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Libraries of this machine, and processes that map some of them.
const LIBRARIES: usize = 50;
const PROCESSES: usize = 200;
/// Libraries of each of these.
const EACH: usize = 4;
/// MB; seconds; of a core.
const JVM_MB: f64 = 8.0;
const LIBRARIES_MB: f64 = 30.0;
const USEFUL_S: f64 = 3.0;
const COMPLETE_S: f64 = 30.0;
const CORE: f64 = 0.5;
/// Longest wait for the daemon to know all.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Its status is told anew each second.
const SETTLED: Duration = Duration::from_millis(2500);

/// Ends with us.
struct Waiting(Vec<Child>);

impl Drop for Waiting {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process that waits, with these libraries mapped.
fn waiting(libraries: &[PathBuf]) -> Result<Child> {
    let all: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
    let mut sleep = Command::new("sleep");
    sleep.arg("600").env("LD_PRELOAD", all.join(":")).stdin(Stdio::null()).stdout(Stdio::null());
    sleep.stderr(Stdio::null()).spawn().context("starting `sleep`")
}

/// The machine's largest libraries that a program can have loaded beside others.
fn libraries() -> Vec<PathBuf> {
    let mut all: Vec<(u64, PathBuf)> = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten())
        .filter(|entry| entry.file_name().to_string_lossy().contains(".so."))
        .filter_map(|entry| Some((entry.metadata().ok().filter(|meta| meta.is_file())?.len(), entry.path())))
        .collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let loads = |path: &PathBuf| {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", path).stdin(Stdio::null());
        command.output().is_ok_and(|done| done.status.success() && done.stderr.is_empty())
    };
    all.into_iter().map(|(_, path)| path).filter(loads).take(LIBRARIES).collect()
}

/// What `status` says of the tables.
fn status(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["unwind_tables"].clone())
}

fn number(status: &Value, what: &str) -> f64 {
    status[what].as_f64().unwrap_or(f64::NAN)
}

/// Waits until nothing is left to be read for a while.
fn settled(daemon: &Daemon) -> Result<Value> {
    let begun = Instant::now();
    let mut quiet = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = status(daemon)?;
        if number(&now, "waiting") != 0.0 {
            quiet = Instant::now();
        }
        if quiet.elapsed() > SETTLED || begun.elapsed() > TIMEOUT {
            return Ok(now);
        }
    }
}

/// Memory.
pub fn memory(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let daemon = Daemon::start(&bench.binary, &bench.work.join("tables-daemon"), None, &[])?;
    let mut rows = Vec::new();
    let mut before = settled(&daemon)?;
    let mut add = |what: &str, after: &Value, before: &Value, aim: f64| {
        let more = |what: &str| number(after, what) - number(before, what);
        let mb = more("table_bytes") / 1e6;
        let figure = format!(
            "{mb:.2} MB: {} files, {} rows, {:.2} bytes a row, {} ms of work",
            more("files"),
            more("rows"),
            more("table_bytes") / more("rows").max(1.0),
            more("build_ms")
        );
        let holds = mb > 0.0 && mb <= aim;
        rows.push(Row::is(
            format!("tables: {what}"),
            figure,
            &format!("aim <= {aim} MB"),
            holds,
            more("files") as usize,
        ));
    };
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "tables") else { continue };
        let oracle = Oracle {
            java: java.command.clone(),
            flags: Vec::new(),
            programs: vec!["digest".to_owned()],
            seconds: 60,
            window_ms: 1000,
        };
        let jvm = oracle.start(&java.place(&bench.classes)?, &bench.work.join("tables.log"))?;
        std::thread::sleep(SETTLED);
        let after = settled(&daemon)?;
        add(&format!("Java {major} and its libraries, beside what runs already"), &after, &before, JVM_MB);
        drop(jvm);
        before = after;
    }
    let libraries = libraries();
    let _running = Waiting(vec![waiting(&libraries)?]);
    std::thread::sleep(SETTLED);
    let after = settled(&daemon)?;
    add(&format!("the largest {} libraries here", libraries.len()), &after, &before, LIBRARIES_MB);
    daemon.stop()?;
    Ok(rows)
}

/// A start with nothing on disk, and the next one.
pub fn restart(bench: &Bench, _: &mut Vec<String>) -> Result<Vec<Row>> {
    let libraries = libraries();
    let mut running = Waiting(Vec::new());
    for nth in 0..PROCESSES {
        let some: Vec<PathBuf> =
            (0..EACH).filter_map(|i| libraries.get((nth + i) % libraries.len().max(1)).cloned()).collect();
        running.0.push(waiting(&some)?);
    }
    std::thread::sleep(Duration::from_secs(2));
    let dir = bench.work.join("restart-daemon");
    let mut rows = Vec::new();
    for what in ["nothing on disk", "tables on disk"] {
        let begun = Instant::now();
        let daemon = Daemon::start(&bench.binary, &dir, None, &[])?;
        let ready = begun.elapsed();
        let (mut useful, mut complete) = (None, None);
        while complete.is_none() && begun.elapsed() < TIMEOUT {
            let now = status(&daemon)?;
            if number(&now, "processes") >= PROCESSES as f64 {
                useful.get_or_insert(begun.elapsed());
                if number(&now, "waiting") == 0.0 {
                    complete = Some((begun.elapsed(), procfs::cpu_seconds(daemon.pid())?, now));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon.stop()?;
        let seconds = |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        let (useful, ready) = (seconds(useful), ready.as_secs_f64());
        let (took, cpu, tables) = complete
            .map_or((f64::INFINITY, f64::NAN, Value::Null), |(t, cpu, all)| (t.as_secs_f64(), cpu, all));
        let figure = format!("useful {useful:.1} s, complete {took:.1} s; ready {ready:.1} s");
        let holds = useful <= USEFUL_S && took <= COMPLETE_S;
        let bar = format!("{USEFUL_S}, {COMPLETE_S} s");
        let on = format!("restart: {PROCESSES} processes, {what}");
        rows.push(Row::is(on.clone(), figure, &bar, holds, number(&tables, "files") as usize));
        let share = cpu / took;
        let figure = format!(
            "{share:.2} of a core: {cpu:.2} s; {} built, {} loaded, {} ms of work",
            tables["built"], tables["loaded"], tables["build_ms"]
        );
        // The verifier's look at the programs is in it.
        rows.push(Row::told(
            format!("{on}, CPU until complete"),
            format!("{figure} (aim {CORE})"),
            PROCESSES,
        ));
    }
    Ok(rows)
}
