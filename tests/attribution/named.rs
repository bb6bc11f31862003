//! A tracepoint that each task meets once: a task's thread is named when the task begins, and again (from Spark 4.2 on) when it
//! is idle, which is of no task.
//!
//! Names within a millisecond on a CPU are one sample, of the last. So a name of a thread that was idle just before counts for
//! the next task now and then, the more often the faster tasks follow each other.

use super::Case;
use anyhow::{Result, ensure};
use std::collections::BTreeMap;

/// HotSpot's `os::set_native_thread_name` ends in prctl(PR_SET_NAME).
pub const EVENT: &str = "task:task_rename";
/// Tasks that a stage has at the least to be looked at.
const TASKS: usize = 90;
/// Names of a stage for each of its tasks. Two would be a task's that has its idle thread's name, too.
const NAMES: std::ops::RangeInclusive<f64> = 0.85..=1.5;
/// Names of all threads for each task, at the least: two, but for those after a CPU's last sample.
const ALL_NAMES: f64 = 1.95;

/// Of the daemon, with the event or without.
pub fn flags(named: bool) -> &'static [&'static str] {
    let all = &[
        "--window",
        "2s",
        "--hz",
        "199",
        "--store-bytes",
        "128MiB",
        "--events",
        "cpu,off-cpu,task:task_rename",
    ];
    if named { all } else { &all[..6] }
}

impl Case<'_> {
    /// Where they were asked for.
    pub fn named_events_are_of_their_tasks(&self) -> Result<()> {
        if !self.named {
            return Ok(());
        }
        let query = format!("{}&role=executor&type=event&event={EVENT}", self.query());
        let reply = self.daemon.get(&format!("/api/v1/flamegraph?{query}&group=stage&format=folded"))?;
        ensure!(reply.status == 200, "{}", reply.body);
        let (mut met, mut all): (BTreeMap<u64, f64>, f64) = Default::default();
        for (stack, weight) in reply.body.lines().filter_map(|line| line.rsplit_once(' ')) {
            let stage = stack.split(';').find_map(|frame| frame.strip_prefix("stage=")?.parse().ok());
            let weight: f64 = weight.parse()?;
            all += weight;
            if let Some(stage) = stage {
                *met.entry(stage).or_default() += weight;
            }
        }
        let mut tasks: BTreeMap<u64, usize> = BTreeMap::new();
        self.log.tasks.iter().for_each(|task| *tasks.entry(task.stage).or_default() += 1);
        // Whose tasks call their threads something else.
        let misnamed = self.stages("names")?;
        let whole = tasks.iter().filter(|(stage, tasks)| **tasks >= TASKS && !misnamed.contains(stage));
        let mut looked_at = 0;
        for (stage, tasks) in whole {
            let (met, tasks) = (met.get(stage).copied().unwrap_or_default(), *tasks as f64);
            println!("stage {stage}: {met} of {EVENT}, {tasks} tasks");
            ensure!(NAMES.contains(&(met / tasks)), "stage {stage}: {met}, and {tasks} tasks");
            looked_at += 1;
        }
        ensure!(looked_at > 0, "no stage of {TASKS} tasks");
        let tasks = self.log.tasks.len() as f64;
        ensure!(all >= tasks * ALL_NAMES, "{all} in all, and {tasks} tasks");
        Ok(())
    }
}
