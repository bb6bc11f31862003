//! What the daemon says of tasks: samples by their labels, and the ledger's CPU time of each task.

use super::Daemon;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;

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
pub fn samples(daemon: &Daemon, query: &str) -> Result<Vec<Labelled>> {
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

/// Whether samples in known methods carry the labels that they should.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Samples in the methods.
    pub n: usize,
    /// Of these, under a wrong label.
    pub wrong_samples: usize,
    /// What they are.
    pub wrong: Vec<String>,
    /// Of these, without a stage: none, `unknown`, or `other` for want of room.
    pub without: usize,
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
            match sample.text("stage") {
                None | Some("unknown" | "other") => self.without += sample.count,
                Some(_) if right(sample) => {}
                Some(_) => {
                    self.wrong_samples += sample.count;
                    self.wrong.push(format!("{} in {what} under {:?}", sample.count, sample.values));
                }
            }
        }
    }
}

/// CPU seconds of each task's own thread by its TID, as `/api/v1/tasks` has them from the ledger.
pub fn exact_cpu(daemon: &Daemon, query: &str) -> Result<BTreeMap<u64, f64>> {
    let answer = daemon.json(&format!("/api/v1/tasks?{query}&limit=100000"))?;
    let mut found = BTreeMap::new();
    for row in answer["tasks"].as_array().context("no tasks in the answer")? {
        let tid = row["task"].as_str().and_then(|tid| tid.parse().ok());
        if let (Some(tid), Some(cpu)) = (tid, row["exact"]["cpu_seconds"].as_f64()) {
            *found.entry(tid).or_default() += cpu;
        }
    }
    Ok(found)
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
        assert_eq!((verdict.n, verdict.wrong_samples, verdict.without), (12, 12, 0));
        assert!(parse("stage=3;java 1").is_none());
    }
}
