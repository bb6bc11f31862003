//! The launcher of Spark jobs starts the real thing: executor JVMs with their flags, an event log, and all of it ends
//! with the job.

use super::apps::{App, command_line, pids, stat_field};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{FRAME_POINTERS, Job};
use std::time::{Duration, Instant};

pub fn executors_are_as_asked_for(app: &App) -> Result<()> {
    for pid in app.executor_pids() {
        let words = command_line(pid);
        let says = |word: &str| words.iter().any(|w| w == word);
        ensure!(app.has(pid) && says(&app.id) && says(FRAME_POINTERS), "{pid}: {words:?}");
    }
    let log = app.job.event_log().context("no event log")?;
    ensure!(log.to_string_lossy().contains(&app.id), "{}", log.display());
    Ok(())
}

pub fn a_job_ends_with_all_of_it(job: Job) -> Result<()> {
    let group = u64::from(job.pid());
    let members = || pids().into_iter().filter(|pid| stat_field(*pid, 5) == Some(group)).collect::<Vec<_>>();
    ensure!(members().len() >= 4, "python, a driver and two executors: {:?}", members());
    drop(job);
    let begun = Instant::now();
    while !members().is_empty() {
        ensure!(begun.elapsed() < Duration::from_secs(60), "{:?} are left", members());
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
