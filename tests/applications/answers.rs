//! Two applications stay two, windows are exact, and every format tells the same.

use super::apps::{App, command_line, number};
use super::ask::{Folded, ask_folded, ask_json, folded, jit_frames, pids_in};
use super::limits::listed;
use super::{SAMPLE_NS, WINDOW_MS};
use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, ran};
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub fn nothing_is_mixed(daemon: &Daemon, a: &App, b: &App, range: &str) -> Result<()> {
    let apps = daemon.json(&format!("/api/v1/apps?{range}"))?;
    for app in [a, b] {
        let rows = apps["apps"].as_array().context("no apps")?;
        let row =
            rows.iter().find(|row| row["id"] == *app.id).with_context(|| format!("{} in {apps}", app.id))?;
        ensure!(row["name"] == "emberscope-demo" && row["executors"] == app.executors.len(), "{row}");
        // The JVM, and the Python program that started it, if that was sampled: it waits most of the time.
        let drivers: Vec<u32> = Vec::deserialize(&row["drivers"]).context("no drivers")?;
        ensure!(
            drivers.contains(&app.driver) && drivers.len() <= 2 && drivers.iter().all(|pid| app.has(*pid)),
            "not the driver {}: {row}",
            app.driver
        );
        // Exactly the executors that there are, with their pids.
        let truth: BTreeMap<_, _> = app
            .executors
            .iter()
            .map(|(e, pid)| ((app.id.clone(), e.clone()), BTreeSet::from([*pid])))
            .collect();
        let seen = listed(daemon, &format!("{range}&app={}", app.id))?;
        ensure!(seen == truth, "{seen:?} instead of {truth:?}");
        // An executor's answer holds its pid and no other.
        for (executor, pid) in &app.executors {
            let query = format!("{range}&app={}&executor={executor}&role=executor", app.id);
            let seen = pids_in(daemon, &query)?;
            ensure!(seen == BTreeSet::from([*pid]), "executor {executor} of {} is {pid}: {seen:?}", app.id);
        }
        let drivers = pids_in(daemon, &format!("{range}&app={}&role=driver", app.id))?;
        // The Python program waits most of the time.
        ensure!(drivers.contains(&app.driver) && drivers.len() <= 2, "{drivers:?} instead of {}", app.driver);
        // The application's holds processes of its own job only, all JVMs among them.
        let seen = pids_in(daemon, &format!("{range}&app={}", app.id))?;
        let strangers: Vec<_> =
            seen.iter().filter(|pid| !app.has(**pid)).map(|pid| (*pid, command_line(*pid))).collect();
        ensure!(strangers.is_empty(), "{} has samples of {strangers:?}", app.id);
        ensure!(seen.is_superset(&app.executor_pids()) && seen.contains(&app.driver), "{seen:?}");
    }
    let neighbours = pids_in(daemon, &format!("{range}&app="))?;
    ensure!(!neighbours.iter().any(|pid| a.executor_pids().contains(pid) || b.executor_pids().contains(pid)));
    // Either of two values; both together are the sum.
    let count = |query: &str| -> Result<u64> { Ok(ask_folded(daemon, query)?.values().sum()) };
    let (one, two) = (count(&format!("{range}&app={}", a.id))?, count(&format!("{range}&app={}", b.id))?);
    ensure!(count(&format!("{range}&app={}&app={}", a.id, b.id))? == one + two);
    Ok(())
}

pub fn windows_are_exact(daemon: &Daemon, a: &App, from: u64) -> Result<()> {
    let says = |answer: &Value, from: u64, until: u64, windows: u64| {
        let text = |ms: u64| WallTime::from_millis(ms).to_string();
        ensure!(
            answer["range"]["from"] == text(from)
                && answer["range"]["until"] == text(until)
                && answer["windows"] == windows,
            "not {windows} from {} until {}: {} of {}",
            text(from),
            text(until),
            answer["windows"],
            answer["range"]
        );
        Ok(())
    };
    let (middle, end) = (from + WINDOW_MS, from + 2 * WINDOW_MS);
    let app = format!("app={}", a.id);
    let between = |from: u64, until: u64| format!("{app}&from={from}&until={until}");
    // Whole windows; a second of one; a second on each side of a border; not the next one.
    says(&ask_json(daemon, &between(from, end))?, from, end, 2)?;
    says(&ask_json(daemon, &between(from + 3000, from + 4000))?, from, middle, 1)?;
    says(&ask_json(daemon, &between(middle - 1000, middle + 1000))?, from, end, 2)?;
    says(&ask_json(daemon, &between(from, middle))?, from, middle, 1)?;
    says(&ask_json(daemon, &between(middle, middle + 1))?, middle, end, 1)?;
    // The same instants in the other spellings.
    let rfc = |ms| WallTime::from_millis(ms).to_string();
    says(&ask_json(daemon, &format!("{app}&from={}&until={}", rfc(from), rfc(end)))?, from, end, 2)?;
    says(&ask_json(daemon, &format!("{app}&from={}&until={}", from / 1000, end / 1000))?, from, end, 2)?;

    let whole = ask_folded(daemon, &between(from, end))?;
    let mut sum = ask_folded(daemon, &between(from, middle))?;
    ensure!(!sum.is_empty() && sum != whole);
    for (stack, count) in ask_folded(daemon, &between(middle, end))? {
        *sum.entry(stack).or_default() += count;
    }
    ensure!(sum == whole, "two windows differ from the whole");
    Ok(())
}

pub fn formats_agree(here: &Here, daemon: &Daemon, a: &App, range: &str, dir: &Path) -> Result<()> {
    let query = format!("{range}&app={}", a.id);
    let answer = ask_json(daemon, &query)?;
    let total = number(&answer["total"])?;
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}"))?;
    let header = |name: &str| reply.header(name).with_context(|| name.to_owned());
    ensure!(header("x-emberscope-samples")?.parse::<u64>()? == total);
    ensure!(answer["quality"]["samples"] == total && answer["nodes"][0]["total"] == total);
    ensure!(header("x-emberscope-from")? == answer["range"]["from"].as_str().unwrap_or_default());
    ensure!(header("x-emberscope-windows")? == "2");
    let stacks = folded(&reply.body)?;
    ensure!(stacks.values().sum::<u64>() == total, "folded and JSON differ");

    // Time: each sample weighs a period.
    let time = number(&ask_json(daemon, &format!("{query}&unit=ns"))?["total"])?;
    let per_sample = time as f64 / total as f64;
    ensure!((per_sample / SAMPLE_NS - 1.0).abs() < 0.001, "{per_sample} ns a sample");

    // Prefixes, in the order asked; without them the stacks are the same.
    let mut plain = Folded::new();
    for (stack, count) in ask_folded(daemon, &format!("{query}&group=role,executor"))? {
        let mut parts = stack.splitn(3, ';');
        let role = parts.next().and_then(|part| part.strip_prefix("role=")).with_context(|| stack.clone())?;
        let executor =
            parts.next().and_then(|part| part.strip_prefix("executor=")).with_context(|| stack.clone())?;
        ensure!(role != "executor" || a.executors.contains_key(executor), "{stack}");
        *plain.entry(parts.next().unwrap_or_default().to_owned()).or_default() += count;
    }
    ensure!(plain == stacks, "grouping changed the stacks");

    let svg = daemon.get(&format!("/api/v1/flamegraph?format=svg&{query}"))?.body;
    well_formed(here, &dir.join("api.svg"), &svg)?;
    ensure!(svg.contains("org.apache.spark."), "no method of Spark in the picture");
    Ok(())
}

/// Python's expat reads it, and its root is a picture.
pub fn well_formed(here: &Here, path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg)?;
    let program = "import sys, xml.etree.ElementTree as e; print(e.parse(sys.argv[1]).getroot().tag)";
    let python = here.venv.join("bin/python");
    let words = [python.as_os_str(), "-c".as_ref(), program.as_ref(), path.as_os_str()];
    let read = ran(words)?.good()?;
    ensure!(read.out.trim() == "{http://www.w3.org/2000/svg}svg", "{read:?}");
    Ok(())
}

pub fn jit_frames_are_named(daemon: &Daemon, a: &App, range: &str) -> Result<()> {
    let answer = ask_json(daemon, &format!("{range}&app={}&role=executor", a.id))?;
    let (named, unnamed) = jit_frames(&answer)?;
    let share = named as f64 / (named + unnamed).max(1) as f64;
    println!("JIT frames of A's executors: {:.3} % of {} named", 100.0 * share, named + unnamed);
    println!("quality of A's executors: {}", answer["quality"]);
    for (stack, count) in ask_folded(daemon, &format!("{range}&app={}&role=executor", a.id))? {
        if let Some(at) =
            stack.find("[unknown: not in perf map]").or_else(|| stack.find("[unknown: no perf map]"))
        {
            let around: Vec<_> = stack[at.saturating_sub(80)..].split(';').skip(1).take(3).collect();
            println!("unnamed in {count} samples: {}", around.join(";"));
        }
    }
    ensure!(named > 3000, "only {named} JIT frames");
    ensure!(share >= 0.99, "{:.2} % of JIT frames are named", 100.0 * share);
    Ok(())
}
