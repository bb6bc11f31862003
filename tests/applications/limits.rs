//! What is lost when the ring is small, and what is left out when the user wants only some.

use super::apps::{App, number};
use super::ask::{ask_json, metric, pids_in};
use anyhow::{Context as _, Result, ensure};
use emberscope_process::Keep;
use emberscope_tests::{Daemon, Here, VISIBLE};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

pub fn a_small_ring_loses_and_says_so(here: &Here, dir: &Path) -> Result<()> {
    let daemon = here.daemon(dir, &["--ring-bytes", "4KiB", "--hz", "999", "--window", "2s"])?;
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let quality = ask_json(&daemon, "")?["quality"].clone();
        let (lost, samples) = (number(&quality["lost"])?, number(&quality["samples"])?);
        if lost > 0 && samples > 0 {
            let counted = metric(&daemon, "emberscope_lost_total")?;
            ensure!(counted >= lost as f64, "the metrics count {counted} lost, the answer {lost}");
            let by_reason = &quality["lost_by_reason"];
            ensure!(number(&by_reason["ring_full_sample"])? > 0, "{quality}");
            let header = daemon.get("/api/v1/flamegraph?format=folded")?;
            let header: u64 = header.header("x-emberscope-lost").context("no header")?.parse()?;
            ensure!(header >= lost, "the header says {header}, the answer {lost}");
            println!("a ring of 4 KiB at 999 Hz: {samples} samples, {lost} lost");
            break;
        }
        ensure!(begun.elapsed() < VISIBLE, "nothing was lost: {quality}");
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// (app, executor) of each executor's JVM that an answer lists, with its pids.
pub fn listed(daemon: &Daemon, query: &str) -> Result<BTreeMap<(String, String), BTreeSet<u32>>> {
    let answer = daemon.json(&format!("/api/v1/executors?{query}"))?;
    let mut out = BTreeMap::new();
    for row in answer["executors"].as_array().context("no executors")? {
        if row["role"] == "executor" {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let pids = row["pids"].as_array().context("no pids")?.iter().map(|pid| Ok(number(pid)? as u32));
            out.insert((text("app"), text("executor")), pids.collect::<Result<_>>()?);
        }
    }
    Ok(out)
}

pub fn only_what_was_chosen_is_kept(here: &Here, dir: &Path, a: &App, b: &App) -> Result<()> {
    let both =
        || [a, b].into_iter().flat_map(|app| app.executors.keys().map(|e| (app.id.clone(), e.clone())));
    // A share that keeps some of our executors and not others.
    let kept = |share: f64| -> Result<BTreeSet<_>> {
        let keep = Keep { fraction: share.to_string().parse()?, ..Keep::default() };
        Ok(both().filter(|(app, executor)| keep.matches(Some(app), None, Some(executor))).collect())
    };
    let mut share = 0.0;
    for step in 1..100 {
        let size = kept(f64::from(step) / 100.0)?.len();
        if (1..3).contains(&size) {
            share = f64::from(step) / 100.0;
            break;
        }
    }
    ensure!(share > 0.0, "no share splits three executors");
    let quick = ["--window", "2s"];
    let chosen_words = ["--apps", &a.id, "--executors", "1"];
    let chosen = here.daemon(&dir.join("chosen"), &[&quick[..], &chosen_words[..]].concat())?;
    let some = here.daemon(&dir.join("some"), &[&quick[..], &["--fraction", &share.to_string()]].concat())?;
    // A driver says no id: until it is known whose it is, it is not left out.
    let begun = Instant::now();
    while let Err(error) = the_chosen_are_kept(&chosen, a, b) {
        ensure!(begun.elapsed() < VISIBLE, "{error:#}");
        std::thread::sleep(Duration::from_secs(1));
    }
    ensure!(metric(&chosen, "emberscope_samples_not_kept_total")? > 0.0);

    let ours = |(app, _): &(String, String)| *app == a.id || *app == b.id;
    let wanted = kept(share)?;
    let seen = loop {
        let seen: BTreeSet<_> = listed(&some, "")?.into_keys().filter(ours).collect();
        if seen.len() >= wanted.len() || begun.elapsed() > VISIBLE {
            break seen;
        }
        std::thread::sleep(Duration::from_secs(1));
    };
    ensure!(seen == wanted, "--fraction {share} keeps {seen:?}, not {wanted:?}");
    println!("--fraction {share} keeps {} of 3 executors", seen.len());
    ensure!(chosen.stop()?.success() && some.stop()?.success());
    Ok(())
}

/// In the last seconds: executor 1 of A, no other executor, nothing of B, and the neighbours.
fn the_chosen_are_kept(chosen: &Daemon, a: &App, b: &App) -> Result<()> {
    let recent = "from=-5s";
    let one = (a.id.clone(), "1".to_owned());
    let executors: Vec<_> = listed(chosen, "")?.into_keys().collect();
    ensure!(executors == [one], "{executors:?}");
    let apps = chosen.json(&format!("/api/v1/apps?{recent}"))?;
    let ids: Vec<_> = apps["apps"].as_array().context("no apps")?.iter().map(|app| &app["id"]).collect();
    ensure!(ids.contains(&&Value::from(&*a.id)) && !ids.contains(&&Value::from(&*b.id)), "{apps}");
    ensure!(ids.iter().all(|id| **id == *a.id || **id == "unknown"), "{apps}");
    let pids = pids_in(chosen, recent)?;
    ensure!(pids.contains(&a.executors["1"]) && !pids.contains(&a.executors["0"]), "{pids:?}");
    ensure!(!pids.contains(&b.executors["0"]) && !pids.contains(&b.driver), "B is kept: {pids:?}");
    // Neighbours stay: they are nobody's application.
    ensure!(pids.iter().any(|pid| !a.has(*pid) && !b.has(*pid)), "only Spark is kept: {pids:?}");
    Ok(())
}
