//! Whose samples are whose: a sample's stack says by its method what its labels should say.
//!
//! A sample is in task code when it has a frame of [`TaskWork`]'s methods. Only named frames count, so what the
//! JIT compiled a moment before may be left out, never counted wrong.
//!
//! [`TaskWork`]: ../../../../../tests/jobs/TaskWork.java

use super::Bench;
use super::row::Row;
use super::tasks::Ran;
use crate::launch::asked::{Labelled, Verdict, samples};
use anyhow::{Result, bail};
use std::collections::HashSet;

/// The executors' samples but those of the warm-up, whose tasks work in every method.
pub fn in_phases(bench: &Bench, ran: &Ran) -> Result<Vec<Labelled>> {
    let mut samples = samples(&bench.daemon, &format!("{}&role=executor", ran.query()))?;
    let warm_up = ran.stages("warm-up");
    samples.retain(|sample| sample.number("stage").is_none_or(|stage| !warm_up.contains(&stage)));
    Ok(samples)
}

/// The stages of short tasks: the method's parity is that of the task's index.
pub fn short(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let samples = in_phases(bench, ran)?;
    let short: Vec<u64> = ran.stages("short");
    // What has no stage could be of any phase: it counts here.
    let samples: Vec<Labelled> = samples
        .into_iter()
        .filter(|sample| sample.number("stage").is_none_or(|stage| short.contains(&stage)))
        .collect();
    let tasks: HashSet<_> = ran
        .log
        .tasks
        .iter()
        .map(|task| (task.stage, task.stage_attempt, task.index, task.attempt, task.tid))
        .collect();
    let known = |sample: &Labelled| {
        let labels =
            ["stage", "stage_attempt", "task_index", "task_attempt", "task"].map(|l| sample.number(l));
        let [Some(a), Some(b), Some(c), Some(d), Some(e)] = labels else { return false };
        tasks.contains(&(a, b, c, d, e)) && sample.text("thread_class") == Some("task")
    };
    let mut verdict = Verdict::default();
    for (method, parity) in [("TaskWork.even", 0), ("TaskWork.odd", 1)] {
        verdict.add(&samples, method, |sample| {
            known(sample) && sample.number("task_index").is_some_and(|index| index % 2 == parity)
        });
    }
    Ok(rows(&verdict, "short: tasks of 5 to 10 ms"))
}

/// Two stages at once.
pub fn two(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let [left, right] = ran.stages("two")[..] else { bail!("the job did not name its two stages") };
    let samples = in_phases(bench, ran)?;
    let mut verdict = Verdict::default();
    verdict.add(&samples, "TaskWork.left", |sample| sample.number("stage") == Some(left));
    verdict.add(&samples, "TaskWork.right", |sample| sample.number("stage") == Some(right));
    Ok(rows(&verdict, "two: stages at once"))
}

/// The two lines of a verdict.
pub fn rows(verdict: &Verdict, what: &str) -> Vec<Row> {
    let Verdict { n, without, .. } = *verdict;
    for line in verdict.wrong.iter().take(10) {
        println!("   {what}: {line}");
    }
    vec![
        Row::at_most(format!("{what}: samples under a wrong label"), verdict.wrong_samples, 0, n),
        Row::share(format!("{what}: samples with a stage"), n - without, 99.0, n),
    ]
}
