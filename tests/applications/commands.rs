//! The command line against the running daemon, and a recording without one.

use super::answers::well_formed;
use super::apps::App;
use super::ask::{ask_json, folded};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Ran, ran};
use serde_json::Value;
use std::path::Path;

pub fn bad_names_of_applications(daemon: &Daemon, a: &App, b: &App) -> Result<()> {
    let unknown = daemon.get("/api/v1/flamegraph?app=app-0")?;
    ensure!(
        unknown.status == 404 && unknown.body.contains(&a.id) && unknown.body.contains(&b.id),
        "{unknown:?}"
    );
    // Both have this name: which one is not guessed.
    let name = daemon.get("/api/v1/flamegraph?app=emberscope-demo")?;
    ensure!(name.status == 409 && name.body.contains(&a.id) && name.body.contains(&b.id), "{name:?}");
    let early = ask_json(daemon, &format!("app={}&from=1700000000&until=1700000060", a.id))?;
    ensure!(early["windows"] == 0 && early["total"] == 0 && early["note"].is_string(), "{early}");
    Ok(())
}

pub fn commands_ask_the_daemon(here: &Here, daemon: &Daemon, a: &App, b: &App, dir: &Path) -> Result<()> {
    let binary = here.binary.display().to_string();
    let ask = |words: &[&str]| -> Result<Ran> {
        ran([binary.as_str()].iter().chain(words).chain(&["--url", daemon.url()]).copied())
    };
    let apps = ask(&["apps"])?.good()?;
    ensure!(apps.out.contains(&a.id) && apps.out.contains(&b.id) && apps.err.contains("0 lost"), "{apps:#?}");
    let executors = ask(&["executors", "--app", &a.id, "--json"])?.good()?;
    let rows: Value = serde_json::from_str(&executors.out)?;
    let rows = rows["executors"].as_array().context("no rows")?.clone();
    let jvms: Vec<_> = rows.iter().filter(|row| row["role"] == "executor").collect();
    ensure!(jvms.len() == 2 && jvms.iter().all(|row| row["app"] == *a.id), "{rows:?}");
    ensure!(jvms.iter().all(|row| row["jvm"]["names"] == "memory"), "{rows:?}");
    let top = ask(&["top", "--app", &a.id, "--role", "executor", "--limit", "40"])?.good()?;
    ensure!(top.out.trim_start().starts_with("SELF") && top.out.lines().count() >= 41, "{top:#?}");
    ensure!(top.out.contains("org.apache.spark.unsafe.types.UTF8String.levenshteinDistance"), "{top:#?}");
    let status = ask(&["status"])?.good()?;
    ensure!(status.out.contains(&a.id), "{}", status.out);

    let svg = dir.join("cli.svg");
    ask(&["flamegraph", "--app", &a.id, "--executor", "0", "-o", &svg.display().to_string()])?.good()?;
    well_formed(here, &svg, &std::fs::read_to_string(&svg)?)?;
    let grouped = ask(&[
        "flamegraph",
        "--app",
        &b.id,
        "--role",
        "executor",
        "--group",
        "executor",
        "--format",
        "folded",
    ])?
    .good()?;
    ensure!(
        !grouped.out.is_empty() && grouped.out.lines().all(|line| line.starts_with("executor=0;")),
        "{grouped:?}"
    );

    ask(&["top", "--app", "app-0"])?.refused(3, &["app-0", &a.id, &b.id])?;
    ask(&["top", "--app", "emberscope-demo"])?.refused(2, &[&a.id, &b.id])?;
    ask(&["top", "--app", &a.id, "--executor", "77"])?.refused(3, &["executor=77"])?;
    Ok(())
}

pub fn a_recording_needs_no_daemon(here: &Here, a: &App, dir: &Path) -> Result<()> {
    let binary = here.binary.display().to_string();
    let record =
        |words: &[&str]| ran([binary.as_str(), "record", "--log", "error"].iter().chain(words).copied());
    let pid = a.executors["0"].to_string();
    let (picture, lines) = (dir.join("record.svg"), dir.join("record.folded"));
    record(&["--duration", "5s", "--pid", &pid, "-o", &picture.display().to_string()])?.good()?;
    let svg = std::fs::read_to_string(&picture)?;
    well_formed(here, &picture, &svg)?;
    ensure!(svg.contains("org.apache.spark."), "no method of Spark in the recording");
    let path = lines.display().to_string();
    record(&["--duration", "2s", "--app", &a.id, "--group", "pid", "-o", &path])?.good()?;
    let stacks = folded(&std::fs::read_to_string(&lines)?)?;
    for stack in stacks.keys() {
        let pid = stack.split(';').next().and_then(|part| part.strip_prefix("pid="));
        ensure!(pid.is_some_and(|pid| pid.parse().is_ok_and(|pid| a.has(pid))), "{stack}");
    }
    ensure!(!stacks.is_empty());
    record(&["--duration", "1s", "--app", "app-0", "-o", &path])?.refused(3, &["app-0", &a.id])?;
    record(&["--duration", "1s", "-o", "out.png"])?.refused(2, &["out.png", "--format"])?;
    Ok(())
}
