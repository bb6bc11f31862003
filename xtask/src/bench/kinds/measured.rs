//! Sums by task: what tasks tell of themselves, and what samples say.

use crate::launch::Job;
use crate::launch::asked::Labelled;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A sum for each task, by its TID.
pub type ByTask = BTreeMap<u64, f64>;

/// A fact of a job: `NAME=TID:NUMBER,..`.
pub fn told(job: &Job, name: &str) -> Result<ByTask> {
    let text = job.fact(name).with_context(|| format!("the job does not tell {name}"))?;
    parse(&text).with_context(|| format!("{name}={text}"))
}

fn parse(text: &str) -> Result<ByTask> {
    let one = |task: &str| -> Result<(u64, f64)> {
        let (tid, number) = task.split_once(':').context("not TID:NUMBER")?;
        Ok((tid.parse()?, number.parse()?))
    };
    text.split(',').map(one).collect()
}

/// What those of some samples say that are chosen.
pub fn seen(samples: &[Labelled], chosen: impl Fn(&Labelled) -> bool) -> ByTask {
    let mut sums = ByTask::new();
    for sample in samples.iter().filter(|sample| chosen(sample)) {
        if let Some(task) = sample.number("task") {
            *sums.entry(task).or_default() += sample.count as f64;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_for_each_task() {
        assert_eq!(parse("7:12,9:3").unwrap(), ByTask::from([(7, 12.0), (9, 3.0)]));
        assert!(parse("").is_err() && parse("7").is_err());
    }
}
