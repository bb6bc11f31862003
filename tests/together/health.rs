//! What the daemon does about its own failures: panics, aborts, a sampler that hangs. Faults are asked for by
//! `EMBERSCOPE_DANGEROUS_FAULTS` (profiler/supervise/src/faults.rs).

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here};
use serde_json::Value;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(180);
/// Burns CPU in a method of its own; its names are read from the JVM's memory.
const BUSY: &str = "public class Busy {
    static long work(long x) { for (int i = 0; i < 100_000; i++) { x = x * 6364136223846793005L + 7; } return x; }
    public static void main(String[] args) { long x = 1; while (x != 0) { x = work(x) | 1; } }
}";

/// Polls until there is a value; while there is none, no answer is no failure.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Ok(Some(found)) = look() {
            return Ok(found);
        }
        ensure!(begun.elapsed() < SOON, "{what}: not in {SOON:?}; {:?}", look().err());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn start(here: &Here, dir: &Path, faults: &str, more: &[(&str, &str)]) -> Result<Daemon> {
    let mut environment = vec![("EMBERSCOPE_DANGEROUS_FAULTS".to_owned(), faults.to_owned())];
    environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Daemon::start_in(&here.binary, &dir.join("data"), &["--window", "1s"], &environment)
}

fn log_of(dir: &Path) -> Result<String> {
    Ok(std::fs::read_to_string(dir.join("data.log"))?)
}

fn windows(daemon: &Daemon) -> Result<u64> {
    daemon.json("/api/v1/status")?["store"]["windows"].as_u64().context("no windows in the status")
}

fn metric(daemon: &Daemon, series: &str) -> Result<f64> {
    let metrics = daemon.get("/metrics")?.body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)).context("no such series")?;
    Ok(line.trim().parse()?)
}

#[test]
fn a_panic_in_any_other_thread_does_not_end_the_sampling() -> Result<()> {
    let test = "a_panic_in_any_other_thread_does_not_end_the_sampling";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let busy = here.java("Busy", BUSY).start(dir.path())?;
    // Once in all of them, and in those whose work comes again and again a few times more. `naming` is on the thread that
    // samples.
    let faults = [
        ("http", 3),
        ("journal", 2),
        ("blocks", 1),
        ("unwind-tables", 5),
        ("unwind-builder", 5),
        ("reader", 5),
        ("watchdog", 1),
        ("naming", 5),
    ];
    let spec: Vec<String> = faults.iter().map(|(point, times)| format!("panic:{point}:2:{times}")).collect();
    let daemon = start(&here, dir.path(), &spec.join(","), &[])?;
    for (point, times) in faults {
        let thread = if point == "naming" { "sampler" } else { point };
        let series = format!("emberscope_thread_panics_total{{thread=\"{thread}\"}}");
        wait_for(&series, || Ok((metric(&daemon, &series)? >= f64::from(times)).then_some(())))
            .with_context(|| log_of(dir.path()).unwrap_or_default())?;
    }
    let path = format!("/api/v1/flamegraph?pid={}&format=folded", busy.pid());
    wait_for("names after all that", || Ok(daemon.get(&path)?.body.contains("Busy.work").then_some(())))?;
    let before = windows(&daemon)?;
    wait_for("windows after all that", || Ok((windows(&daemon)? > before + 2).then_some(())))?;
    ensure!(daemon.get("/healthz")?.status == 200 && daemon.get("/readyz")?.status == 200);
    let log = log_of(dir.path())?;
    ensure!(log.contains("a thread panicked") && log.contains("an injected panic at reader"), "{log}");
    ensure!(daemon.stop()?.success());
    Ok(())
}

#[test]
fn a_panic_of_the_sampler_ends_the_process_and_no_window_is_lost() -> Result<()> {
    let test = "a_panic_of_the_sampler_ends_the_process_and_no_window_is_lost";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = start(&here, dir.path(), "panic:sampler:100", &[])?;
    let mut seen = 0;
    wait_for("the end of the daemon", || {
        match windows(&daemon) {
            Ok(held) => seen = held,
            Err(_) => return Ok(log_of(dir.path())?.contains("sampling ended").then_some(())),
        }
        Ok(None)
    })?;
    let status = daemon.stop()?;
    ensure!(status.code() == Some(1), "{status}");
    let log = log_of(dir.path())?;
    ensure!(log.contains("an injected panic at sampler"), "the cause is not in the log: {log}");
    ensure!(seen > 0 && !log.contains("a window is lost"), "{seen} windows: {log}");
    let again = start(&here, dir.path(), "", &[])?;
    let held = windows(&again)?;
    ensure!(held >= seen, "{held} windows of {seen} were found again");
    ensure!(again.stop()?.success());
    Ok(())
}

#[test]
fn what_was_read_at_an_abort_is_left_alone_by_the_next_daemon() -> Result<()> {
    let test = "what_was_read_at_an_abort_is_left_alone_by_the_next_daemon";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    // It may come down before it says that it is ready.
    drop(
        start(&here, dir.path(), "abort:note:1", &[])
            .and_then(|daemon| wait_for("the abort", || Ok(daemon.get("/healthz").is_err().then_some(())))),
    );
    let next = start(&here, dir.path(), "", &[])?;
    let quarantine = |daemon: &Daemon| -> Result<Value> {
        Ok(daemon.json("/api/v1/status")?["health"]["quarantine"].clone())
    };
    let entries = quarantine(&next)?["entries"].as_array().context("no entries")?.clone();
    // Another thread may have read something in the same instant.
    ensure!(!entries.is_empty() && entries.iter().all(|entry| entry["strikes"] == 1), "{entries:?}");
    let known = entries.len();
    let what = entries[0]["what"].as_str().context("what")?;
    ensure!(log_of(dir.path())?.contains(what) && metric(&next, "emberscope_quarantined")? == known as f64);
    let before = windows(&next)?;
    wait_for("windows", || Ok((windows(&next)? > before + 1).then_some(())))?;
    ensure!(next.stop()?.success());
    // An end in order adds nothing, and forgets nothing.
    let third = start(&here, dir.path(), "", &[])?;
    let entries = quarantine(&third)?["entries"].as_array().context("no entries")?.clone();
    ensure!(entries.len() == known && entries.iter().all(|entry| entry["strikes"] == 1), "{entries:?}");
    ensure!(third.stop()?.success());
    Ok(())
}

#[test]
fn a_sampler_that_hangs_is_not_healthy_and_the_watchdog_hears_nothing() -> Result<()> {
    let test = "a_sampler_that_hangs_is_not_healthy_and_the_watchdog_hears_nothing";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let manager = UnixDatagram::bind(dir.path().join("notify"))?;
    manager.set_nonblocking(true)?;
    let mut messages = Vec::new();
    let mut heard = || {
        let mut buffer = [0; 512];
        while let Ok(length) = manager.recv(&mut buffer) {
            messages.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        messages.clone()
    };
    let socket = dir.path().join("notify").display().to_string();
    let more = [("NOTIFY_SOCKET", socket.as_str()), ("WATCHDOG_USEC", "4000000")];
    let daemon = start(&here, dir.path(), "stall:sampler:50", &more)?;
    let pings = |messages: &[String]| messages.iter().filter(|message| *message == "WATCHDOG=1").count();
    wait_for("a sign of life", || Ok((pings(&heard()) > 0).then_some(())))?;

    let health = wait_for("503", || Ok(Some(daemon.get("/healthz")?).filter(|health| health.status == 503)))?;
    ensure!(health.body.contains("the thread sampler has been stuck for"), "{}", health.body);
    ensure!(daemon.get("/readyz")?.status == 503);
    let status = daemon.json("/api/v1/status")?["health"].clone();
    ensure!(status["healthy"] == false && status["says"].as_str().is_some(), "{status}");
    let age = metric(&daemon, "emberscope_thread_beat_age_seconds{thread=\"sampler\"}")?;
    ensure!(age > 15.0, "{age}");
    let stuck = |message: &String| message.starts_with("STATUS=not healthy; stuck: sampler");
    wait_for("the status line", || Ok(heard().iter().any(stuck).then_some(())))?;
    let silent = pings(&heard());
    wait_for("health again", || Ok((daemon.get("/healthz")?.status == 200).then_some(())))?;
    wait_for("signs of life again", || Ok((pings(&heard()) > silent).then_some(())))?;
    let all = heard();
    let from = all.iter().position(stuck).context("the status line")?;
    let back = all[from..].iter().position(|message| message.starts_with("STATUS=sampling"));
    // The sign of life comes right before the line that says so.
    ensure!(back.is_some_and(|back| pings(&all[from..from + back]) == 1), "{all:?}");
    ensure!(daemon.stop()?.success());
    Ok(())
}
