//! What unwind tables take: the memory of those of a JVM and of 50 libraries, and a daemon's start on a node where 200
//! processes run, without and with what it kept on disk.

use super::{Bench, java};
use crate::bench::procfs;
use crate::bench::row::Row;
use crate::launch::Daemon;
use crate::oracle::Oracle;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
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
    let mut sleep = Command::new("sleep");
    sleep.arg("600").env("LD_PRELOAD", preloaded(libraries)).stdin(Stdio::null()).stdout(Stdio::null());
    sleep.stderr(Stdio::null()).spawn().context("starting `sleep`")
}

/// The machine's largest libraries that a program can have loaded beside others: a sanitizer's, for one, ends a
/// process where it does not come first.
fn libraries() -> Vec<PathBuf> {
    let mut all: Vec<(u64, PathBuf)> = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten())
        .filter(|entry| entry.file_name().to_string_lossy().contains(".so."))
        .filter_map(|entry| Some((entry.metadata().ok().filter(|meta| meta.is_file())?.len(), entry.path())))
        .collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let loads = |paths: &[PathBuf]| {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", preloaded(paths)).stdin(Stdio::null());
        command.output().is_ok_and(|done| done.status.success() && done.stderr.is_empty())
    };
    let mut taken: Vec<PathBuf> = Vec::new();
    for (_, path) in all {
        let first = std::slice::from_ref(&path);
        if taken.len() < LIBRARIES && loads(first) && loads(&[&taken[..], first].concat()) {
            taken.push(path);
        }
    }
    taken
}

fn preloaded(libraries: &[PathBuf]) -> String {
    let all: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
    all.join(":")
}

/// What `status` says of the tables.
fn status(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["unwind_tables"].clone())
}

fn number(status: &Value, what: &str) -> f64 {
    status[what].as_f64().unwrap_or(f64::NAN)
}

/// Waits until nothing is left to be read for a while, or as long as is sensible where others start programs all the
/// time.
fn settled(daemon: &Daemon) -> Result<()> {
    let begun = Instant::now();
    let mut quiet = Instant::now();
    while quiet.elapsed() < SETTLED && begun.elapsed() < TIMEOUT / 2 {
        std::thread::sleep(Duration::from_millis(200));
        if number(&status(daemon)?, "waiting") != 0.0 {
            quiet = Instant::now();
        }
    }
    Ok(())
}

/// A file's table among the largest.
fn held<'a>(status: &'a Value, path: &Path) -> Option<&'a Value> {
    let of = |table: &&Value| table["file"].as_str().is_some_and(|file| Path::new(file) == path);
    status["largest"].as_array()?.iter().find(of)
}

/// A table's figures.
fn told(table: &Value) -> String {
    let (bytes, rows) = (number(table, "bytes"), number(table, "rows"));
    format!("{rows} rows, {:.2} bytes a row, {} ms", bytes / rows.max(1.0), number(table, "ms"))
}

/// Memory: what a process's files take, whoever else has them.
pub fn memory(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let daemon = Daemon::start(&bench.binary, &bench.work.join("tables-daemon"), None, &[])?;
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        let Some(java) = java(major, skipped, "tables") else { continue };
        let oracle = Oracle {
            java: java.command.clone(),
            flags: Vec::new(),
            programs: vec!["digest".to_owned()],
            seconds: 600,
            window_ms: 1000,
        };
        let jvm = oracle.start(&java.place(&bench.classes)?, &bench.work.join("tables.log"))?;
        std::thread::sleep(SETTLED);
        settled(&daemon)?;
        let all = daemon.json("/api/v1/status")?;
        let pid = u64::from(jvm.pid());
        let jvms = all["jvms"].as_array().map_or(&[][..], Vec::as_slice);
        let told_of = jvms.iter().find(|jvm| jvm["pid"].as_u64() == Some(pid)).cloned().unwrap_or_default();
        let (mb, files) = (number(&told_of, "unwind_bytes") / 1e6, number(&told_of, "unwind_files"));
        let holds = mb > 0.0 && mb <= JVM_MB && files > 3.0;
        let what = format!("tables: Java {major} with all its libraries");
        rows.push(Row::is(
            what,
            format!("{mb:.2} MB"),
            &format!("aim <= {JVM_MB} MB"),
            holds,
            files as usize,
        ));
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).context("reading a JVM's maps")?;
        let libjvm = maps
            .lines()
            .filter_map(|line| Some(&line[line.find('/')?..]))
            .find(|file| file.ends_with("libjvm.so"));
        let table = libjvm.and_then(|file| held(&all["unwind_tables"], Path::new(file)));
        let figure = table.map_or("not among the largest".to_owned(), told);
        rows.push(Row::told(format!("tables: libjvm of Java {major}"), figure, usize::from(table.is_some())));
    }
    let libraries = libraries();
    let _running = Waiting(vec![waiting(&libraries)?]);
    std::thread::sleep(SETTLED);
    settled(&daemon)?;
    let after = status(&daemon)?;
    let tables: Vec<&Value> = libraries.iter().filter_map(|path| held(&after, path)).collect();
    let sum = |what: &str| tables.iter().map(|table| number(table, what)).sum::<f64>();
    let mb = sum("bytes") / 1e6;
    rows.push(Row::is(
        format!("tables: the largest {} libraries here", libraries.len()),
        format!("{mb:.2} MB: {} rows, {} ms", sum("rows"), sum("ms")),
        &format!("aim <= {LIBRARIES_MB} MB"),
        mb > 0.0 && mb <= LIBRARIES_MB && tables.len() * 10 >= libraries.len() * 9,
        tables.len(),
    ));
    let all = number(&after, "table_bytes") / 1e6;
    let figure =
        format!("{all:.2} MB: {} rows, {} ms of work", number(&after, "rows"), number(&after, "build_ms"));
    rows.push(Row::told("tables: all that runs here", figure, number(&after, "files") as usize));
    daemon.stop()?;
    Ok(rows)
}

/// Seconds that a thread of the daemon was runnable and had no CPU: that of the one that waited longest.
fn longest_wait(pid: u32) -> Result<f64> {
    let waits = procfs::threads(pid, "")?.into_iter().map(|thread| thread.delay_ns);
    Ok(waits.max().unwrap_or(0) as f64 / 1e9)
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
    let ended = running.0.iter_mut().map(Child::try_wait).filter(|state| !matches!(state, Ok(None))).count();
    anyhow::ensure!(ended == 0, "{ended} of {PROCESSES} processes with preloaded libraries ended at once");
    let dir = bench.work.join("restart-daemon");
    let mut rows = Vec::new();
    for what in ["nothing on disk", "tables on disk"] {
        let begun = Instant::now();
        let daemon = Daemon::start(&bench.binary, &dir, None, &[])?;
        let ready = begun.elapsed();
        let (mut useful, mut complete, mut waited) = (None, None, f64::NAN);
        while complete.is_none() && begun.elapsed() < TIMEOUT {
            let now = status(&daemon)?;
            if number(&now, "processes") >= PROCESSES as f64 {
                useful.get_or_insert(begun.elapsed());
                if number(&now, "waiting") == 0.0 {
                    complete = Some((begun.elapsed(), procfs::cpu_seconds(daemon.pid())?, now));
                    waited = longest_wait(daemon.pid())?;
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
            "{share:.2} of a core: {cpu:.2} s; {} built, {} loaded, {} ms of work; waited for a CPU {waited:.1} s",
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
