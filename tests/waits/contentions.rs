//! How often tasks waited for locks, against what they counted themselves (tests/jobs/WaitJobs.java): a lock that a task has in less than
//! a millisecond it did not wait for.

use super::{NAMED, of_tasks, stage};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Job};

/// Waits of the job, the method that is in their stacks, and how often a thread stands still for one, at most. Thousands of short
/// parks are told together, and each is one. Who is woken for a lock, and late, may find it taken and wait again, if the lock is
/// not fair. For a monitor that is kept for 50 ms HotSpot looks again after 1, 8 and 64 ms (up to JDK 23).
const KINDS: [(&str, &str, f64); 6] = [
    ("short", "WaitJobs.parksShortly", 1.1),
    ("fair", "KeptLocks.takesKept", 1.25),
    ("unfair", "KeptLocks.takesKept", 2.0),
    ("red", "KeptLocks.entersKept", 5.0),
    ("green", "KeptLocks.entersKept", 5.0),
    ("blue", "KeptLocks.entersKept", 5.0),
];
/// Waits in a method beside those that it counts: a class is loaded, an account is read.
const BESIDE: f64 = 3.0;

/// Contentions of a stage's method are those that its tasks counted, and are there for waits for locks only.
pub fn are_as_many_as_waits(daemon: &Daemon, job: &Job, query: &str) -> Result<()> {
    let mut wrong = Vec::new();
    for (kind, method, most) in KINDS {
        let counted: f64 = of_tasks(job, &format!("{kind}.contended"))?.values().sum();
        let query = format!("{query}&stage={}", stage(job, kind)?);
        let (found, all) = contentions(daemon, &query, method)?;
        println!("{kind}: {found} contentions in its method of {all}, {counted} counted");
        if counted < 1.0 || found < counted * NAMED || found > counted * most + BESIDE {
            wrong.push(format!("{kind}: {found} contentions in its method of {all}, {counted} counted"));
        }
    }
    let (_, asleep) = contentions(daemon, &format!("{query}&wait=sleep"), "")?;
    ensure!(asleep < 1.0, "{asleep} contentions of threads that slept");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// How many there are with a method in their stack, and how many in all.
fn contentions(daemon: &Daemon, query: &str, method: &str) -> Result<(f64, f64)> {
    let path = format!("/api/v1/flamegraph?{query}&type=contentions&unit=contentions&format=folded");
    let reply = daemon.get(&path)?;
    ensure!(reply.status == 200, "{}", reply.body);
    let (mut inside, mut all) = (0.0, 0.0);
    for line in reply.body.lines() {
        let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
        let weight: f64 = weight.parse()?;
        all += weight;
        inside += if stack.split(';').any(|frame| frame == method) { weight } else { 0.0 };
    }
    Ok((inside, all))
}
