//! An archive on a real S3-compatible server: what `emberscope serve` answers from it is what the daemon answers that
//! wrote it, also after the server was away; wrong credentials are told and disturb nothing.
//!
//! The server is versitygw, built from tests/s3-server. No Spark: the processes of this machine are enough.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running, skip, wait_visible};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use xtask::launch::{S3, s3};

/// Short windows; half of the memory makes a block.
const SMALL: [&str; 4] = ["--window", "2s", "--store-bytes", "256KiB"];
const WINDOW_MS: u64 = 2_000;
/// How long what takes seconds may take on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(180);

fn now_ms() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// The server's program; None after saying that `test` is skipped.
fn server(test: &str) -> Result<Option<PathBuf>> {
    static BUILD: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILD.get_or_init(|| s3::build().unwrap_or_else(|error| Err(format!("{error:#}"))));
    match built {
        Ok(path) => Ok(Some(path.clone())),
        Err(why) => {
            skip(test, why);
            Ok(None)
        }
    }
}

fn busy(dir: &Path) -> Result<Running> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    Running::start("a busy shell", &mut shell, &dir.join("busy.log"))
}

fn archive(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["archive"].clone())
}

fn wait<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        ensure!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Waits until all that is visible now is in the archive.
fn wait_copied(daemon: &Daemon) -> Result<()> {
    let (begun, mut last, mut rounds) = (Instant::now(), 0.0_f64, 0);
    wait("everything is copied", || {
        let archive = archive(daemon)?;
        let behind = archive["behind_seconds"].as_f64().context("behind_seconds")?;
        // The second round that ended since then began after it.
        let ended = begun.elapsed().as_secs_f64() - behind;
        rounds += u32::from(ended > last + 1.0);
        last = last.max(ended);
        Ok((rounds >= 2).then_some(()))
    })
}

fn questions(range: &str) -> Vec<String> {
    vec![
        format!("/api/v1/flamegraph?format=json&{range}"),
        format!("/api/v1/flamegraph?format=folded&group=role,pid&annotate=1&{range}"),
        format!("/api/v1/flamegraph?role=other&format=folded&unit=ns&{range}"),
        format!("/api/v1/series?by=role&step=4s&{range}"),
        format!("/api/v1/ledger?by=role,thread_class&{range}"),
        format!("/api/v1/labels/pid/values?{range}"),
        format!("/api/v1/labels?{range}"),
        format!("/api/v1/processes?{range}"),
        format!("/api/v1/top?{range}"),
        format!("/api/v1/apps?{range}"),
    ]
}

/// As answered, but for the span of all windows that are kept.
fn answer(daemon: &Daemon, path: &str) -> Result<String> {
    let reply = daemon.get(path)?;
    ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
    let Ok(Value::Object(mut answer)) = serde_json::from_str(&reply.body) else { return Ok(reply.body) };
    answer.remove("span");
    Ok(Value::Object(answer).to_string())
}

fn ensure_same(daemon: &Daemon, server: &Daemon, range: &str) -> Result<()> {
    for question in questions(range) {
        let (one, other) = (answer(daemon, &question)?, answer(server, &question)?);
        let first = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        let at = first.map(|(one, other)| {
            let place = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
            let short = |line: &str| line.chars().skip(place).take(300).collect::<String>();
            (short(one), short(other))
        });
        ensure!(one == other, "{question} is answered otherwise: {at:?}");
    }
    Ok(())
}

#[test]
fn an_archive_on_s3_answers_as_the_daemon_does() -> Result<()> {
    const TEST: &str = "an_archive_on_s3_answers_as_the_daemon_does";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(binary) = server(TEST)? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let mut s3 = S3::start(&binary, &dir.path().join("s3"))?;
    let url = s3.url("a/prefix");
    let arguments = [&SMALL[..], &["--archive", &url]].concat();
    let daemon = Daemon::start_in(&here.binary, &dir.path().join("data"), &arguments, &s3.environment())?;
    let _busy = busy(dir.path())?;
    let from = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait("two blocks are in the archive", || {
        Ok((archive(&daemon)?["blocks"].as_u64() >= Some(2)).then_some(()))
    })?;
    let until = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait_visible(&daemon, until)?;
    wait_copied(&daemon)?;
    let server = Daemon::serve(
        &here.binary,
        &dir.path().join("cache"),
        &url,
        &["--window", "2s", "--refresh", "1s"],
        &s3.environment(),
    )?;
    wait("the server is ready", || Ok((server.get("/readyz")?.status == 200).then_some(())))?;
    let range = format!("from={from}&until={until}");
    ensure_same(&daemon, &server, &range)?;
    let page = server.get("/")?;
    ensure!(page.status == 200 && page.body.contains("<title"), "no page: {}", page.status);

    s3.end();
    let failing =
        wait("the failure is told", || Ok(archive(&daemon)?["failing"].as_str().map(str::to_owned)))?;
    ensure!(failing.contains(&url), "{failing}");
    // Sampling goes on, and what was seen is answered.
    let later = now_ms()? / WINDOW_MS * WINDOW_MS + 3 * WINDOW_MS;
    wait_visible(&daemon, later)?;
    ensure_same(&daemon, &server, &range)?;
    let status = server.json("/api/v1/status")?["archive"].clone();
    ensure!(status["failing"].is_string() && status["set_aside"] == 0, "{status}");

    s3.begin()?;
    wait("it is written again", || Ok(archive(&daemon)?["failing"].is_null().then_some(())))?;
    wait_copied(&daemon)?;
    // Lists of a second ago.
    std::thread::sleep(Duration::from_secs(3));
    ensure_same(&daemon, &server, &format!("from={from}&until={later}"))?;
    let (written, read) = (archive(&daemon)?, server.json("/api/v1/status")?["archive"].clone());
    ensure!(written["errors"]["failed"].as_u64() > Some(0) && written["missed_blocks"] == 0, "{written}");
    ensure!(read["failing"].is_null() && read["set_aside"] == 0, "{read}");
    let metrics = server.get("/metrics")?.body;
    ensure!(metrics.contains("emberscope_archive_read_files_total"), "{metrics}");
    ensure!(daemon.stop()?.success() && server.stop()?.success());
    Ok(())
}

#[test]
fn wrong_credentials_are_told_and_disturb_nothing() -> Result<()> {
    const TEST: &str = "wrong_credentials_are_told_and_disturb_nothing";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let Some(binary) = server(TEST)? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let s3 = S3::start(&binary, &dir.path().join("s3"))?;
    let wrong = s3.environment_with("wrong");
    let url = s3.url("x");
    let arguments = [&SMALL[..], &["--archive", &url]].concat();
    let daemon = Daemon::start_in(&here.binary, &dir.path().join("data"), &arguments, &wrong)?;
    let says = wait("the failure is told", || Ok(archive(&daemon)?["failing"].as_str().map(str::to_owned)))?;
    ensure!(says.contains("credentials") && says.contains("AWS_ACCESS_KEY_ID"), "{says}");
    wait_visible(&daemon, now_ms()? + 2 * WINDOW_MS)?;
    let server = Daemon::serve(&here.binary, &dir.path().join("cache"), &url, &["--refresh", "1s"], &wrong)?;
    let ready = wait("it says why it is not ready", || {
        let reply = server.get("/readyz")?;
        Ok((reply.status == 503 && reply.body.contains("credentials")).then_some(reply.body))
    })?;
    ensure!(ready.contains("AWS_ACCESS_KEY_ID"), "{ready}");
    let reply = server.get("/api/v1/flamegraph?format=json")?;
    ensure!(
        reply.status == 503 && reply.body.contains("archive_unavailable"),
        "{}: {}",
        reply.status,
        reply.body
    );
    // A bucket that is not there is another thing.
    let none =
        Daemon::serve(&here.binary, &dir.path().join("cache-2"), "s3://none/x", &[], &s3.environment())?;
    wait("a bucket that is not there is told", || {
        let reply = none.get("/readyz")?;
        Ok((reply.status == 503 && reply.body.contains("no such object or bucket")).then_some(()))
    })?;
    Ok(())
}
