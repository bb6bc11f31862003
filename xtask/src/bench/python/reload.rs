//! Names of code that does not last: a thousand workers that make functions, drop them and make others at the same addresses
//! (tests/jobs/python_reload.py), two at a time, forked from a process with the like.
//!
//! A function's name and its file carry the worker and the generation, and its first line follows from the two; the daemon
//! tells the pid, the program whose it is. So each frame tells by itself whether it has a wrong name. Code that was gone before it was
//! read, or whose process was, has none, which is no wrong one, and is counted apart by the reason; so is one whose name was read in
//! time, and its table of lines not.

use super::{Bench, VISIBLE_AFTER};
use crate::bench::row::Row;
use crate::clock;
use crate::launch::Running;
use crate::oracle::python::{paths, without_file};
use crate::places;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// Frames that a thousand workers are to give.
const FRAMES_OF_THOUSAND: usize = 100_000;
/// How many wrong ones are shown.
const SHOWN: usize = 5;
/// A worker, however crowded the machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers of shorter times than the whole: a thousand pids are many labels.
const SLICE_MS: u64 = 4_000;

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    frames: usize,
    wrong: usize,
    /// Samples of workers with a frame that has no name, by the reason.
    unnamed: BTreeMap<String, usize>,
    /// Frames with a name and no line.
    lineless: usize,
    samples: usize,
    shown: Vec<String>,
}

/// Measures.
pub fn rows(bench: &Bench, _: &mut Vec<String>) -> Result<Vec<Row>> {
    let python = bench.python()?;
    let daemon = bench.daemon(bench.options.hz)?;
    let (first, rest) = python.command.split_first().context("a Python without a program")?;
    let mut command = Command::new(first);
    command.args(rest).arg(places::workspace().join("tests/jobs/python_reload.py"));
    command.arg(bench.options.workers.to_string());
    let log = bench.work.join("reload.log");
    let from = clock::now();
    let mut program = Running::start("the workers that reload code", &mut command, &log)?;
    program.wait(PATIENCE * bench.options.workers)?;
    let until = clock::now();
    std::thread::sleep(VISIBLE_AFTER);
    let text = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    let mut workers: BTreeMap<u64, u64> = text.lines().filter_map(worker).collect();
    workers.insert(program.pid().into(), 0);
    let mut seen = Seen::default();
    for start in (from..until).step_by(SLICE_MS as usize) {
        let range = format!("from={start}&until={}", (start + SLICE_MS).min(until));
        let answer = daemon.json(&format!("/api/v1/flamegraph?{range}&lines=1&group=pid&format=json"))?;
        for (count, path) in paths(&answer) {
            seen.add(count, &path, &workers);
        }
    }
    daemon.stop()?;
    for wrong in seen.shown.iter().take(SHOWN) {
        println!("   wrong: {wrong}");
    }
    let bar = FRAMES_OF_THOUSAND * bench.options.workers as usize / 1_000;
    let what = format!("{} workers of {}", bench.options.workers, python.version);
    let share = |count: usize| count as f64 * 100.0 / seen.samples.max(1) as f64;
    let mut unnamed: Vec<String> =
        seen.unnamed.iter().map(|(why, count)| format!("{:.1} % {why}", share(*count))).collect();
    unnamed.push(format!("{} frames without a line", seen.lineless));
    Ok(vec![
        Row::at_most(format!("reload: wrong names, {what}"), seen.wrong, 0, seen.frames),
        Row::is(
            "reload: frames of reloaded code",
            seen.frames.to_string(),
            &format!(">= {bar}"),
            seen.frames >= bar,
            seen.samples,
        ),
        Row::told("reload: samples with a frame that has no name", unnamed.join(", "), seen.samples),
    ])
}

/// `worker W PID`: the pid, and whose it is.
fn worker(line: &str) -> Option<(u64, u64)> {
    let (worker, pid) = line.strip_prefix("worker ")?.split_once(' ')?;
    Some((pid.parse().ok()?, worker.parse().ok()?))
}

impl Seen {
    fn add(&mut self, count: usize, path: &[&Value], workers: &BTreeMap<u64, u64>) {
        let name = |node: &Value| node["name"].as_str().unwrap_or_default().to_owned();
        let pid = path.iter().find_map(|node| name(node).strip_prefix("pid=")?.parse().ok());
        let Some(worker) = pid.and_then(|pid: u64| workers.get(&pid)) else { return };
        self.samples += count;
        let reasons: BTreeSet<String> =
            path.iter().filter(|node| node["kind"] == "unknown").map(|node| name(node)).collect();
        for why in reasons {
            *self.unnamed.entry(why).or_default() += count;
        }
        let made = path.iter().filter(|node| {
            node["kind"] == "python" && ["outer_", "inner_"].iter().any(|start| name(node).starts_with(start))
        });
        let mut tags: Vec<String> = Vec::new();
        for node in made {
            self.frames += count;
            self.lineless += if node["line"].is_null() { count } else { 0 };
            let tag = rightly_named(node).filter(|tag| tags.last().is_none_or(|above| above == tag));
            let tag = tag.filter(|tag| tag.starts_with(&format!("w{worker}g")));
            match tag {
                Some(tag) => tags.push(tag),
                None => {
                    self.wrong += count;
                    self.shown.push(format!("{count} of worker {worker}, pid {pid:?}: {node}"));
                }
            }
        }
    }
}

/// The tag of a frame whose name, file, first line and line agree.
fn rightly_named(node: &Value) -> Option<String> {
    let (function, tag) = without_file(node["name"].as_str()?).split_once('_')?;
    let (worker, generation) = tag.strip_prefix('w')?.split_once('g')?;
    let pad = (7 * worker.parse::<u64>().ok()? + 13 * generation.parse::<u64>().ok()?) % 40;
    // The line of the definition is the one of a function's first instruction.
    let lines = if function == "outer" { pad + 1..=pad + 2 } else { pad + 5..=pad + 7 };
    let first = node["signature"].as_str()?.strip_prefix(':')?.parse::<u64>().ok()?;
    let right = node["module"].as_str()? == format!("/made/{tag}.py")
        && first == *lines.start()
        && node["line"].as_u64().is_none_or(|line| lines.contains(&line));
    right.then(|| tag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_frame_tells_whether_its_name_is_its_own() {
        let frame = |name: &str, file: &str, first: u64, line: u64| {
            json!({"name": format!("{name} (x.py)"), "kind": "python", "module": format!("/made/{file}.py"),
                   "signature": format!(":{first}"), "line": line})
        };
        let (root, workers) = (json!({"name": "pid=7", "kind": "label"}), BTreeMap::from([(7, 1)]));
        let wrong = |frames: &[Value]| {
            let mut seen = Seen::default();
            seen.add(10, &std::iter::once(&root).chain(frames).collect::<Vec<_>>(), &workers);
            (seen.frames, seen.wrong)
        };
        // PAD of worker 1, generation 2 is 33.
        let (outer, inner) = (frame("outer_w1g2", "w1g2", 34, 35), frame("inner_w1g2", "w1g2", 38, 39));
        assert_eq!(wrong(&[outer.clone(), inner.clone()]), (20, 0));
        for other in [
            frame("inner_w1g2", "w1g3", 38, 39),
            frame("inner_w1g2", "w1g2", 38, 41),
            frame("inner_w1g2", "w1g2", 37, 39),
            frame("inner_w2g2", "w2g2", 5, 6),
            frame("inner_w1g3", "w1g3", 11, 12),
        ] {
            assert_eq!(wrong(&[outer.clone(), other]), (20, 10));
        }
        assert_eq!(worker("worker 3 77"), Some((77, 3)));
    }
}
