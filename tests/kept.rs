//! What the daemon keeps on disk, on real Spark: a kill and a restart change no answer about closed windows.
//!
//! A daemon that has recorded a real job is killed with SIGKILL, twice, and stopped once: each that is started after
//! that on the same directory must say the same, to the last byte. What one could not push the next sends.

use crate::held::{SMALL, answers, disk, ensure_same, held, kill, now_ms};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, SparkJob, VISIBLE, WARM_UP, wait_for, wait_visible};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that takes what it is sent, and counts it.
fn receiver() -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let field = line.to_lowercase();
                length =
                    field.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
                line.clear();
            }
            let body = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink());
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            if length > 0 && body.is_ok_and(|bytes| bytes == length) {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        }
    });
    Ok((url, taken))
}

#[test]
fn a_kill_and_a_restart_change_no_answer() -> Result<()> {
    let Some(here) = Here::or_skip("a_kill_and_a_restart_change_no_answer") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let held = held(&here)?;
    held.copy(dir.path())?;
    let (until, questions, known) = (held.until, &held.questions, &held.known);

    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a kill", questions, known, &answers(&daemon, questions)?)?;
    let disk_after = disk(&daemon)?;
    ensure!(disk_after["set_aside"] == 0 && disk_after["blocks"].as_u64() > Some(0), "{disk_after}");
    // It goes on: windows of its own, in the same journal.
    let later = now_ms()?;
    wait_visible(&daemon, later)?;

    kill(daemon)?;
    // Nobody takes what this one pushes (discard).
    let daemon = here.daemon(dir.path(), &[&SMALL[..], &["--push-otlp", "http://127.0.0.1:9"]].concat())?;
    ensure_same("after a second kill", questions, known, &answers(&daemon, questions)?)?;
    let after = daemon.json(&format!("/api/v1/flamegraph?format=json&from={until}&until={later}"))?;
    ensure!(after["quality"]["samples"].as_u64() > Some(0), "what the second daemon sampled is gone");
    wait_visible(&daemon, now_ms()?)?;
    ensure!(daemon.stop()?.success());
    let waiting = || -> Result<usize> { Ok(std::fs::read_dir(dir.path().join("data/push-otlp"))?.count()) };
    let kept = waiting()?;
    ensure!(kept > 0, "no window waits for its server");

    let (server, taken) = receiver()?;
    let daemon = here.daemon(dir.path(), &[&SMALL[..], &["--push-otlp", &server]].concat())?;
    wait_for("what waited is sent", VISIBLE, || Ok((waiting()? == 0).then_some(())))?;
    let state = wait_for("its counts", VISIBLE, || {
        let state = daemon.json("/api/v1/status")?["push_otlp"].clone();
        Ok(state["dropped"].is_object().then_some(state))
    })?;
    let mut dropped = state["dropped"].as_object().context("no counts")?.values().filter_map(Value::as_u64);
    ensure!(
        taken.load(Ordering::Relaxed) >= kept && dropped.all(|count| count == 0),
        "{kept} waited: {taken:?}, {state}"
    );
    ensure_same("after a stop", questions, known, &answers(&daemon, questions)?)?;
    let disk_after = disk(&daemon)?;
    ensure!(
        disk_after["set_aside"] == 0 && disk_after["cut_bytes"] == 0,
        "a stop leaves nothing torn: {disk_after}"
    );
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// What Spark says of stages that have ended, by number and attempt, but for where its page of each is; and whether it
/// says so itself or the store does.
fn names(daemon: &Daemon, question: &str) -> Result<(BTreeMap<String, Value>, Value)> {
    let answer = daemon.json(question)?;
    let mut names = BTreeMap::new();
    for row in answer["stages"].as_array().context("no stages")? {
        let mut spark = row["spark"].clone();
        if spark["status"] == "COMPLETE" {
            spark["page"] = Value::Null;
            names.insert(format!("{}.{}", row["stage"], row["stage_attempt"]), spark);
        }
    }
    Ok((names, answer["spark"]["state"].clone()))
}

/// How often something that Spark said was kept.
fn kept(daemon: &Daemon) -> Result<u64> {
    daemon.json("/api/v1/status")?["store"]["spark_facts"].as_u64().context("no count of what is kept")
}

fn ensure_kept(
    place: &str,
    live: &BTreeMap<String, Value>,
    asked: &(BTreeMap<String, Value>, Value),
) -> Result<()> {
    ensure!(asked.1 == "kept", "{place}: the names are {}", asked.1);
    for (stage, spark) in live {
        let now = asked.0.get(stage);
        ensure!(now == Some(spark), "{place}: stage {stage} was {spark}, and is {now:?}");
    }
    Ok(())
}

/// The last instant up to `until` with this time of day (`2026-11-29T22:03:59.721Z`); both in milliseconds since 1970.
fn instant(text: &str, until: u64) -> Option<u64> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let time = text.split_once('T')?.1.trim_end_matches('Z');
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let seconds = clock.split(':').try_fold(0u64, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    let of_day = seconds * 1000 + format!("{fraction:0<3}").get(..3)?.parse::<u64>().ok()?;
    Some(until - (until % DAY + DAY - of_day) % DAY)
}

/// Queries, the operators and the plan of one, runs, and two parts of a run compared: as the node that recorded them says.
fn ensure_archive_says_the_same(daemon: &Daemon, server: &Daemon, app: &str, range: &str) -> Result<()> {
    let time = |name: &str| -> Result<u64> {
        let value = range.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        Ok(value.context("a time")?.parse()?)
    };
    let (from, until) = (time("from")?, time("until")?);
    let sql = format!("/api/v1/sql?app={app}&{range}");
    let queries = daemon.json(&sql)?["queries"].as_array().context("no queries")?.clone();
    let query = queries.iter().find(|query| query["execution"].is_u64()).context("no query with a number")?;
    println!("{} queries; one is {query}", queries.len());
    // Both sides have tasks: on a crowded machine an application takes most of the range to begin.
    let begun = query["begun"].as_str().and_then(|begun| instant(begun, until)).context("when it began")?;
    let middle = until - until.saturating_sub(begun) / 3;
    let sides = format!("left.from={from}&left.until={middle}&right.from={middle}&right.until={until}");
    let questions: [(String, &[&str]); 4] = [
        (sql.clone(), &["queries"]),
        (format!("{sql}&execution={}", query["execution"]), &["operators", "plan"]),
        (format!("/api/v1/runs?job=emberscope-demo&{range}"), &["runs"]),
        (
            format!("/api/v1/compare?left.app={app}&right.app={app}&{sides}"),
            &["whole", "queries", "stages", "operators", "methods"],
        ),
    ];
    for (question, parts) in questions {
        let of = |answer: Value| -> Vec<Value> { parts.iter().map(|part| answer[part].clone()).collect() };
        let want = of(daemon.json(&question)?);
        ensure!(want.iter().all(|part| !part.is_null()), "{question}: {want:?}");
        let mut got = Vec::new();
        let same = wait_for("the archive's answer", VISIBLE, || {
            got = of(server.json(&question)?);
            Ok((got == want).then_some(()))
        });
        ensure!(same.is_ok(), "{question}: the node says {want:?}, the archive {got:?}");
    }
    Ok(())
}

#[test]
fn names_of_stages_outlive_the_driver_the_daemon_and_the_node() -> Result<()> {
    let Some(here) = Here::or_skip("names_of_stages_outlive_the_driver_the_daemon_and_the_node") else {
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let archive = dir.path().join("archive");
    std::fs::create_dir(&archive)?;
    let url = format!("file://{}", archive.display());
    let arguments = [&SMALL[..], &["--archive", &url]].concat();
    let daemon = here.daemon(dir.path(), &arguments)?;
    let from = now_ms()?;
    // It is killed long before.
    let mut job = here.spark("demo.py", dir.path()).arg("--seconds").arg("3600").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    let (question, live) = wait_for("names of stages that ended", WARM_UP, || {
        let question = format!("/api/v1/stages?app={app}&from={from}&until={}", now_ms()?);
        // An application is there once a window has it.
        if daemon.get(&question)?.status != 200 {
            return Ok(None);
        }
        let (names, state) = names(&daemon, &question)?;
        Ok((state == "ready" && !names.is_empty()).then_some((question, names)))
    })?;
    // What is kept from now on was read after that, or then.
    let before = kept(&daemon)?;
    wait_for("what Spark said is kept", VISIBLE, || Ok((kept(&daemon)? > before).then_some(())))?;
    wait_visible(&daemon, now_ms()?)?;
    drop(job);

    kill(daemon)?;
    let daemon = here.daemon(dir.path(), &arguments)?;
    ensure_kept("after a kill", &live, &names(&daemon, &question)?)?;
    ensure!(daemon.stop()?.success());
    let daemon = here.daemon(dir.path(), &arguments)?;
    ensure_kept("after a stop", &live, &names(&daemon, &question)?)?;

    let cache = dir.path().join("cache");
    let server = Daemon::serve(&here.binary, &cache, &url, &["--window", "2s", "--refresh", "1s"], &[])?;
    // The archive is some seconds behind.
    let asked = wait_for("names from the archive", VISIBLE, || {
        let reply = server.get(&question)?;
        let asked = if reply.status == 200 { Some(names(&server, &question)?) } else { None };
        Ok(asked.filter(|(names, _)| live.keys().all(|stage| names.contains_key(stage))))
    })?;
    ensure_kept("from the archive", &live, &asked)?;
    let range = question.split_once('&').map_or("", |(_, range)| range);
    ensure_archive_says_the_same(&daemon, &server, &app, range)?;
    ensure!(server.stop()?.success() && daemon.stop()?.success());
    Ok(())
}

/// Where REST is off, names come from the event log once the driver has ended.
#[test]
fn names_come_from_the_event_log_of_a_driver_that_nobody_could_ask() -> Result<()> {
    let test = "names_come_from_the_event_log_of_a_driver_that_nobody_could_ask";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let work = dir.path().join("spark");
    let logs = work.join("events");
    let arguments = [&SMALL[..], &["--event-logs", logs.to_str().context("a path")?]].concat();
    let daemon = here.daemon(dir.path(), &arguments)?;
    let from = now_ms()?;
    let job =
        SparkJob::new("sql_operators.py", &here.venv, &here.java, &work).master("local-cluster[1,2,1024]");
    let job = job.conf("spark.ui.enabled", "false").event_log();
    let mut job = job.arg("--only").arg("sort").arg("--rows").arg("16").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WARM_UP)?;
    let until = now_ms()?;
    wait_visible(&daemon, until)?;
    let range = format!("app={app}&from={from}&until={until}");
    let unknown = daemon.json(&format!("/api/v1/labels/sql/values?{range}"))?;
    ensure!(unknown["values"][0]["value"] == "unknown", "nobody told of queries: {unknown}");
    std::fs::write(work.join("stop"), "")?;
    job.wait(WARM_UP)?;
    let queries = wait_for("names from the event log", WARM_UP, || {
        let answer = daemon.json(&format!("/api/v1/sql?{range}"))?;
        let queries = answer["queries"].as_array().context("no queries")?.clone();
        Ok(queries.iter().any(|row| row["description"] == "sort 16").then_some(queries))
    })?;
    let query = queries.iter().find(|row| row["description"] == "sort 16").context("the query")?;
    let operators = daemon
        .json(&format!("/api/v1/sql?{range}&execution={}", query["execution"].as_u64().context("id")?))?;
    ensure!(operators["plan"]["says"] == "", "its plan is there: {}", operators["plan"]);
    let first = &operators["operators"][0];
    ensure!(first["operator"] == "Sort", "{first}");
    let stages = daemon.json(&format!("/api/v1/stages?{range}&sql={}", query["execution"]))?;
    let source = stages["spark"]["source"].as_str().unwrap_or_default().to_owned();
    ensure!(source.starts_with("event log "), "{source} told of {}", stages["stages"]);
    ensure!(daemon.stop()?.success());
    Ok(())
}
