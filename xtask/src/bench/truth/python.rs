//! Helpers of Python functions: up to Spark 3.5 all that is upstream of one runs in a thread that the task's
//! thread starts, and belongs to the task. Newer Spark has no such thread; then its absence is told.

use super::clock::now;
use super::labels;
use super::row::Row;
use super::tasks::Ran;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::launch::SparkJob;
use crate::launch::asked::{Verdict, samples};
use anyhow::Result;

/// A frame that only such a thread has.
const WRITER: &str = "WriterThread.run";

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
    let writes = |frame: &str| frame.contains(WRITER);
    let writers: usize = samples.iter().filter(|s| s.stack.split(';').any(writes)).map(|s| s.count).sum();
    if writers == 0 && !bench.options.spark.starts_with("3.") {
        return Ok(vec![Row::told(
            "python: samples of writer threads",
            "none: this Spark has no such threads",
            0,
        )]);
    }
    let mut verdict = Verdict::default();
    let stages: Vec<u64> = ran.log.stages.iter().map(|stage| stage.id).collect();
    verdict.add_where(
        &samples,
        WRITER,
        |sample| sample.stack.split(';').any(writes),
        |sample| {
            let stage = sample.number("stage").is_some_and(|stage| stages.contains(&stage));
            stage && sample.text("thread_class") == Some("python") && sample.number("task").is_some()
        },
    );
    Ok(labels::rows(&verdict, "python: writer threads"))
}
