//! A figure of both runs and how far chance takes it.
//!
//! In: the tasks of the same thing in both runs. Out: both sums and the variance of their difference. Exact times have no
//! error of measuring, but two runs of the same work do not use the same time. How much is told by the tasks: where both
//! runs have tasks of the same indexes each is held against the one with its index, and n differences of variance v sum to one of
//! n v, so that partitions of unlike size do not matter; else each run's tasks vary by themselves. Under [`LEAST`] tasks
//! CPU time has the error that its samples alone would have. That of one stage or query has [`COLD`] on top. Noise that all tasks of a run share (a slower machine) is in
//! no task's figure: no pair of runs tells of it.

use crate::figures::seconds;
use crate::work::Task;
use emberscope_api::{Change, Pair};
use emberscope_export::SIGNIFICANT;
use emberscope_model::{LabelKey, LedgerSums};
use std::collections::HashMap;

/// Tasks by which it is told how tasks vary.
const LEAST: usize = 4;

/// Seconds by which the CPU time of one stage differs between two runs since its code is compiled sooner or later: on a
/// crowded machine of two CPUs a stage of 0.6 s was seen to differ by 0.25 s, which is within twice this.
const COLD: f64 = 0.15;

/// A time of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// CPU time, with that of its helpers and Python workers: the ledger's, else the samples'.
    Cpu,
    /// From its beginning to its end. This and the others are the own thread's, by the ledger.
    Wall,
    /// In which it wanted to run and others ran.
    RunDelay,
    /// In which it waited for anything else.
    Blocked,
}

impl Time {
    /// Nanoseconds; None where the ledger has none.
    fn of(self, task: &Task) -> Option<u64> {
        let exact = task.own.exact.as_ref();
        match self {
            Self::Cpu => Some(task.cpu_ns()),
            Self::Wall => exact.map(|sums| sums.wall_ns),
            Self::RunDelay => exact.map(|sums| sums.accounts.run_delay_ns),
            Self::Blocked => exact.map(LedgerSums::blocked_ns),
        }
    }
}

/// Sums of both runs, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of the left and the right run.
    pub sums: [f64; 2],
    /// Variance of the difference; None where nothing tells it.
    variance: Option<f64>,
    samples: [u64; 2],
    exact: bool,
    sampled: bool,
}

impl Estimate {
    /// Of the same thing in both runs; None where no task has the figure.
    pub fn of_tasks(left: &[&Task], right: &[&Task], time: Time) -> Option<Self> {
        let sides = [left, right].map(|tasks| by_index(tasks, time));
        let [left_times, right_times] = &sides;
        if left_times.is_empty() && right_times.is_empty() {
            return None;
        }
        let is_cpu = time == Time::Cpu;
        let sums = sides
            .each_ref()
            .map(|times| seconds(times.values().fold(0, |sum, time| time.saturating_add(sum))));
        let samples = [left, right].map(|tasks| {
            let samples = tasks.iter().map(|task| task.all().samples);
            if is_cpu { samples.fold(0, u64::saturating_add) } else { 0 }
        });
        let all = || left.iter().chain(right);
        let exact = !is_cpu || all().any(|task| task.is_exact());
        let sampled = is_cpu && all().any(|task| !task.is_exact());
        let variance = match sampled {
            true => of_sampling(sums, samples),
            false => of_both(left_times, right_times).or_else(|| of_sampling(sums, samples)),
        };
        Some(Self { sums, variance, samples, exact, sampled })
    }

    /// Of samples alone.
    pub fn of_samples(sums: [f64; 2], samples: [u64; 2]) -> Self {
        Self { sums, variance: of_sampling(sums, samples), samples, exact: false, sampled: true }
    }

    /// Of something that is measured once, such as a whole run's wall time.
    pub fn once(sums: [f64; 2]) -> Self {
        Self { sums, exact: true, ..Self::default() }
    }

    fn difference(&self) -> f64 {
        let [left, right] = self.sums;
        // To the nanosecond: sums of the same figures in another order are no difference.
        ((right - left) * 1e9).round() / 1e9
    }

    /// Adds that of another thing. What of a sum has no error of its own counts as one that differs by chance.
    pub fn add(&mut self, other: &Self) {
        let unknown = |one: &Self| one.variance.unwrap_or(one.difference().powi(2));
        let is_first = *self == Self::default();
        self.variance = match (self.variance, other.variance) {
            (None, more) if is_first => more,
            (None, None) => None,
            _ => Some(unknown(self) + unknown(other)),
        };
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
        for (sum, more) in self.samples.iter_mut().zip(other.samples) {
            *sum = sum.saturating_add(more);
        }
        self.exact |= other.exact;
        self.sampled |= other.sampled;
    }

    /// The same as a figure of one stage or query, which both runs ran while its code was new.
    pub fn with_cold_code(self) -> Self {
        let is_of_both = self.sums.iter().all(|sum| *sum > 0.0);
        Self { variance: self.variance.map(|of| if is_of_both { of + COLD * COLD } else { of }), ..self }
    }

    /// Standard error of the difference, seconds.
    pub fn error(&self) -> Option<f64> {
        self.variance.map(f64::sqrt)
    }

    /// For an answer; `runs` are the CPU times of both runs' tasks.
    pub fn change(&self, runs: Option<[f64; 2]>) -> Change {
        let [left, right] = self.sums;
        let [left_samples, right_samples] = self.samples;
        let share = |of: f64, side: usize| {
            let run = runs.and_then(|runs| runs.get(side).copied()).filter(|run| *run > 0.0);
            run.map(|run| of / run)
        };
        let pair = Pair {
            left_seconds: Some(left),
            right_seconds: Some(right),
            difference: Some(self.difference()),
            difference_error: self.error(),
            left_samples,
            right_samples,
            ..Pair::default()
        };
        Change {
            left_share: share(left, 0),
            right_share: share(right, 1),
            significant: pair.is_beyond(SIGNIFICANT),
            pair,
            source: match (self.exact, self.sampled) {
                (true, true) => "mixed",
                (true, false) => "ledger",
                _ => "samples",
            }
            .into(),
        }
    }
}

/// Times of tasks by their index in the stage, nanoseconds; a task's attempts together.
fn by_index<'t>(tasks: &[&'t Task], of: Time) -> HashMap<&'t str, u64> {
    let mut times: HashMap<&str, u64> = HashMap::new();
    for task in tasks {
        if let Some(time) = of.of(task) {
            let sum = times.entry(task.label(LabelKey::TaskIndex)).or_default();
            *sum = sum.saturating_add(time);
        }
    }
    times
}

/// Variance of the difference of two sums, by how tasks vary.
fn of_both(left: &HashMap<&str, u64>, right: &HashMap<&str, u64>) -> Option<f64> {
    let pairs: Option<Vec<f64>> = left
        .iter()
        .map(|(index, time)| right.get(index).map(|other| seconds(*other) - seconds(*time)))
        .collect();
    match pairs {
        Some(differences) if left.len() == right.len() => of_sum(&differences),
        _ => {
            let of = |times: &HashMap<&str, u64>| match times.is_empty() {
                true => Some(0.0),
                false => of_sum(&times.values().copied().map(seconds).collect::<Vec<_>>()),
            };
            Some(of(left)? + of(right)?)
        }
    }
}

/// Variance of the sum of figures that are drawn alike; None of too few.
fn of_sum(figures: &[f64]) -> Option<f64> {
    if figures.len() < LEAST {
        return None;
    }
    let n = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    Some(n * squares / (n - 1.0))
}

/// Variance of the difference of two times of so many samples each; None where a time has no sample.
fn of_sampling(sums: [f64; 2], samples: [u64; 2]) -> Option<f64> {
    let of = |(sum, samples): (f64, u64)| match samples {
        0 if sum > 0.0 => None,
        0 => Some(0.0),
        n => Some(sum * sum / n as f64),
    };
    let [left, right] = sums;
    let [left_samples, right_samples] = samples;
    if left_samples == 0 && right_samples == 0 {
        return None;
    }
    Some(of((left, left_samples))? + of((right, right_samples))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(of: &[(&'static str, f64)]) -> HashMap<&'static str, u64> {
        of.iter().map(|(index, seconds)| (*index, (seconds * 1e9) as u64)).collect()
    }

    #[test]
    fn tasks_of_one_index_are_held_against_each_other() {
        let left = times(&[("0", 1.0), ("1", 10.0), ("2", 100.0), ("3", 1000.0)]);
        let right = times(&[("0", 1.1), ("1", 10.1), ("2", 100.1), ("3", 1000.1)]);
        let both = of_both(&left, &right).unwrap();
        assert!(both < 1e-15, "{both}: each is longer by the same, whatever its size");
        let more = times(&[("0", 1.0), ("1", 1.2), ("2", 0.8), ("3", 1.0), ("4", 1.0)]);
        let few = times(&[("0", 1.0)]);
        assert_eq!((of_both(&more, &few), of_both(&few, &few)), (None, None));
        let alone = of_both(&more, &HashMap::new()).unwrap();
        assert!((alone - 5.0 * 0.02).abs() < 1e-9, "{alone}");
    }

    #[test]
    fn sums_have_the_errors_of_their_parts() {
        let one = Estimate::of_samples([1.0, 2.0], [100, 100]);
        assert!((one.error().unwrap() - 0.05_f64.sqrt()).abs() < 1e-9);
        assert!(one.change(None).significant && one.change(None).source == "samples");
        let mut sum = Estimate::default();
        sum.add(&one);
        assert_eq!(sum.error(), one.error());
        sum.add(&Estimate::once([1.0, 1.5]));
        assert!((sum.error().unwrap() - 0.3_f64.sqrt()).abs() < 1e-9, "what has no error differs by chance");
        let change = sum.change(Some([4.0, 7.0]));
        assert_eq!((change.left_share, change.right_share), (Some(0.5), Some(0.5)));
        let cold = Estimate::of_samples([1.0, 1.0], [u64::MAX, u64::MAX]).with_cold_code();
        assert!((cold.error().unwrap() - COLD).abs() < 1e-6);
        let alone = Estimate::of_samples([0.0, 1.0], [0, 100]);
        assert_eq!(alone.with_cold_code(), alone);
        let once = Estimate::once([1.0, 9.0]).change(None);
        assert_eq!((once.pair.difference_error, once.significant), (None, false));
        assert_eq!(Estimate::of_samples([0.0, 1.0], [0, 100]).error(), Some(0.1));
        assert_eq!(Estimate::of_samples([1.0, 1.0], [0, 100]).error(), None);
    }
}
