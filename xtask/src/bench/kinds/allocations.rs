//! What a program's threads allocate, by class and method, against what the JVM has on their accounts
//! (`launch::allocates`), on each JDK with each collector; and how much longer the program takes.

use super::super::row::Row;
use super::super::stats::quantile;
use super::{Bench, WITH_ALLOCATIONS, WITHOUT, peers};
use crate::clock::{now, sleep_until_visible};
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
    rows.extend(slowdown(bench, &home17.context("no JDK")?)?);
    Ok(rows)
}

/// JAVA_HOME of a JDK of the machine, or of what was installed for measurements.
pub fn home(major: u32) -> Option<PathBuf> {
    let java = Runtime::ensure(major).ok()?.command.pop()?;
    Some(Path::new(&java).parent()?.parent()?.to_owned())
}

/// Runs the program beside the daemon: the program, and folded stacks of what it allocated. `flag`: one or more of the JVM's,
/// with blanks between.
pub fn run(
    bench: &Bench,
    home: &Path,
    (name, flag): (&str, &str),
    words: &[&str],
) -> Result<(Running, String)> {
    let work = bench.work.join(name.replace(' ', "-"));
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let daemon = Daemon::start(&bench.binary, &work.join("data"), None, words)?;
    let program = flag.split(' ').fold(program(home, MB), |program, flag| program.flag(flag));
    let mut java = program.flag("-Xmx1g").start(&work)?;
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
    let (java, folded) = run(bench, home, (name, flag), &WITH_ALLOCATIONS)?;
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

/// Time of the program's work with allocations sampled, by this daemon or by async-profiler, and without, in turn.
fn slowdown(bench: &Bench, home: &Path) -> Result<Vec<Row>> {
    let agent = peers::agent("alloc,alloc=512k", Path::new("slowdown.collapsed"));
    let theirs = agent.as_ref().map(|flag| format!("-XX:+UseG1GC {flag}"));
    let plain = "-XX:+UseG1GC";
    let mut ways = vec![("without", &WITHOUT, plain), ("with", &WITH_ALLOCATIONS, plain)];
    ways.extend(theirs.as_ref().ok().map(|flags| ("by async-profiler", &WITHOUT, flags.as_str())));
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..bench.options.rounds {
        for ((how, words, flags), times) in ways.iter().zip(&mut times) {
            let (java, _) = run(bench, home, (&format!("{how} {round}"), flags), *words)?;
            times.push(java.fact("nanos").context("no time")?.parse::<f64>()? / 1e9);
        }
    }
    let medians: Vec<f64> = times.iter().map(|times| quantile(times, 0.5)).collect();
    let (n, without) = (bench.options.rounds, medians.first().copied().unwrap_or(f64::NAN));
    let more = |way: usize| medians.get(way).map(|with| (with / without - 1.0) * 100.0);
    let mut rows = Vec::new();
    for (way, (how, ..)) in ways.iter().enumerate().skip(1) {
        let (median, more) = (medians.get(way).copied().unwrap_or(f64::NAN), more(way).unwrap_or(f64::NAN));
        let figure = format!("{median:.3} s, {without:.3} s without: {more:+.1} %");
        rows.push(Row::told(format!("allocations: the program's work {how}, median"), figure, n));
    }
    match (more(1), more(2), agent) {
        (Some(ours), Some(theirs), Ok(_)) => rows.push(Row::is(
            "allocations: slowdown, ours and async-profiler's",
            format!("{ours:+.1} and {theirs:+.1} %"),
            "<= half",
            ours <= (theirs / 2.0).max(0.0),
            n,
        )),
        (.., Err(why)) => rows.push(Row::told("allocations: async-profiler", format!("skipped: {why:#}"), 0)),
        _ => {}
    }
    Ok(rows)
}
