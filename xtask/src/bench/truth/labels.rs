//! Whose samples are whose: a sample's stack says by its method what its labels should say.
//!
//! A sample is in task code when it has a frame of [`TaskWork`]'s methods; its labels come before the stack
//! (`group=`). Only named frames count, so what the JIT compiled a moment before may be left out, never counted
//! wrong.
//!
//! [`TaskWork`]: ../../../../../tests/jobs/TaskWork.java

use super::Bench;
use super::row::Row;
use super::tasks::Ran;
use crate::launch::Daemon;
use anyhow::{Context as _, Result, bail};
use std::collections::HashSet;

/// The labels asked for, outermost first.
const LABELS: [&str; 6] = ["thread_class", "stage", "stage_attempt", "task_index", "task_attempt", "task"];

/// Samples of one stack under one set of labels.
pub struct Labelled {
    /// Values of [`LABELS`]; None: not set.
    values: [Option<String>; LABELS.len()],
    /// Frames, outermost first.
    pub stack: String,
    /// How many samples.
    pub count: usize,
}

impl Labelled {
    /// A label's value, as text.
    pub fn text(&self, label: &str) -> Option<&str> {
        self.values[LABELS.iter().position(|known| *known == label)?].as_deref()
    }

    /// A label's value, where it is a number.
    pub fn number(&self, label: &str) -> Option<u64> {
        self.text(label)?.parse().ok()
    }

    /// Whether a frame is this method.
    pub fn is_in(&self, method: &str) -> bool {
        self.stack.split(';').any(|frame| frame == method || frame.ends_with(&format!(".{method}")))
    }
}

/// The samples of a selection, by their labels.
pub fn ask(daemon: &Daemon, query: &str) -> Result<Vec<Labelled>> {
    let reply =
        daemon.get(&format!("/api/v1/flamegraph?{query}&format=folded&group={}", LABELS.join(",")))?;
    if reply.status != 200 {
        bail!("{query} was answered {}: {}", reply.status, reply.body);
    }
    reply.body.lines().map(|line| parse(line).with_context(|| format!("no labels in {line:?}"))).collect()
}

fn parse(line: &str) -> Option<Labelled> {
    let (mut stack, count) = line.rsplit_once(' ')?;
    let mut values = [const { None }; LABELS.len()];
    for (label, value) in LABELS.iter().zip(&mut values) {
        let (frame, rest) = stack.split_once(';').unwrap_or((stack, ""));
        let text = frame.strip_prefix(label)?.strip_prefix('=')?;
        *value = (text != "(none)").then(|| text.to_owned());
        stack = rest;
    }
    Some(Labelled { values, stack: stack.to_owned(), count: count.parse().ok()? })
}

/// Of samples in a method: how many, under a wrong label, and without the label.
#[derive(Default)]
pub struct Verdict {
    n: usize,
    wrong: usize,
    without: usize,
}

impl Verdict {
    /// Judges samples in `method`: `right` says whether the labels of one that has a stage are right.
    pub fn add(&mut self, samples: &[Labelled], method: &str, right: impl Fn(&Labelled) -> bool) {
        self.add_where(samples, method, |sample| sample.is_in(method), right);
    }

    /// The same of samples that `chosen` chooses.
    pub fn add_where(
        &mut self,
        samples: &[Labelled],
        what: &str,
        chosen: impl Fn(&Labelled) -> bool,
        right: impl Fn(&Labelled) -> bool,
    ) {
        for sample in samples.iter().filter(|sample| chosen(sample)) {
            self.n += sample.count;
            match sample.number("stage") {
                None => self.without += sample.count,
                Some(_) if right(sample) => {}
                Some(_) => {
                    self.wrong += sample.count;
                    println!("   {what} under {:?}", sample.values);
                }
            }
        }
    }

    /// Its two lines.
    pub fn rows(&self, what: &str) -> Vec<Row> {
        vec![
            Row::at_most(format!("{what}: samples under a wrong label"), self.wrong, 0, self.n),
            Row::share(format!("{what}: samples with a stage"), self.n - self.without, 99.0, self.n),
        ]
    }
}

/// The stages of short tasks: the method's parity is that of the task's index.
pub fn short(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let samples = ask(&bench.daemon, &format!("{}&role=executor", ran.query()))?;
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
    Ok(verdict.rows("short: tasks of 5 to 10 ms"))
}

/// Two stages at once.
pub fn two(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let [left, right] = ran.stages("two")[..] else { bail!("the job did not name its two stages") };
    let samples = ask(&bench.daemon, &format!("{}&role=executor", ran.query()))?;
    let mut verdict = Verdict::default();
    verdict.add(&samples, "TaskWork.left", |sample| sample.number("stage") == Some(left));
    verdict.add(&samples, "TaskWork.right", |sample| sample.number("stage") == Some(right));
    Ok(verdict.rows("two: stages at once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_before_a_stack() {
        let line = "thread_class=task;stage=3;stage_attempt=0;task_index=7;task_attempt=0;task=(none);\
                    java;Thread.run;TaskWork.even;TaskWork.burn 12";
        let sample = parse(line).unwrap();
        assert_eq!((sample.count, sample.number("stage"), sample.number("task")), (12, Some(3), None));
        assert_eq!(sample.text("thread_class"), Some("task"));
        assert!(sample.is_in("TaskWork.even") && !sample.is_in("TaskWork.odd"));
        let mut verdict = Verdict::default();
        verdict.add(&[sample], "TaskWork.even", |sample| sample.number("task_index") == Some(8));
        assert_eq!((verdict.n, verdict.wrong, verdict.without), (12, 12, 0));
        assert!(parse("stage=3;java 1").is_none());
    }
}
