//! Attempts told apart: a speculative copy beside its original, and a stage that is done twice because a block
//! could not be fetched. Each attempt works in a method of its own.

use super::labels;
use super::row::Row;
use super::tasks::Ran;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::clock::now;
use crate::launch::asked::Verdict;
use crate::launch::spark::NOT_INLINED;
use crate::launch::spark::TASK_JOBS;
use crate::launch::{SparkJob, Standalone};
use anyhow::{Context as _, Result};

/// Measures.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    println!("== attempts, on a standalone cluster of two hosts");
    let (begun, work) = ((now(), procfs::machine()?), bench.work.join("attempts"));
    let cluster = Standalone::start(&bench.kit, &["127.0.0.1", "127.0.0.2"], 1, &bench.work.join("cluster"))?;
    let mut job = SparkJob::java(&TASK_JOBS, &bench.kit.venv, &bench.kit.jdk.home, &work)
        .master(cluster.url())
        .java_options(NOT_INLINED)
        .conf("spark.executor.memory", "800m")
        .conf("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .conf("spark.cores.max", "2")
        .conf("spark.speculation", "true")
        .conf("spark.speculation.quantile", "0.5")
        .event_log()
        .arg("retry")
        .arg("speculate")
        .start()?;
    job.wait_fact("app", TIMEOUT)?;
    let ran = Ran::finish(job, begun, &work)?;
    let copies = ran.log.tasks.iter().filter(|task| task.speculative && task.succeeded()).count();
    let retried = ran.log.stages.iter().filter(|stage| stage.attempt == 1).count();
    let happened = format!("{copies} copies won, {retried} stages done again");
    let mut rows = vec![Row::is(
        "attempts: Spark made them",
        happened,
        "> 0",
        copies > 0 && retried > 0,
        copies + retried,
    )];
    let samples = labels::in_phases(bench, &ran)?;
    let speculated = ran.stages("speculate").first().copied().context("the job named no speculated stage")?;
    let mut tasks = Verdict::default();
    for (method, attempt) in [("TaskWork.original", 0), ("TaskWork.copy", 1)] {
        tasks.add(&samples, method, |sample| {
            sample.number("task_attempt") == Some(attempt) && sample.number("stage") == Some(speculated)
        });
    }
    rows.extend(labels::rows(&tasks, "attempts: of a task"));
    let mut stages = Verdict::default();
    for (method, attempt) in [("TaskWork.firstTry", 0), ("TaskWork.secondTry", 1)] {
        stages.add(&samples, method, |sample| sample.number("stage_attempt") == Some(attempt));
    }
    rows.extend(labels::rows(&stages, "attempts: of a stage"));
    Ok(rows)
}
