//! What the daemon keeps on disk, on real Spark: a kill and a restart change no answer about closed windows.
//!
//! A real job runs under a daemon with short windows and little memory for them, so that the answers come from
//! blocks and from the journal at once. Then the daemon is killed with SIGKILL, twice, and stopped once: each
//! that is started after that on the same directory must say the same, to the last byte.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, WARM_UP, wait_visible};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// Short windows; half of the memory makes a block.
const SMALL: [&str; 4] = ["--window", "2s", "--store-bytes", "256KiB"];
const WINDOW_MS: u64 = 2_000;

fn now_ms() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// What is asked each time, about windows that have closed.
fn questions(app: &str, range: &str) -> Vec<String> {
    vec![
        format!("/api/v1/flamegraph?app={app}&format=json&{range}"),
        format!("/api/v1/flamegraph?format=json&{range}"),
        format!("/api/v1/flamegraph?app={app}&format=folded&group=executor,stage,task&annotate=1&{range}"),
        format!("/api/v1/flamegraph?app={app}&executor=0&thread_class=task&format=folded&unit=ns&{range}"),
        format!("/api/v1/series?app={app}&by=stage&step=4s&{range}"),
        format!("/api/v1/ledger?app={app}&by=stage,task&{range}"),
        format!("/api/v1/labels/task/values?{range}"),
    ]
}

/// As answered, but for the span of all windows that are kept: that grows while a daemon runs.
fn answers(daemon: &Daemon, questions: &[String]) -> Result<Vec<String>> {
    let answer = |path: &String| {
        let reply = daemon.get(path)?;
        ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
        let Ok(Value::Object(mut answer)) = serde_json::from_str(&reply.body) else { return Ok(reply.body) };
        ensure!(answer.remove("span").is_some() || !path.contains("flamegraph"), "{path} says no span");
        Ok(Value::Object(answer).to_string())
    };
    questions.iter().map(answer).collect()
}

fn ensure_same(place: &str, questions: &[String], before: &[String], after: &[String]) -> Result<()> {
    for ((question, before), after) in questions.iter().zip(before).zip(after) {
        let first = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        let short = |line: &str| line.chars().take(300).collect::<String>();
        let first = first.map(|(before, after)| (short(before), short(after)));
        ensure!(before == after, "{place}: {question} is answered otherwise: {first:?}");
    }
    Ok(())
}

fn disk(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["store"]["disk"].clone())
}

fn kill(daemon: Daemon) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(daemon.pid())?).context("pid 0")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[test]
fn a_kill_and_a_restart_change_no_answer() -> Result<()> {
    let Some(here) = Here::or_skip("a_kill_and_a_restart_change_no_answer") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &SMALL)?;
    let from = now_ms()? / WINDOW_MS * WINDOW_MS;
    let mut job = here.spark("demo.py", dir.path()).arg("--seconds").arg("20").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WARM_UP)?;
    job.wait(WARM_UP)?;
    let until = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait_visible(&daemon, until)?;
    let range = format!("from={from}&until={until}");
    let questions = questions(&app, &range);
    let known = answers(&daemon, &questions)?;
    let samples = serde_json::from_str::<Value>(&known[0])?["quality"]["samples"].as_u64();
    ensure!(samples.is_some_and(|samples| samples > 200), "the job has {samples:?} samples");
    let held = disk(&daemon)?;
    ensure!(held["blocks"].as_u64() > Some(0), "no block was written: {held}");
    ensure!(held["failing"] == Value::Array(Vec::new()) && held["set_aside"] == 0, "{held}");

    kill(daemon)?;
    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a kill", &questions, &known, &answers(&daemon, &questions)?)?;
    let held = disk(&daemon)?;
    ensure!(held["set_aside"] == 0 && held["blocks"].as_u64() > Some(0), "{held}");
    // It goes on: windows of its own, in the same journal.
    let later = now_ms()?;
    wait_visible(&daemon, later)?;

    kill(daemon)?;
    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a second kill", &questions, &known, &answers(&daemon, &questions)?)?;
    let after = daemon.json(&format!("/api/v1/flamegraph?format=json&from={until}&until={later}"))?;
    ensure!(after["quality"]["samples"].as_u64() > Some(0), "what the second daemon sampled is gone");
    ensure!(daemon.stop()?.success());

    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a stop", &questions, &known, &answers(&daemon, &questions)?)?;
    let held = disk(&daemon)?;
    ensure!(held["set_aside"] == 0 && held["cut_bytes"] == 0, "a stop leaves nothing torn: {held}");
    ensure!(daemon.stop()?.success());
    Ok(())
}
