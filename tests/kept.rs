//! What the daemon keeps on disk, on real Spark: a kill and a restart change no answer about closed windows.
//!
//! A daemon that has recorded a real job is killed with SIGKILL, twice, and stopped once: each that is started after
//! that on the same directory must say the same, to the last byte.

use crate::held::{SMALL, answers, disk, ensure_same, held, kill, now_ms};
use anyhow::{Result, ensure};
use emberscope_tests::{Here, wait_visible};

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
    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a second kill", questions, known, &answers(&daemon, questions)?)?;
    let after = daemon.json(&format!("/api/v1/flamegraph?format=json&from={until}&until={later}"))?;
    ensure!(after["quality"]["samples"].as_u64() > Some(0), "what the second daemon sampled is gone");
    ensure!(daemon.stop()?.success());

    let daemon = here.daemon(dir.path(), &SMALL)?;
    ensure_same("after a stop", questions, known, &answers(&daemon, questions)?)?;
    let disk_after = disk(&daemon)?;
    ensure!(
        disk_after["set_aside"] == 0 && disk_after["cut_bytes"] == 0,
        "a stop leaves nothing torn: {disk_after}"
    );
    ensure!(daemon.stop()?.success());
    Ok(())
}
