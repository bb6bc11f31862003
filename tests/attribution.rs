//! Whose work it is, on real Spark: the stage and task of samples, the ledger against Spark's event log, the
//! tax, slow tasks against usual ones, and names that no thread should have.
//!
//! One application of short tasks (tests/jobs/TaskJobs.java) under one daemon with windows of two seconds; all
//! is asked of it. Figures with sampling errors are `cargo xtask bench truth`'s; here counts must be right.

use anyhow::{Context as _, Result, bail, ensure};
use emberscope_model::{ThreadClass, WallTime};
use emberscope_tests::{Daemon, Here, Job, SparkJob, VISIBLE, WARM_UP, ran, tracefs, wait_for, wait_visible};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use xtask::bench::procfs;
use xtask::launch::EventLog;
use xtask::launch::asked::{Labelled, Verdict, exact_cpu, samples};
use xtask::launch::event_log::Task;
use xtask::launch::spark::{NOT_INLINED, TASK_JOBS};

mod named;
mod names;

/// How long the phases of the job may take on a crowded machine.
const WORK: Duration = Duration::from_secs(600);
/// What the ledger may be below Spark's own figure, seconds.
const BELOW: f64 = 0.0002;
/// Stages that one thread claims to work for, the last few thousand at once: more than a thread is listened to.
const CLAIMED: usize = 15_000;

#[test]
fn stages_and_tasks_of_spark_3() -> Result<()> {
    let Some(here) = Here::or_skip("stages_and_tasks_of_spark_3") else { return Ok(()) };
    attribution(&here, false)
}

#[test]
fn stages_and_tasks_of_the_newest_spark() -> Result<()> {
    let test = "stages_and_tasks_of_the_newest_spark";
    let Some(here) = Here::or_skip(test).and_then(|here| here.with_newest_spark(test)) else { return Ok(()) };
    tracefs();
    attribution(&here, true)
}

/// All that is asked, and what it is asked of.
struct Case<'a> {
    here: &'a Here,
    daemon: &'a Daemon,
    job: &'a Job,
    app: String,
    log: EventLog,
    /// First and last instant, Unix milliseconds.
    range: (u64, u64),
    /// The executor's process, and the CPU seconds that it had used when all was done.
    executor: (u32, f64),
    named: bool,
}

/// Characters of what is wrong with a part: an answer of the daemon may be long.
const TOLD: usize = 800;

fn attribution(here: &Here, named: bool) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), named::flags(named))?;
    let from = WallTime::now().as_millis();
    let mut job = SparkJob::java(&TASK_JOBS, &here.venv, &here.java, &dir.path().join("spark"))
        .master("local-cluster[1,2,1024]")
        .java_options(NOT_INLINED)
        .conf("spark.scheduler.mode", "FAIR")
        .event_log()
        .arg("short:100:2")
        .arg("two:40")
        .arg("skew:20")
        .arg(format!("names:{CLAIMED}"))
        .start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WORK)?;
    let executors = procfs::executors(&app);
    let [pid] = executors[..] else { bail!("not one executor but {executors:?}") };
    let executor = (pid, procfs::cpu_seconds(pid)?);
    let until = WallTime::now().as_millis();
    wait_visible(&daemon, until)?;
    let log = whole_log(&job)?;
    let case = Case { here, daemon: &daemon, job: &job, app, log, range: (from, until), executor, named };
    // All are looked at, whatever the first of them says.
    let parts = [
        ("the ledger", case.every_task_is_in_the_ledger()),
        ("labels", case.samples_carry_their_tasks_labels()),
        ("HTTP and commands", case.commands_say_what_http_says()),
        ("the tax", case.the_tax_is_whole()),
        ("slow tasks", case.the_slow_method_is_first()),
        ("bad names", case.bad_names_are_bounded_and_escaped()),
        ("its name", case.the_application_is_called_as_in_its_code()),
        ("named events", case.named_events_are_of_their_tasks()),
        ("waits", case.waits_are_sampled_unless_told_otherwise()),
    ];
    let told = |error: anyhow::Error| format!("{error:#}").replace('\n', " ").chars().take(TOLD).collect();
    let wrong = parts.into_iter().filter_map(|(part, result)| {
        let told: String = told(result.err()?);
        Some(format!("{part}: {told}"))
    });
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(daemon.stop()?.success());
    Ok(())
}

/// The event log, once it has the end of the last stage: Spark writes it some time after the job has its result.
fn whole_log(job: &Job) -> Result<EventLog> {
    let last: u64 = job.fact("names.stages").context("no last stage")?.parse()?;
    let begun = Instant::now();
    loop {
        let log = EventLog::read(&job.event_log().context("no event log")?)?;
        if log.stages.iter().any(|stage| stage.id == last) {
            return Ok(log);
        }
        ensure!(begun.elapsed() < VISIBLE, "stage {last} has no end in the event log");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// The rows under a key.
fn rows<'a>(answer: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    answer[key].as_array().with_context(|| format!("no {key} in {answer}"))
}

impl Case<'_> {
    fn query(&self) -> String {
        format!("app={}&from={}&until={}", self.app, self.range.0, self.range.1)
    }

    /// spark-submit's words have the class alone; the driver is asked when it is old enough, and its executors' samples
    /// of before are called so, too.
    fn the_application_is_called_as_in_its_code(&self) -> Result<()> {
        let executors = format!("/api/v1/apps?{}&role=executor", self.query());
        let mut name = Value::Null;
        let named = wait_for("the application's name", VISIBLE, || {
            name = self.daemon.json(&executors)?["apps"][0]["name"].take();
            Ok((name == "task jobs").then_some(()))
        });
        named.with_context(|| format!("it is called {name}"))
    }

    fn waits_are_sampled_unless_told_otherwise(&self) -> Result<()> {
        let answer = self.daemon.json(&format!("/api/v1/stages?{}&join=no", self.query()))?;
        let waited = |stage: &Value| stage["waited"]["seconds"].as_f64() > Some(0.0);
        ensure!(rows(&answer, "stages")?.iter().any(waited), "{answer}");
        Ok(())
    }

    /// The stages of a phase of the job.
    fn stages(&self, phase: &str) -> Result<Vec<u64>> {
        let ids =
            self.job.fact(&format!("{phase}.stages")).with_context(|| format!("no stages of {phase}"))?;
        Ok(ids.split(',').map(str::parse).collect::<Result<_, _>>()?)
    }

    fn every_task_is_in_the_ledger(&self) -> Result<()> {
        let exact = exact_cpu(self.daemon, &self.query())?;
        // The task that calls its own thread something else cannot be told from another meanwhile.
        let misnamed = self.stages("names")?;
        let mut measured = 0;
        for task in self.log.tasks.iter().filter(|task| task.succeeded() && !misnamed.contains(&task.stage)) {
            let ours = exact.get(&task.tid).with_context(|| format!("not in the ledger: {task:?}"))?;
            let spark = task.spark_cpu_ns() as f64 / 1e9;
            ensure!(ours - spark > -BELOW, "{ours} s in the ledger for {task:?}");
            measured += 1;
        }
        // Two stages of 100, two of 40, one of 20, and the warm-up.
        ensure!(measured > 300, "only {measured} tasks in the event log");
        Ok(())
    }

    fn samples_carry_their_tasks_labels(&self) -> Result<()> {
        let mut all = samples(self.daemon, &format!("{}&role=executor", self.query()))?;
        let warm_up = self.stages("warm-up")?; // Its tasks work in every method.
        all.retain(|sample| sample.number("stage").is_none_or(|stage| !warm_up.contains(&stage)));
        let ids =
            |task: &Task| [task.stage, task.stage_attempt, task.index, task.attempt, task.tid].map(Some);
        let tasks: BTreeSet<_> = self.log.tasks.iter().map(ids).collect();
        let labels = ["stage", "stage_attempt", "task_index", "task_attempt", "task"];
        let known = |sample: &Labelled| {
            tasks.contains(&labels.map(|label| sample.number(label)))
                && sample.text("thread_class") == Some("task")
        };
        let mut verdict = Verdict::default();
        for (method, parity) in [("TaskWork.even", 0), ("TaskWork.odd", 1)] {
            let of_parity = |sample: &Labelled| sample.number("task_index").is_some_and(|n| n % 2 == parity);
            verdict.add(&all, method, |sample| known(sample) && of_parity(sample));
        }
        for (method, stage) in ["TaskWork.left", "TaskWork.right"].into_iter().zip(self.stages("two")?) {
            verdict.add(&all, method, |sample| known(sample) && sample.number("stage") == Some(stage));
        }
        println!("{} samples in the tasks' methods, {} without a stage", verdict.n, verdict.without);
        ensure!(verdict.wrong.is_empty(), "{:?}", verdict.wrong);
        // The tasks work by the clock: on a crowded machine they get little done, and few samples.
        ensure!(verdict.n > 30, "only {} samples in the tasks' methods", verdict.n);
        ensure!(verdict.without * 100 <= verdict.n, "{} of {} have no stage", verdict.without, verdict.n);
        // One class for all that an executor does.
        ensure!(
            all.iter().all(|sample| sample
                .text("thread_class")
                .is_some_and(|c| ThreadClass::from_slug(c).is_some()))
        );
        Ok(())
    }

    fn commands_say_what_http_says(&self) -> Result<()> {
        let stage = self.stages("skew")?[0].to_string();
        let (app, query) = (&*self.app, self.query());
        let asked: [(&str, &str, Vec<&str>, String); 4] = [
            ("stages", "stages", vec!["stages"], format!("stages?{query}")),
            ("tasks", "tasks", vec!["tasks", "--stage", &stage], format!("tasks?{query}&stage={stage}")),
            ("tax", "classes", vec!["tax"], format!("tax?{query}")),
            (
                "diff",
                "diff",
                vec!["diff", "--stage", &stage, "--slow"],
                format!("diff?{query}&stage={stage}&slow=1&format=json"),
            ),
        ];
        let binary = self.here.binary.to_str().context("the binary's path")?;
        let (from, until) = (self.range.0.to_string(), self.range.1.to_string());
        for (what, key, words, path) in asked {
            let common = ["--app", app, "--from", &from, "--until", &until, "--url", self.daemon.url()];
            let command = [&[binary], &words[..], &common[..]].concat();
            let begun = Instant::now();
            // What Spark tells of stages may come between the two questions.
            while let Err(error) = self.both_say_the_same(key, &path, &command) {
                ensure!(begun.elapsed() < VISIBLE, "{what}: {error:#}");
                std::thread::sleep(Duration::from_secs(1));
            }
            let table = ran(command)?.good()?.out;
            ensure!(table.lines().count() > 1, "{what} prints no table: {table}");
            ensure!(!table.contains(|c: char| c.is_control() && c != '\n'), "{what}: {table:?}");
        }
        // The stages are those of the event log, with as many tasks as Spark ran.
        let answer = self.daemon.json(&format!("/api/v1/stages?{query}"))?;
        for stage in self.stages("short")? {
            let row = rows(&answer, "stages")?.iter().find(|row| row["stage"] == *stage.to_string());
            let row = row.with_context(|| format!("no stage {stage}"))?;
            ensure!(row["tasks"] == self.log.tasks_of(stage).count(), "{row}");
        }
        Ok(())
    }

    /// The rows of a command's JSON are those of HTTP's.
    fn both_say_the_same(&self, key: &str, path: &str, command: &[&str]) -> Result<()> {
        let http = self.daemon.json(&format!("/api/v1/{path}"))?;
        let json = ran([command, &["--json"]].concat())?.good()?.out;
        let json: Value = serde_json::from_str(&json).context("the command's JSON")?;
        let (http, json) = (rows(&http, key)?, rows(&json, key)?);
        // Some commands show the first rows only.
        ensure!(!json.is_empty() && json.len() <= http.len(), "{} rows of {}", json.len(), http.len());
        let other = json.iter().zip(http).find(|(json, http)| json != http);
        ensure!(other.is_none(), "the command and HTTP say {other:?}");
        Ok(())
    }

    fn the_tax_is_whole(&self) -> Result<()> {
        let answer = self.daemon.json(&format!("/api/v1/tax?{}&role=executor", self.query()))?;
        let seconds = |value: &Value| value["cpu_seconds"].as_f64().context("no cpu_seconds");
        let total = seconds(&answer["total"])?;
        let mut sum = 0.0;
        let mut seen = BTreeSet::new();
        for class in rows(&answer, "classes")? {
            sum += seconds(class)?;
            seen.insert(class["thread_class"].as_str().unwrap_or("null").to_owned());
        }
        ensure!((sum / total - 1.0).abs() < 1e-6, "the classes have {sum} s of {total} s");
        // A program that the executor starts is the executor to all who look, until it is another: it has no
        // ledger, and on a crowded machine a sample now and then.
        let processes = rows(&answer, "processes")?;
        let own = processes.iter().find(|row| row["pid"] == self.executor.0);
        let own = own.with_context(|| format!("not the executor {}: {processes:?}", self.executor.0))?;
        let (exact, rest) = (seconds(&own["total"])?, total - seconds(&own["total"])?);
        ensure!(own["source"] == "ledger", "the executor's time is from {}", own["source"]);
        ensure!(rest < total * 0.02, "{rest} s of {total} s are not the executor's: {processes:?}");
        let all: BTreeSet<_> = ThreadClass::ALL.iter().map(|class| class.slug().to_owned()).collect();
        ensure!(seen == all, "{seen:?}");
        // More than Spark knows of, and no more than the kernel does.
        let spark: u64 = self.log.tasks.iter().map(|task| task.spark_cpu_ns()).sum();
        // The JIT may have gone on since.
        let (pid, when_done) = self.executor;
        let now = procfs::cpu_seconds(pid)?;
        println!("the executor's ledger has {exact} s, the kernel {when_done} to {now} s, others {rest} s");
        ensure!(exact > spark as f64 / 1e9, "{exact} s; Spark says {} s of its tasks", spark as f64 / 1e9);
        ensure!(exact < now * 1.01 + 0.02, "{exact} s; the kernel says {now} s");
        ensure!(exact > when_done * 0.9, "{exact} s; the kernel says {when_done} s");
        Ok(())
    }

    fn the_slow_method_is_first(&self) -> Result<()> {
        let stage = self.stages("skew")?[0];
        let path = format!("/api/v1/diff?{}&stage={stage}&slow=1&format=json", self.query());
        let answer = self.daemon.json(&path)?;
        let first = &answer["diff"][0];
        ensure!(first["name"].as_str().is_some_and(|name| name.ends_with("TaskWork.slowPath")), "{first}");
        ensure!(answer["slow"]["tasks"] == self.log.tasks_of(stage).count(), "{}", answer["slow"]);
        Ok(())
    }
}
