//! Helpers of Python functions: up to Spark 3.5 all that is upstream of one runs in a thread that the task's
//! thread starts, and belongs to the task; newer Spark does it in the task's own thread. The digests of
//! tests/jobs/python_udf.py are upstream, and nothing else there makes any.

use super::labels;
use super::row::Row;
use super::tasks::Ran;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::clock::now;
use crate::launch::SparkJob;
use crate::launch::asked::{Labelled, Verdict, samples};
use anyhow::Result;
use std::collections::HashSet;

/// What is in the names of frames that make digests.
const DIGEST: [&str; 2] = ["DigestUtils", "sun.security.provider.SHA5"];

/// Measures.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    println!("== a Python function");
    let (begun, work) = ((now(), procfs::machine()?), bench.work.join("python"));
    let mut job = SparkJob::new("python_udf.py", &bench.kit.venv, &bench.kit.jdk.home, &work)
        .master("local-cluster[1,2,1024]")
        .event_log()
        .start()?;
    job.wait_fact("app", TIMEOUT)?;
    let ran = Ran::finish(job, begun, &work)?;
    let samples = samples(&bench.daemon, &format!("{}&role=executor", ran.query()))?;
    let class = if bench.options.kit.spark.starts_with("3.") { "python" } else { "task" };
    let digests = |sample: &Labelled| DIGEST.iter().any(|part| sample.stack.contains(part));
    let tasks: HashSet<_> = ran.log.tasks.iter().map(|task| (task.stage, task.index, task.tid)).collect();
    let mut verdict = Verdict::default();
    verdict.add_where(&samples, "digests", digests, |sample| {
        let labels = ["stage", "task_index", "task"].map(|label| sample.number(label));
        let [Some(stage), Some(index), Some(tid)] = labels else { return false };
        tasks.contains(&(stage, index, tid)) && sample.text("thread_class") == Some(class)
    });
    Ok(labels::rows(&verdict, &format!("python: upstream work, of class {class}")))
}
