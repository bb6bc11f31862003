//! What a program's threads allocate, by class and method, against what the JVM has on their accounts
//! (`launch::allocates`), on each JDK with each collector; and how much longer the program takes.

use super::super::clock::{now, sleep_until_visible};
use super::super::row::Row;
use super::{Bench, WITHOUT};
use crate::launch::allocates::{PARTS, program};
use crate::launch::{Daemon, Running};
use crate::setup::runtime::{MAJORS, Runtime};
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(300);
/// Of the first class, a thread: in all 3.5 times as much in each of two threads.
const MB: u32 = 1024;
/// How a JVM is run; ZGC needs no other flag from JDK 15 on.
pub const COLLECTORS: [(&str, &str, u32); 3] =
    [("G1", "-XX:+UseG1GC", 11), ("Parallel", "-XX:+UseParallelGC", 11), ("ZGC", "-XX:+UseZGC", 15)];
/// The sampling period, bytes.
const EVERY: f64 = 524_288.0;
const WITH: [&str; 2] = ["--events", "cpu,alloc"];

pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut home17 = None;
    for major in MAJORS.into_iter().filter(|major| *major >= 11) {
        let Some(home) = home(major) else {
            rows.push(Row::told(format!("JDK {major}"), "not on this machine", 0));
            continue;
        };
        for (name, flag, _) in COLLECTORS.into_iter().filter(|(.., first)| major >= *first) {
            rows.extend(of_jvm(bench, &home, &format!("JDK {major} {name}"), flag)?);
        }
        home17 = home17.or(Some(home));
    }
    rows.push(slowdown(bench, &home17.context("no JDK")?)?);
    Ok(rows)
}

/// JAVA_HOME of a JDK of the machine, or of what was installed for measurements.
pub fn home(major: u32) -> Option<PathBuf> {
    let java = Runtime::ensure(major).ok()?.command.pop()?;
    Some(Path::new(&java).parent()?.parent()?.to_owned())
}

/// Runs the program beside the daemon: the program, and folded stacks of what it allocated.
fn run(bench: &Bench, home: &Path, (name, flag): (&str, &str), words: &[&str]) -> Result<(Running, String)> {
    let work = bench.work.join(name.replace(' ', "-"));
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let daemon = Daemon::start(&bench.binary, &work.join("data"), None, words)?;
    let mut java = program(home, MB).flag(flag).flag("-Xmx1g").start(&work)?;
    java.wait_fact("ready", TIMEOUT)?;
    let begun = Instant::now();
    loop {
        let jvm = daemon.jvm(java.pid())?;
        if !jvm.is_null() && jvm["allocations"] != "opening" && jvm["stacks"] == "code_tables" {
            break;
        }
        ensure!(begun.elapsed() < TIMEOUT, "the daemon does not know {name}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let from = now();
    std::fs::write(work.join("go"), "").context("starting the work")?;
    java.wait_fact("done", TIMEOUT)?;
    let until = sleep_until_visible(now());
    let query = format!("pid={}&from={from}&until={until}&type=alloc&unit=bytes&format=folded", java.pid());
    let folded = daemon.get(&format!("/api/v1/flamegraph?{query}"))?.body;
    std::fs::write(work.join("stop"), "").context("stopping the program")?;
    java.wait(TIMEOUT)?;
    ensure!(daemon.stop()?.success(), "the daemon failed");
    Ok((java, folded))
}

fn of_jvm(bench: &Bench, home: &Path, name: &str, flag: &str) -> Result<Vec<Row>> {
    let (java, folded) = run(bench, home, (name, flag), &WITH)?;
    let mut rows = Vec::new();
    let (mut all, mut counted, mut in_method, mut both) = (0.0, 0.0, 0.0, 0.0);
    for part in PARTS {
        let (found, truth) = (part.sampled(&folded)?, part.counted(&java)?);
        let what = format!("{name}: {}", part.class);
        let mib = |bytes: f64| bytes / 1_048_576.0;
        let n = found.of_class / EVERY;
        rows.push(Row::deviation(what, mib(found.of_class), mib(truth), "MiB", 3.0, n));
        (all, counted) = (all + found.of_class, counted + truth);
        (in_method, both) = (in_method + found.in_method, both + found.both);
    }
    let total = Row::deviation(format!("{name}: all"), all / 1e6, counted / 1e6, "MB", 3.0, all / EVERY);
    let share = |part: f64, of: f64| (part / of.max(f64::MIN_POSITIVE) * 1e4).round() as usize;
    rows.push(total);
    let of_class = share(both, in_method);
    rows.push(Row::share(format!("{name}: of a method its class, n in 10,000"), of_class, 97.0, 10_000));
    let named = share(in_method, all);
    rows.push(Row::share(format!("{name}: with the method's name, n in 10,000"), named, 97.0, 10_000));
    Ok(rows)
}

/// Time of the program's work, with allocations sampled and without, in turn.
fn slowdown(bench: &Bench, home: &Path) -> Result<Row> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for round in 0..bench.options.rounds {
        for (how, words, out) in [("without", &WITHOUT, &mut without), ("with", &WITH, &mut with)] {
            let (java, _) = run(bench, home, (&format!("{how} {round}"), "-XX:+UseG1GC"), words)?;
            out.push(java.fact("nanos").context("no time")?.parse::<f64>()? / 1e9);
        }
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let (with, without) = (median(&mut with), median(&mut without));
    let more = (with / without - 1.0) * 100.0;
    let figure = format!("{with:.3} s, {without:.3} s without: {more:+.1} %");
    Ok(Row::told("the program's work with allocations sampled, at the median", figure, bench.options.rounds))
}
