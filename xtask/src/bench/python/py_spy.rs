//! py-spy (of PyPI) and the daemon on the same run of a program of thirty functions (tests/jobs/python_work.py): the same functions
//! first, with the same shares; and what each of the two slows that program by, in pairs of runs.
//!
//! py-spy samples 99 times a second without stopping the program (`--nonblocking`), the daemon at its own rate of 99. py-spy
//! takes each thread that it finds running, the daemon CPU time: of one busy thread the same.

use super::{Bench, VISIBLE_AFTER, WINDOW_MS};
use crate::bench::row::Row;
use crate::bench::stats::Summary;
use crate::clock;
use crate::launch::{Daemon, Running};
use crate::oracle::python::{Python, paths, without_file};
use crate::setup::packages;
use crate::{places, step};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Both sample this often.
const HZ: u32 = 99;
/// Of the run that both see.
const SECONDS: u64 = 40;
/// Functions that are compared, and how many of them must be the same.
const TOP: usize = 20;
const SHARED: usize = 18;
/// Points of share.
const POINTS: f64 = 2.0;
/// Rounds of the program's work in a run that is timed: some four seconds.
const ROUNDS: &str = "1000";
/// Longest wait for the program.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let py_spy = packages::py_spy().map_err(|why| skipped.push(format!("py-spy: {why:#}"))).ok();
    let python = bench.python()?;
    let mut rows = match &py_spy {
        Some(py_spy) => compared(bench, python, py_spy)?,
        None => Vec::new(),
    };
    rows.extend(slowed(bench, python, py_spy.as_deref())?);
    Ok(rows)
}

/// Samples by the function that ran.
#[derive(Debug, Default)]
struct Shares(BTreeMap<String, f64>);

impl Shares {
    fn n(&self) -> f64 {
        self.0.values().sum()
    }

    /// In percent.
    fn of(&self, function: &str) -> f64 {
        self.0.get(function).copied().unwrap_or(0.0) / self.n().max(1.0) * 100.0
    }

    fn top(&self) -> BTreeSet<&str> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(a.1));
        all.into_iter().take(TOP).map(|(name, _)| name.as_str()).collect()
    }
}

/// What `py-spy record --format raw` writes: `name (file:line);... count`, the outermost function first.
fn of_py_spy(text: &str) -> Shares {
    let mut shares = Shares::default();
    for line in text.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let leaf = stack.rsplit(';').next().map(without_file).unwrap_or_default();
        *shares.0.entry(leaf.to_owned()).or_default() += count.parse().unwrap_or(0.0);
    }
    shares
}

/// On one run.
fn compared(bench: &Bench, python: &Python, py_spy: &Path) -> Result<Vec<Row>> {
    let daemon = bench.daemon(HZ)?;
    let mut program = started(bench, python, &["seconds", &(SECONDS + 20).to_string()])?;
    let pid = program.wait_fact("ready", TIMEOUT)?;
    // Until the daemon knows the interpreter.
    std::thread::sleep(Duration::from_millis(2 * WINDOW_MS));
    let raw = bench.work.join("py-spy.raw");
    let mut record = recorder(py_spy, &pid, &raw);
    record.args(["--duration", &SECONDS.to_string()]);
    let from = clock::now();
    step::run(
        "recording with py-spy",
        &mut record,
        "py-spy must be allowed to read the program (run as root)",
    )?;
    let until = clock::now();
    std::thread::sleep(VISIBLE_AFTER);
    drop(program);
    let answer =
        daemon.json(&format!("/api/v1/flamegraph?pid={pid}&from={from}&until={until}&format=json"))?;
    daemon.stop()?;
    let mut ours = Shares::default();
    for (count, path) in paths(&answer) {
        let leaf = path.iter().rev().find(|node| node["kind"] == "python");
        let name = leaf.and_then(|node| node["name"].as_str()).map_or("[none]", without_file);
        if leaf.is_none() {
            let names: Vec<&str> = path.iter().filter_map(|node| node["name"].as_str()).collect();
            println!("   without a Python function: {count} of {}", names.join(";"));
        }
        *ours.0.entry(name.to_owned()).or_default() += count as f64;
    }
    let text = std::fs::read_to_string(&raw).with_context(|| format!("reading {}", raw.display()))?;
    Ok(judged(&ours, &of_py_spy(&text)))
}

fn judged(ours: &Shares, theirs: &Shares) -> Vec<Row> {
    let n = ours.n().min(theirs.n());
    let same = ours.top().intersection(&theirs.top()).count();
    let names: BTreeSet<&String> = ours.0.keys().chain(theirs.0.keys()).collect();
    let offs = names.into_iter().map(|name| (ours.of(name) - theirs.of(name), name));
    let worst = offs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let (off, name) = worst.map_or((f64::INFINITY, "none"), |(off, name)| (off, name.as_str()));
    // Of both.
    let error = 70.0 / ours.n().max(1.0).sqrt() + 70.0 / theirs.n().max(1.0).sqrt();
    vec![
        Row::is(
            format!("py-spy: the same first {TOP} functions"),
            format!("{same}, of {:.0} samples of py-spy's and {:.0} of ours", theirs.n(), ours.n()),
            &format!(">= {SHARED}"),
            same >= SHARED,
            n as usize,
        ),
        Row::is(
            "py-spy: largest difference of a function's share",
            format!("{off:+.2} points: {name}"),
            &format!("{POINTS} + {error:.2}"),
            off.abs() <= POINTS + error,
            n as usize,
        ),
    ]
}

/// Who looks on.
#[derive(Clone, Copy)]
enum Beside<'a> {
    Nobody,
    Daemon,
    PySpy(&'a Path),
}

/// Rounds of runs of a fixed amount of work: one alone, and one with each of the two, which are held against it.
fn slowed(bench: &Bench, python: &Python, py_spy: Option<&Path>) -> Result<Vec<Row>> {
    let mut all = vec![("nobody", Beside::Nobody), ("Emberscope", Beside::Daemon)];
    all.extend(py_spy.map(|py_spy| ("py-spy", Beside::PySpy(py_spy))));
    let mut slower: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..bench.options.pairs as usize {
        // Which of them comes first changes from round to round.
        let mut times = BTreeMap::new();
        for at in 0..all.len() {
            let (name, beside) = all[(at + round) % all.len()];
            times.insert(name, timed(bench, python, beside)?);
        }
        let alone = times.remove("nobody").context("the run alone")?;
        for (name, with) in times {
            slower.entry((name, "CPU")).or_default().push((with.0 / alone.0 - 1.0) * 100.0);
            slower.entry((name, "wall")).or_default().push((with.1 / alone.1 - 1.0) * 100.0);
        }
    }
    let row = |((name, clock), figures): (&(&str, &str), &Vec<f64>)| {
        let of = Summary::of(figures)?;
        let figure = format!("{:+.2} % median, {:+.2} to {:+.2}", of.median, of.min, of.max);
        Some(Row::told(format!("slowdown by {name}, {clock} time of pairs"), figure, of.n))
    };
    Ok(slower.iter().filter_map(row).collect())
}

/// CPU and wall time of the program's work, in seconds.
fn timed(bench: &Bench, python: &Python, beside: Beside<'_>) -> Result<(f64, f64)> {
    let go = bench.work.join("go");
    let _ = std::fs::remove_file(&go);
    let daemon: Option<Daemon> = match beside {
        Beside::Daemon => Some(bench.daemon(HZ)?),
        _ => None,
    };
    let mut program = started(bench, python, &["rounds", ROUNDS, &go.to_string_lossy()])?;
    let pid = program.wait_fact("ready", TIMEOUT)?;
    let raw = bench.work.join("py-spy.raw");
    let spying = match beside {
        Beside::PySpy(py_spy) => {
            let log = bench.work.join("py-spy.log");
            Some(Running::start("py-spy", &mut recorder(py_spy, &pid, &raw), &log)?)
        }
        _ => None,
    };
    // Until each has found the program.
    std::thread::sleep(Duration::from_secs(2));
    std::fs::write(&go, "").context("letting the program begin")?;
    let seconds = |program: &mut Running, name| -> Result<f64> {
        program.wait_fact(name, TIMEOUT)?.parse().with_context(|| format!("{name} of the program"))
    };
    let times = (seconds(&mut program, "cpu")?, seconds(&mut program, "wall")?);
    drop(spying);
    if let Some(daemon) = daemon {
        daemon.stop()?;
    }
    Ok(times)
}

fn started(bench: &Bench, python: &Python, arguments: &[&str]) -> Result<Running> {
    let (first, rest) = python.command.split_first().context("a Python without a program")?;
    let mut command = Command::new(first);
    command.args(rest).arg(places::workspace().join("tests/jobs/python_work.py")).args(arguments);
    Running::start("the program of thirty functions", &mut command, &bench.work.join("work.log"))
}

fn recorder(py_spy: &Path, pid: &str, raw: &Path) -> Command {
    let mut record = Command::new(py_spy);
    record.args(["record", "--nonblocking", "--function", "--format", "raw", "--rate", &HZ.to_string()]);
    record.args(["--pid", pid, "--output"]).arg(raw);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_py_spy_are_read_and_compared() {
        let text = "<module> (job.py:1);called (job.py:3);work_01 (work_01.py:2) 3\n<module> (job.py:1) 1\n";
        let theirs = of_py_spy(text);
        assert_eq!((theirs.n(), theirs.of("work_01"), theirs.of("<module>")), (4.0, 75.0, 25.0));
        let ours = Shares([("work_01".to_owned(), 10.0)].into());
        // Far too few functions; their shares are within the error of four samples, and not of many.
        assert!(judged(&ours, &theirs)[0].fails() && !judged(&ours, &theirs)[1].fails());
        let many = |share: f64| {
            Shares([("a".to_owned(), share * 1e6), ("b".to_owned(), (1.0 - share) * 1e6)].into())
        };
        assert!(judged(&many(0.5), &many(0.53))[1].fails() && !judged(&many(0.5), &many(0.51))[1].fails());
    }
}
