//! Where tasks wait and why, on real Spark: a job whose tasks wait for things of a known kind and measure it themselves
//! (tests/jobs/WaitJobs.java).
//!
//! They measure by the wall clock less run delay and CPU time, as the kernel's accounts have them: how busy the machine is
//! does not matter. What a hypervisor took from a task while it ran is in neither account, so both what tasks measured and what the
//! ledger calls blocked has it, and no wait: it is counted beside them (`Stolen`).

mod contentions;

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, Job, SparkJob, Stolen, WARM_UP, wait_visible};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use xtask::launch::spark::{KEPT_LOCKS, WAIT_JOBS};

const WORK: Duration = Duration::from_secs(600);
/// Of what is measured.
const WITHIN: f64 = 0.03;
/// Of what is measured, what has its method at the least.
const NAMED: f64 = 0.4;
/// Of what has its method.
const FOR_ITS_REASON: f64 = 0.8;
/// Of what was waited for a lock, what has its class and who held it at the least: the first wait for one that nobody had waited
/// for may not say.
const OWNED: f64 = 0.8;
/// Seconds: the account of a running thread's CPU time is up to a tick old at both ends.
const TICKS: f64 = 0.02;

/// Kinds of waits of the job, their reason, and a method that is in their stacks.
const KINDS: [(&str, &str, &str); 6] = [
    ("sleep", "sleep", "WaitJobs.sleeps"),
    ("monitor", "lock", "WaitJobs.entersMonitor"),
    ("lock", "lock", "WaitJobs.takesLock"),
    ("socket", "network", "WaitJobs.readsSocket"),
    ("file", "storage", "WaitJobs.writesFile"),
    ("short", "lock", "WaitJobs.parksShortly"),
];

#[test]
fn waits_of_spark_3() -> Result<()> {
    let Some(here) = Here::or_skip("waits_of_spark_3") else { return Ok(()) };
    waits(&here)
}

#[test]
fn waits_of_the_newest_spark() -> Result<()> {
    let test = "waits_of_the_newest_spark";
    let Some(here) = Here::or_skip(test).and_then(|here| here.with_newest_spark(test)) else { return Ok(()) };
    waits(&here)
}

fn waits(here: &Here) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--events", "cpu,off-cpu,alloc", "--window", "2s"])?;
    let stolen = Stolen::watch()?;
    let from = WallTime::now().as_millis();
    let mut job = SparkJob::java(&WAIT_JOBS, &here.venv, &here.java, &dir.path().join("spark"))
        .master("local-cluster[1,2,1024]")
        .arg("20")
        .arg("50")
        .start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WORK)?;
    let until = WallTime::now().as_millis();
    wait_visible(&daemon, until)?;
    let query = format!("app={app}&from={from}&until={until}");
    let answer = daemon.json(&format!("/api/v1/tasks?{query}&limit=1000&join=no"))?;
    let rows = answer["tasks"].as_array().with_context(|| format!("no tasks in {answer}"))?;
    let tasks: BTreeMap<&str, &Value> =
        rows.iter().filter_map(|task| Some((task["task"].as_str()?, task))).collect();
    let mut wrong = Vec::new();
    for kind in KINDS {
        let measured = measured(&job, kind.0)?;
        let of_kind: Vec<&Value> =
            measured.keys().filter_map(|tid| tasks.get(tid.as_str()).copied()).collect();
        let truth = (measured.values().sum(), stolen_from(&of_kind, &stolen));
        wrong.extend(kind_is_right(&daemon, &job, &query, (kind, truth))?);
        wrong.extend(of_kind.iter().filter_map(|task| all_is_there(task, stolen_from(&[task], &stolen))));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let shuffled = daemon.json(&format!("/api/v1/stages?{query}&join=no"))?;
    let rows = shuffled["stages"].as_array().context("stages")?;
    ensure!(rows.iter().any(|stage| stage["waited"]["seconds"].as_f64() > Some(1.0)), "{shuffled}");
    locks_are_waits_for_locks(&daemon, &query)?;
    locks_have_class_and_owner(&daemon, &job, &query)?;
    contentions::are_as_many_as_waits(&daemon, &job, &query)?;
    has_allocations(&daemon, &query)?;
    stages_have_their_allocations(&daemon, &query)?;
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// `lock` is what waited for locks, and no more.
fn locks_are_waits_for_locks(daemon: &Daemon, query: &str) -> Result<()> {
    let folded = |more: &str| -> Result<String> {
        let reply = daemon.get(&format!("/api/v1/flamegraph?{query}&format=folded&unit=ns&{more}"))?;
        ensure!(reply.status == 200, "{more}: {}", reply.body);
        Ok(reply.body)
    };
    let (locks, waits) = (folded("type=lock")?, folded("type=off-cpu&wait=lock")?);
    ensure!(!locks.is_empty() && locks == waits, "{locks}\nis not\n{waits}");
    ensure!(locks.lines().any(|line| line.contains("WaitJobs.")), "{locks}");
    Ok(())
}

/// A lock that one thread keeps is told by its class and that thread; one that tasks take from each other by their pool.
fn locks_have_class_and_owner(daemon: &Daemon, job: &Job, query: &str) -> Result<()> {
    let by_owner = |kind: &str| -> Result<BTreeMap<String, f64>> {
        let group = "type=lock&group=lock,lock_owner&unit=ns&format=folded";
        let reply = daemon.get(&format!("/api/v1/flamegraph?{query}&stage={}&{group}", stage(job, kind)?))?;
        ensure!(reply.status == 200, "{}", reply.body);
        let mut sums = BTreeMap::new();
        for line in reply.body.lines() {
            let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
            let labels: Vec<&str> = stack.split(';').take(2).collect();
            *sums.entry(labels.join(";")).or_default() += weight.parse::<f64>()? / 1e9;
        }
        Ok(sums)
    };
    let mut wrong = Vec::new();
    let worker = "Executor task launch worker".to_owned();
    let kept = KEPT_LOCKS.map(|(name, class)| (name, class, format!("keeper of {name}")));
    let taken = [("lock", "java.util.concurrent.locks.ReentrantLock$NonfairSync", worker)];
    for (kind, class, owner) in kept.into_iter().chain(taken) {
        let sums = by_owner(kind)?;
        let right = sums.get(&format!("lock={class};lock_owner={owner}")).copied().unwrap_or_default();
        if right < sums.values().sum::<f64>() * OWNED {
            wrong.push(format!("{kind}, {owner}: {right} s of {sums:?}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What tasks allocate is there by stage, with the class at the end. How much is right `allocations` asks.
fn has_allocations(daemon: &Daemon, query: &str) -> Result<()> {
    let query = format!("{query}&type=alloc&thread_class=task&group=stage&unit=bytes&format=folded");
    let reply = daemon.get(&format!("/api/v1/flamegraph?{query}"))?;
    ensure!(reply.status == 200, "{}", reply.body);
    let of_stage = |line: &str| {
        let stage = line.strip_prefix("stage=").and_then(|rest| rest.split(';').next());
        let stack = line.rsplit_once(' ').map_or("", |(stack, _)| stack);
        stage.is_some_and(|stage| stage.parse::<u32>().is_ok()) && stack.ends_with(";byte[]")
    };
    let some: String = reply.body.chars().take(6_000).collect();
    ensure!(reply.body.lines().any(of_stage), "{some}");
    Ok(())
}

/// Stages by bytes: the most first, each with what the flame graph of its tasks and of the threads that work for them holds.
fn stages_have_their_allocations(daemon: &Daemon, query: &str) -> Result<()> {
    let answer = daemon.json(&format!("/api/v1/stages?{query}&type=alloc&join=no"))?;
    let rows = answer["stages"].as_array().context("stages")?;
    let bytes = |of: &Value| of["sampled"]["allocated_bytes"].as_u64();
    let of_row = |row: &Value| Some(bytes(row)? + bytes(&row["helpers"])? + bytes(&row["python"])?);
    let sums: Vec<u64> = rows.iter().map(of_row).collect::<Option<_>>().context("allocated_bytes")?;
    ensure!(sums.first() > Some(&0) && sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
    let exact = |row: &Value| row["exact"]["cpu_seconds"].is_f64();
    ensure!(rows.first().is_some_and(exact), "{answer}");
    for (row, sum) in rows.iter().zip(&sums) {
        let stage = row["stage"].as_str().context("stage")?;
        let of_stage = format!("stage={stage}&stage_attempt={}", row["stage_attempt"].as_str().unwrap_or(""));
        let path = format!("/api/v1/flamegraph?{query}&{of_stage}&type=alloc&unit=bytes&format=folded");
        let reply = daemon.get(&path)?;
        ensure!(reply.status == 200, "{}", reply.body);
        let mut drawn = 0;
        for line in reply.body.lines() {
            drawn += line.rsplit_once(' ').context("a weight")?.1.parse::<u64>()?;
        }
        ensure!(drawn == *sum, "{of_stage}: {drawn} bytes in the graph, {sum} in the row");
    }
    Ok(())
}

fn stage(job: &Job, kind: &str) -> Result<String> {
    job.fact(&format!("{kind}.stages")).with_context(|| format!("no stage of {kind}"))
}

/// Seconds of each task, by its id.
fn measured(job: &Job, kind: &str) -> Result<BTreeMap<String, f64>> {
    Ok(of_tasks(job, &format!("{kind}.waited"))?.into_iter().map(|(tid, ns)| (tid, ns / 1e9)).collect())
}

/// What each task says in a fact, by its id.
fn of_tasks(job: &Job, fact: &str) -> Result<BTreeMap<String, f64>> {
    let text = job.fact(fact).with_context(|| format!("no {fact}"))?;
    let one = |task: &str| {
        let (tid, value) = task.split_once(':').context("TID:VALUE")?;
        Ok((tid.to_owned(), value.parse::<f64>()?))
    };
    text.split(',').map(one).collect()
}

/// Seconds that were stolen, from whomever, while any of these tasks ran.
fn stolen_from(tasks: &[&Value], stolen: &Stolen) -> f64 {
    let first = tasks.iter().filter_map(|task| task["first_seen"].as_str()).min();
    let last = tasks.iter().filter_map(|task| task["last_seen"].as_str()).max();
    first.zip(last).map_or(0.0, |(first, last)| stolen.between(first, last))
}

/// What the task waited for, whatever it was, is the time in which it was blocked. The time after it is of no task, though its
/// thread keeps the name up to Spark 4.1.
fn all_is_there(task: &Value, stolen: f64) -> Option<String> {
    let waited = task["waited"]["seconds"].as_f64().unwrap_or(0.0);
    let blocked = task["exact"]["blocked_seconds"].as_f64().unwrap_or(0.0);
    let slack = blocked * WITHIN + TICKS;
    let fits = (blocked - slack - stolen..=blocked + slack).contains(&waited);
    (!fits).then(|| format!("waited {waited} s of {blocked} s, {stolen} s stolen: {task}"))
}

/// What a stage's tasks waited in the method is what they measured, for its reason. On a crowded machine a stack may come up
/// before its methods can be read: such waits are there, and where is not known.
fn kind_is_right(
    daemon: &Daemon,
    job: &Job,
    query: &str,
    ((kind, reason, method), (measured, stolen)): ((&str, &str, &str), (f64, f64)),
) -> Result<Option<String>> {
    let query = format!("{query}&stage={}&type=off-cpu&group=wait&unit=ns&format=folded", stage(job, kind)?);
    let reply = daemon.get(&format!("/api/v1/flamegraph?{query}"))?;
    ensure!(reply.status == 200, "{}", reply.body);
    let (mut right, mut collector, mut inside, mut all) = (0.0, 0.0, 0.0, 0.0);
    for line in reply.body.lines() {
        let (stack, weight) = line.rsplit_once(' ').context("a weight")?;
        let weight = weight.parse::<f64>()? / 1e9;
        all += weight;
        if stack.split(';').any(|frame| frame == method) {
            inside += weight;
            let waits_for = |what: &str| stack.starts_with(&format!("wait={what};"));
            right += if waits_for(reason) { weight } else { 0.0 };
            collector += if waits_for("gc") { weight } else { 0.0 };
        }
        ensure!(!stack.contains("__schedule") && !stack.contains("bpf_prog"), "{stack}");
    }
    let slack = measured * WITHIN + TICKS;
    // Some measure a part of what the method does, and it waits for the collector anywhere.
    let fits = inside - collector <= measured + slack
        && all >= measured - slack - stolen
        && inside >= measured * NAMED;
    // Beside what it is meant to, a method may wait for the collector.
    let fits = fits && right >= inside * FOR_ITS_REASON;
    let body: String = reply.body.chars().take(6_000).collect();
    let found = format!(
        "{kind}: {right} s of {inside} s of {all} s, measured {measured} s, {stolen} s stolen: {body}"
    );
    Ok((!fits).then_some(found))
}
