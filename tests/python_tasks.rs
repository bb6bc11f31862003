//! Whose work PySpark's workers do, on real Spark: the task of their samples, the ledger, and what the commands show.
//!
//! One application of tasks whose Python functions run a C library's function that is the partition's own, and note what
//! they used (tests/jobs/python_tasks.py): four workers at once, each used again for other tasks; over TCP, over Unix sockets,
//! and workers that no Python daemon forks.

use anyhow::{Context as _, Result, ensure};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, Job, SparkJob, WARM_UP, ran, skip, wait_visible};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::launch::asked::{Labelled, Verdict, samples};
use xtask::setup::packages;

/// How long the phases of the job may take on a crowded machine.
const WORK: Duration = Duration::from_secs(600);
/// Of a partition; each burns 25 ms.
const CALLS: &str = "20";
/// What type information has where the kernel has the tracepoints of what is sent and received.
const SENDS: &[u8] = b"btf_trace_sock_send_length\0";
const RECEIVES: &[u8] = b"btf_trace_sock_recv_length\0";
/// Frames that are a partition's, by its number modulo 4.
const WORKS_IN: [&str; 4] = ["crc32", "EVP_", "BZ2_bz", "lzma_"];

/// Kinds of functions that get Arrow's batches: pandas_udf, mapInPandas, applyInPandas of one and of two data frames and with a
/// state.
const OF_PANDAS: &str = "arrow,map,apply,cogroup,state";

#[test]
fn python_workers_of_spark_3() -> Result<()> {
    let test = "python_workers_of_spark_3";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    python_workers_of_all_kinds(test, &here, OF_PANDAS)
}

#[test]
fn python_workers_of_the_newest_spark() -> Result<()> {
    let test = "python_workers_of_the_newest_spark";
    let Some(here) = Here::or_skip(test).and_then(|here| here.with_newest_spark(test)) else { return Ok(()) };
    // Data sources in Python came with Spark 4.0.
    python_workers_of_all_kinds(test, &here, &format!("{OF_PANDAS},source"))
}

fn python_workers_of_all_kinds(test: &str, here: &Here, of_pandas: &str) -> Result<()> {
    let kinds = "udf,rdd,two,foreach";
    match packages::pandas_installed(&here.venv) {
        Some(packages) => python_workers_with(here, &format!("{kinds},{of_pandas}"), &[], Some(packages)),
        None => {
            skip(test, "no pandas for Spark's Python, so nothing of Arrow's batches: ./x setup fetches it");
            python_workers(here, kinds, &[])
        }
    }
}

#[test]
fn python_workers_without_a_python_daemon() -> Result<()> {
    let Some(here) = Here::or_skip("python_workers_without_a_python_daemon") else { return Ok(()) };
    python_workers(&here, "udf,rdd", &[("spark.python.use.daemon", "false")])
}

#[test]
fn python_workers_over_unix_sockets() -> Result<()> {
    let test = "python_workers_over_unix_sockets";
    let Some(here) = Here::or_skip(test).and_then(|here| here.with_newest_spark(test)) else { return Ok(()) };
    if !kernel_has(SENDS) {
        skip(test, "this kernel has no tracepoint of what is sent over sockets (Linux 6.3, with BTF)");
        return Ok(());
    }
    python_workers(&here, "udf,rdd,two", &[("spark.python.unix.domain.socket.enabled", "true")])
}

fn kernel_has(tracepoint: &[u8]) -> bool {
    let types = std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    types.windows(tracepoint.len()).any(|bytes| bytes == tracepoint)
}

/// What a task's function noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Called {
    stage: u64,
    partition: u64,
    attempt: u64,
    tid: u64,
}

/// CPU nanoseconds that a worker noted.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    /// In the task's function.
    used: u64,
    /// Since the worker's start, when it noted the task's last call.
    so_far: u64,
}

/// By pid and task.
type Calls = BTreeMap<(u64, Called), Noted>;

fn python_workers(here: &Here, kinds: &str, conf: &[(&str, &str)]) -> Result<()> {
    python_workers_with(here, kinds, conf, None)
}

fn python_workers_with(
    here: &Here,
    kinds: &str,
    conf: &[(&str, &str)],
    packages: Option<PathBuf>,
) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "2s", "--hz", "199"])?;
    let from = WallTime::now().as_millis();
    let work = dir.path().join("spark");
    let job = SparkJob::new("python_tasks.py", &here.venv, &here.java, &work).master("local[4]");
    let job = conf.iter().fold(job, |job, (key, value)| job.conf(*key, *value));
    let job = packages.into_iter().fold(job, SparkJob::packages);
    let mut job = job.arg("--kinds").arg(kinds).arg("--calls").arg(CALLS).start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WORK)?;
    let until = WallTime::now().as_millis();
    wait_visible(&daemon, until)?;
    let query = format!("app={app}&from={from}&until={until}");
    let calls = calls(&work.join("calls"))?;
    // All are looked at, whatever the first of them says.
    let parts = [
        ("samples", samples_are_of_their_tasks(&daemon, &query, &calls)),
        ("all that workers did", workers_have_tasks(&daemon, &query)),
        ("the wait", tasks_wait_for_their_workers(&daemon, &query, &calls)),
        ("the ledger", the_ledger_has_each_task(&daemon, &query, &calls)),
        ("both halves", a_stage_has_both_halves(here, &daemon, &query, &app, &calls)),
        ("the driver", the_driver_is_two_processes(&daemon, &query, &job)),
    ];
    let wrong = parts.into_iter().filter_map(|(part, result)| Some(format!("{part}: {:#}", result.err()?)));
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn calls(dir: &Path) -> Result<Calls> {
    let mut calls = Calls::new();
    for file in std::fs::read_dir(dir).context("the job's notes")? {
        let file = file?;
        let pid: u64 = file.file_name().to_string_lossy().parse()?;
        for line in std::fs::read_to_string(file.path())?.lines() {
            let numbers: Vec<u64> = line.split(' ').skip(1).map(str::parse).collect::<Result<_, _>>()?;
            let [stage, partition, attempt, tid, used, so_far] = numbers[..] else { anyhow::bail!("{line}") };
            let noted = calls.entry((pid, Called { stage, partition, attempt, tid })).or_default();
            noted.used += used;
            noted.so_far = noted.so_far.max(so_far);
        }
    }
    Ok(calls)
}

fn samples_are_of_their_tasks(daemon: &Daemon, query: &str, calls: &Calls) -> Result<()> {
    let tasks: BTreeSet<Called> = calls.keys().map(|(_, called)| *called).collect();
    let all = samples(daemon, &format!("{query}&role=python"))?;
    let mut verdict = Verdict::default();
    for (which, function) in WORKS_IN.into_iter().enumerate() {
        let chosen = |stack: &str| stack.split(';').any(|frame| frame.contains(function));
        verdict.add_where(
            &all,
            function,
            |sample| chosen(&sample.stack),
            |sample| {
                let labels =
                    ["stage", "task_index", "task_attempt", "task"].map(|label| sample.number(label));
                let [Some(stage), Some(partition), Some(attempt), Some(tid)] = labels else { return false };
                tasks.contains(&Called { stage, partition, attempt, tid })
                    && partition % 4 == which as u64
                    && sample.text("thread_class") == Some("python")
            },
        );
    }
    println!("{} samples in the functions, {} without a task", verdict.n, verdict.without);
    ensure!(verdict.n > 500, "only {} samples in the functions", verdict.n);
    ensure!(verdict.wrong_samples * 200 <= verdict.n, "wrong: {:?}", verdict.wrong);
    ensure!(verdict.without * 50 <= verdict.n, "{} of {} have no task", verdict.without, verdict.n);
    Ok(())
}

/// Also what is not in the functions: starting, reading rows, cleaning up.
fn workers_have_tasks(daemon: &Daemon, query: &str) -> Result<()> {
    let all = samples(daemon, &format!("{query}&role=python"))?;
    let class = |sample: &&Labelled| sample.text("stage").is_some();
    let counted = |known: bool| {
        let of = all.iter().filter(class).filter(|sample| sample.number("stage").is_some() == known);
        of.map(|sample| sample.count).sum::<usize>()
    };
    let (bound, unbound) = (counted(true), counted(false));
    println!("{bound} samples of workers have a task, {unbound} have none");
    // Where it is seen what a worker receives, what it cleans up after a task is the task's.
    let part = if kernel_has(RECEIVES) { 50 } else { 10 };
    ensure!(unbound * part <= bound, "{unbound} without a task, {bound} with one");
    Ok(())
}

/// A task's thread sleeps while its worker works for it, but for what they do at the same time.
fn tasks_wait_for_their_workers(daemon: &Daemon, query: &str, calls: &Calls) -> Result<()> {
    let noted = calls.values().map(|noted| noted.used).sum::<u64>() as f64 / 1e9;
    let answer = daemon.json(&format!("/api/v1/stages?{query}"))?;
    let (mut waited, mut blocked) = (0.0, 0.0);
    for stage in answer["stages"].as_array().context("no stages")? {
        waited += stage["exact"]["python_wait_seconds"].as_f64().unwrap_or(0.0);
        blocked += stage["exact"]["blocked_seconds"].as_f64().unwrap_or(0.0);
    }
    println!("tasks waited {waited} s for Python, blocked {blocked} s; its functions worked {noted} s");
    ensure!(waited > noted / 2.0, "waited {waited} s of {noted} s");
    ensure!(waited < blocked * 1.01, "waited {waited} s, blocked {blocked} s");
    Ok(())
}

fn the_ledger_has_each_task(daemon: &Daemon, query: &str, calls: &Calls) -> Result<()> {
    let answer = daemon.json(&format!("/api/v1/ledger?{query}&role=python&by=pid,task"))?;
    let mut exact: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for line in answer["ledger"].as_array().context("no ledger")? {
        let number = |label: &str| line["labels"][label].as_str().and_then(|text| text.parse().ok());
        if let (Some(pid), Some(tid), Some(cpu)) =
            (number("pid"), number("task"), line["exact"]["cpu_seconds"].as_f64())
        {
            *exact.entry((pid, tid)).or_default() += cpu;
        }
    }
    let (mut noted, mut missing, mut largest) = (0.0, 0.0, Vec::new());
    for ((pid, called), Noted { used, .. }) in calls {
        let used = *used as f64 / 1e9;
        noted += used;
        let lacks = (used - exact.get(&(*pid, called.tid)).copied().unwrap_or(0.0)).max(0.0);
        missing += lacks;
        largest.push((lacks, pid, called));
    }
    largest.sort_by(|a, b| b.0.total_cmp(&a.0));
    largest.truncate(5);
    let pairs: BTreeSet<(u64, u64)> = calls.keys().map(|(pid, called)| (*pid, called.tid)).collect();
    let strange: f64 = exact.iter().filter(|(pair, _)| !pairs.contains(pair)).map(|(_, cpu)| cpu).sum();
    println!(
        "{} pairs of worker and task: {noted} s noted, {missing} s not theirs, {strange} s others'",
        pairs.len()
    );
    ensure!(missing < noted * 0.01, "{missing} s of {noted} s are not on their tasks: {largest:?}");
    ensure!(strange < noted * 0.01, "{strange} s are on tasks that the worker never had");
    Ok(())
}

/// The frames and the figures of a stage: the JVM's and Python's.
fn a_stage_has_both_halves(
    here: &Here,
    daemon: &Daemon,
    query: &str,
    app: &str,
    calls: &Calls,
) -> Result<()> {
    let stage = calls.keys().next().context("no calls")?.1.stage;
    let (noted, all) = used_by(calls, stage);
    let of = |role: &str| {
        let path = format!("/api/v1/flamegraph?{query}&stage={stage}{role}&format=folded");
        Ok::<_, anyhow::Error>(daemon.get(&path)?.body)
    };
    let (both, python, jvm) = (of("")?, of("&role=python")?, of("&role=driver")?);
    let has = |folded: &str, frame: &str| folded.contains(frame);
    ensure!(has(&both, "TaskRunner.run") && has(&both, "BZ2_bz"), "one graph has both halves");
    ensure!(has(&python, "BZ2_bz") && !has(&python, "TaskRunner.run"), "Python's half");
    ensure!(has(&jvm, "TaskRunner.run") && !has(&jvm, "BZ2_bz"), "the JVM's half");
    let row = |path: &str, key: &str| -> Result<Value> {
        let answer = daemon.json(&format!("/api/v1/{path}?{query}&stage={stage}"))?;
        Ok(answer[key][0].clone())
    };
    let exact = row("stages", "stages")?["python"]["exact"]["cpu_seconds"].as_f64().context("stages")?;
    ensure!(
        exact > noted * 0.99 && exact < all * 1.1 + 2.0,
        "{exact} s in Python; {noted} s noted, {all} s with what came before"
    );
    ensure!(row("tasks", "tasks")?["python"]["exact"]["cpu_seconds"].as_f64() > Some(0.0), "tasks");
    let binary = here.binary.to_str().context("the binary's path")?;
    let table = ran([binary, "stages", "--app", app, "--url", daemon.url()])?.good()?.out;
    ensure!(table.contains("PYTHON"), "{table}");
    Ok(())
}

/// CPU seconds in the functions of a stage, and with what its workers did before and between: starting, reading rows.
fn used_by(calls: &Calls, stage: u64) -> (f64, f64) {
    let (mut used, mut before, mut until) = (0, BTreeMap::new(), BTreeMap::new());
    for ((pid, called), noted) in calls.iter().filter(|((_, called), _)| called.stage <= stage) {
        let is_own = called.stage == stage;
        used += if is_own { noted.used } else { 0 };
        let so_far: &mut u64 = if is_own { &mut until } else { &mut before }.entry(*pid).or_default();
        *so_far = noted.so_far.max(*so_far);
    }
    let all: u64 = until.iter().map(|(pid, until)| until - before.get(pid).unwrap_or(&0).min(until)).sum();
    (used as f64 / 1e9, all as f64 / 1e9)
}

fn the_driver_is_two_processes(daemon: &Daemon, query: &str, job: &Job) -> Result<()> {
    let answer = daemon.json(&format!("/api/v1/labels/process/values?{query}&role=driver"))?;
    let text = answer.to_string();
    ensure!(text.contains("\"java\"") && text.contains("python"), "{text} of {:?}", job.fact("app"));
    Ok(())
}
