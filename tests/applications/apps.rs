//! The truth that answers are held against, from /proc: command lines, process groups, CPU times.

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Job, WARM_UP};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
pub use xtask::bench::procfs::{command_line, pids};

pub fn now_ms() -> u64 {
    WallTime::now().as_millis()
}

pub fn sleep_until(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms.saturating_sub(now_ms())));
}

pub fn number(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("{value} is no number"))
}

/// Field of /proc/PID/stat by its number in proc(5); 3 and more.
pub fn stat_field(pid: u32, field: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

/// utime + stime, in seconds.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let ticks = stat_field(pid, 14).zip(stat_field(pid, 15)).context("the process is gone")?;
    Ok((ticks.0 + ticks.1) as f64 / 100.0)
}

/// A running application as /proc shows it.
pub struct App {
    pub id: String,
    pub job: Job,
    pub executors: BTreeMap<String, u32>,
    pub driver: u32,
}

impl App {
    /// Waits until the application has that many executors.
    pub fn started(mut job: Job, executors: usize) -> Result<Self> {
        let id = job.wait_fact("app", WARM_UP)?;
        let begun = Instant::now();
        loop {
            let found = executors_of(&id);
            if found.len() == executors {
                let is_driver = |pid: &u32| {
                    stat_field(*pid, 4) == Some(u64::from(job.pid()))
                        && command_line(*pid).iter().any(|word| word == "org.apache.spark.deploy.SparkSubmit")
                };
                let driver = pids().into_iter().find(is_driver).context("no driver in /proc")?;
                return Ok(Self { id, job, executors: found, driver });
            }
            ensure!(begun.elapsed() < WARM_UP, "{} of {executors} executors", found.len());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether it is a process of this job: it lives in its process group.
    pub fn has(&self, pid: u32) -> bool {
        stat_field(pid, 5) == Some(u64::from(self.job.pid()))
    }

    pub fn executor_pids(&self) -> BTreeSet<u32> {
        self.executors.values().copied().collect()
    }
}

pub fn executors_of(app: &str) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for pid in pids() {
        let words = command_line(pid);
        let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let java = words.first().is_some_and(|program| program.ends_with("/java"));
        if let (true, Some(id), Some(of)) = (java, after("--executor-id"), after("--app-id"))
            && of == app
        {
            found.insert(id.clone(), pid);
        }
    }
    found
}
