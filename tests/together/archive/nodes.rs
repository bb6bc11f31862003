//! Three nodes, one archive: one answer of all, and what it says of a node that died and of one whose clock is another.
//!
//! The three daemons see one machine, each as a node of another name. The clock is another by libfaketime, which only that
//! daemon gets.

use super::{SMALL, busy, now_ms, wait, wait_copied};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, ran, skip, wait_visible};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use xtask::root::signal;

/// By how much the third node's clock is ahead, seconds.
const AHEAD: f64 = 30.0;
/// For how long the second is made to have been silent.
const SILENT: Duration = Duration::from_secs(600);

fn faketime() -> Option<PathBuf> {
    let libraries = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"].map(Path::new);
    libraries.into_iter().map(|dir| dir.join("faketime/libfaketimeMT.so.1")).find(|library| library.is_file())
}

#[test]
fn a_dead_node_and_a_clock_that_is_off_are_named_in_answers() -> Result<()> {
    let test = "a_dead_node_and_a_clock_that_is_off_are_named_in_answers";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let Some(library) = faketime() else {
        skip(test, "another clock comes from libfaketime, which is not there: apt-get install faketime");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let archive = dir.path().join("archive");
    std::fs::create_dir(&archive)?;
    let url = format!("file://{}", archive.display());
    let _busy = busy(dir.path())?;
    let node = |name: &str, environment: &[(String, String)]| {
        let flags = [&SMALL[..], &["--archive", &url, "--node", name]].concat();
        Daemon::start_in(&here.binary, &dir.path().join(name), &flags, environment)
    };
    let off = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", format!("+{AHEAD}s")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let off = off.map(|(name, value)| (name.to_owned(), value));
    let (one, two, three) = (node("one", &[])?, node("two", &[])?, node("three", &off)?);
    let until = now_ms()? + 4_000;
    for daemon in [&one, &two] {
        wait_visible(daemon, until)?;
    }
    for daemon in [&one, &two, &three] {
        wait_copied(daemon)?;
    }

    // Each daemon knows of its own clock.
    let ahead = |daemon: &Daemon| -> Result<Option<f64>> {
        Ok(daemon.json("/api/v1/status")?["archive"]["clock_ahead_seconds"].as_f64())
    };
    let told = wait("the third node's clock is told", || ahead(&three))?;
    ensure!((told - AHEAD).abs() < 3.0, "{told} s");
    let own = ahead(&one)?.context("the first node's clock")?;
    ensure!(own.abs() < 3.0, "{own} s");

    // The second dies; some minutes go by.
    signal(two.pid(), Signal::KILL);
    for beat in std::fs::read_dir(archive.join("v1/heartbeats/two"))? {
        let then = SystemTime::now() - SILENT;
        std::fs::File::options().write(true).open(beat?.path())?.set_modified(then)?;
    }
    let serve = Daemon::serve(&here.binary, &dir.path().join("cache"), &url, &["--refresh", "1s"], &[])?;
    let range = format!("from={}&until={}", until - 600_000, now_ms()? + 60_000);
    let whole = serve.json(&format!("/api/v1/flamegraph?format=json&{range}"))?;
    let parts = whole["quality"]["missing_parts"].as_array().context("nothing is missing")?;
    let says = |node: &str| {
        let part = parts.iter().find(|part| part["name"] == format!("node {node}"));
        part.and_then(|part| part["says"].as_str()).unwrap_or_default()
    };
    ensure!(says("two").starts_with("has sent nothing since "), "{parts:?}");
    ensure!(says("three").contains("s ahead of the archive's"), "{parts:?}");
    ensure!(parts.len() == 2, "{parts:?}");

    // All of it is the sum of its nodes.
    let total = |answer: &Value| answer["quality"]["samples"].as_u64().context("samples");
    let mut sum = 0;
    for name in ["one", "two", "three"] {
        let answer = serve.json(&format!("/api/v1/flamegraph?format=json&node={name}&{range}"))?;
        let samples = total(&answer)?;
        ensure!(samples > 0, "nothing of node {name}");
        sum += samples;
    }
    let again = total(&serve.json(&format!("/api/v1/flamegraph?format=json&{range}"))?)?;
    ensure!((total(&whole)?..=again).contains(&sum), "{sum} of nodes, {} and {again} in all", total(&whole)?);

    // As a user and an alert see it.
    let binary = here.binary.to_str().context("the binary's path")?;
    let words = [binary, "top", "--url", serve.url(), "--from", "10m"];
    let line = ran(words)?.good()?.err;
    ensure!(
        line.contains("MISSING: 2 parts (") && line.contains("node two has sent nothing since"),
        "{line}"
    );
    let metrics = wait("metrics of nodes", || {
        let text = serve.get("/metrics")?.body;
        Ok(text.contains("emberscope_archive_nodes{state=\"silent\"} 1").then_some(text))
    })?;
    ensure!(metrics.contains("emberscope_archive_nodes{state=\"clock\"} 1"), "{metrics}");

    // One that is told to stop says so.
    ensure!(one.stop()?.success());
    let left = std::fs::read_dir(archive.join("v1/heartbeats/one")).into_iter().flatten().count();
    ensure!(left == 0, "its heartbeat is there still");
    ensure!(three.stop()?.success());
    Ok(())
}
