//! PySpark's workers: whether their samples are of the right task, and their CPU time, stage by stage, that of the kernel.
//!
//! Of an application whose functions tell by what they run which partition they work for, and that says after each kind of
//! function what its workers' clocks have (tests/jobs/python_tasks.py). Four workers at once, each used again.

use super::{Bench, VISIBLE_AFTER, WINDOW_MS};
use crate::bench::procfs;
use crate::bench::row::Row;
use crate::clock::now;
use crate::launch::asked::{Verdict, samples};
use crate::launch::{Daemon, Job, SparkJob};
use crate::setup::{SparkKit, packages, python, spark_version};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Kinds of functions that every Spark has; data sources in Python came with 4.0.
const KINDS: &str = "udf,rdd,arrow,map,apply,cogroup,state,foreach";
/// Frames that are a partition's, by its number modulo 4.
const WORKS_IN: [&str; 4] = ["crc32", "EVP_", "BZ2_bz", "lzma_"];
/// Calls of a function in a partition, of 25 ms each.
const CALLS: &str = "40";
/// Longest wait for a fact of the job.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Samples of workers that have a task; of these, those whose task is the right one.
const BOUND: f64 = 98.0;
const RIGHT: f64 = 99.5;

/// A call's task: stage, partition, attempt, TID.
type Called = (u64, u64, u64, u64);

/// What the job noted: the stages of each kind, and all tasks.
#[derive(Default)]
struct Noted {
    stages: BTreeMap<String, BTreeSet<u64>>,
    tasks: BTreeSet<Called>,
}

/// Measures, with Spark 3 and the newest.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let unix = ("spark.python.unix.domain.socket.enabled", "true");
    let runs = [
        (python::PYSPARK, KINDS.to_owned(), None),
        (python::NEWEST_PYSPARK, format!("{KINDS},source"), None),
        (python::NEWEST_PYSPARK, format!("{KINDS},source"), Some(unix)),
    ];
    for (version, kinds, conf) in runs {
        let name = format!("Spark {version}{}", if conf.is_some() { ", Unix sockets" } else { "" });
        let ready = spark_version(version, None).and_then(|kit| Ok((packages::pandas(&kit.venv)?, kit)));
        match ready {
            Ok((packages, kit)) => rows.extend(measured(bench, &name, &kit, &packages, (&kinds, conf))?),
            Err(why) => skipped.push(format!("workers of {name}: {why:#}")),
        }
    }
    Ok(rows)
}

fn measured(
    bench: &Bench,
    name: &str,
    kit: &SparkKit,
    packages: &Path,
    (kinds, conf): (&str, Option<(&str, &str)>),
) -> Result<Vec<Row>> {
    let work = bench.work.join("workers");
    let _ = std::fs::remove_dir_all(&work);
    let daemon = bench.daemon(bench.options.hz)?;
    let from = now();
    let job = SparkJob::new("python_tasks.py", &kit.venv, &kit.jdk.home, &work).master("local[4]");
    let job = conf.into_iter().fold(job, |job, (key, value)| job.conf(key, value)).packages(packages);
    let words = ["--warm", "--calls", CALLS, "--kinds", kinds];
    let mut job = words.into_iter().fold(job, SparkJob::arg).start()?;
    let app = job.wait_fact("app", TIMEOUT)?;
    job.wait_fact("done", TIMEOUT)?;
    std::thread::sleep(Duration::from_millis(WINDOW_MS) + VISIBLE_AFTER);
    let query = format!("app={app}&from={from}&until={}", now());
    let noted = noted(&work.join("calls"))?;
    let mut rows = bound(&daemon, name, &query, &noted)?;
    rows.extend(cpu(&daemon, name, &query, &noted, (&job, kinds))?);
    std::fs::write(work.join("stop"), "").context("stopping the job")?;
    job.wait(TIMEOUT)?;
    println!("{name}: the daemon used {:.2} s of CPU time", procfs::cpu_seconds(daemon.pid())?);
    daemon.stop()?;
    Ok(rows)
}

fn noted(dir: &Path) -> Result<Noted> {
    let mut noted = Noted::default();
    for file in std::fs::read_dir(dir).context("the job's notes")? {
        for line in std::fs::read_to_string(file?.path())?.lines() {
            let (kind, numbers) = line.split_once(' ').with_context(|| format!("no kind in {line:?}"))?;
            let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let [stage, partition, attempt, tid, _, _] = numbers[..] else { anyhow::bail!("{line:?}") };
            noted.stages.entry(kind.to_owned()).or_default().insert(stage);
            noted.tasks.insert((stage, partition, attempt, tid));
        }
    }
    Ok(noted)
}

/// Of the samples in the functions: how many have a task, and how many the right one.
fn bound(daemon: &Daemon, name: &str, query: &str, noted: &Noted) -> Result<Vec<Row>> {
    let all = samples(daemon, &format!("{query}&role=python"))?;
    let mut verdict = Verdict::default();
    for (which, function) in WORKS_IN.into_iter().enumerate() {
        verdict.add_where(
            &all,
            function,
            |sample| sample.stack.split(';').any(|frame| frame.contains(function)),
            |sample| {
                let ids = ["stage", "task_index", "task_attempt", "task"].map(|label| sample.number(label));
                let [Some(stage), Some(partition), Some(attempt), Some(tid)] = ids else { return false };
                noted.tasks.contains(&(stage, partition, attempt, tid)) && partition % 4 == which as u64
            },
        );
    }
    verdict.wrong.iter().take(5).for_each(|wrong| println!("    {name}: {wrong}"));
    let of_tasks = verdict.n - verdict.without;
    Ok(vec![
        Row::share(format!("workers: {name}, samples with a task"), of_tasks, BOUND, verdict.n),
        Row::share(
            format!("workers: {name}, of these the right one"),
            of_tasks - verdict.wrong_samples.min(of_tasks),
            RIGHT,
            of_tasks,
        ),
    ])
}

/// CPU time of each kind's stages: what the workers' clocks went on by, the ledger's, the samples'.
fn cpu(
    daemon: &Daemon,
    name: &str,
    query: &str,
    noted: &Noted,
    (job, kinds): (&Job, &str),
) -> Result<Vec<Row>> {
    let answer = daemon.json(&format!("/api/v1/stages?{query}"))?;
    let stages = answer["stages"].as_array().context("no stages")?;
    let mut rows = Vec::new();
    for kind in kinds.split(',') {
        let used: f64 = job.fact(&format!("{kind}.workers_ns")).context("no clocks")?.parse()?;
        let truth = used / 1e9;
        let ids = noted.stages.get(kind).with_context(|| format!("no stage of {kind}"))?;
        let is_of_kind = |row: &&Value| {
            row["stage"].as_str().and_then(|id| id.parse().ok()).is_some_and(|id: u64| ids.contains(&id))
        };
        let (mut exact, mut sampled, mut samples) = (0.0, 0.0, 0.0);
        for row in stages.iter().filter(is_of_kind) {
            exact += row["python"]["exact"]["cpu_seconds"].as_f64().unwrap_or(0.0);
            sampled += row["python"]["sampled"]["cpu_seconds"].as_f64().unwrap_or(0.0);
            samples += row["python"]["sampled"]["samples"].as_f64().unwrap_or(0.0);
        }
        rows.push(Row::exact(format!("workers: {name}, {kind}, ledger"), exact, truth, "s", 1.0, ids.len()));
        let what = format!("workers: {name}, {kind}, samples");
        rows.push(Row::deviation(what, sampled, truth, "s", 1.0, samples));
    }
    Ok(rows)
}
