//! `/api/v1/diff` as JSON. Names are borrowed where an answer is made. Each figure is written; None is read of a daemon
//! that does not send it.

use crate::{Amount, Basis, Held};
use emberscope_model::SampleKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Two selections compared: the right one against the left. Figures are scaled: times in seconds, what is no time in the unit
/// of its kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Diff<'a> {
    /// What there is to be asked for.
    #[serde(flatten)]
    pub held: Held,
    /// What makes the sides comparable: `equal`, `absolute` or `task`.
    #[serde(default)]
    pub scale: Cow<'static, str>,
    /// What is held against.
    pub left: Side,
    /// What is compared.
    pub right: Side,
    /// The tasks that the sides were taken from; null where no slow ones were asked for.
    pub slow: Option<Slow>,
    /// Sums of both sides; the error is null where they were made equal.
    #[serde(default)]
    pub total: Pair,
    /// Whether the sums or any method differ by more than chance explains; null of an older daemon.
    pub significant: Option<bool>,
    /// The method that most of the difference comes from; null where none has most of it, or chance may be all of it.
    pub cause: Option<MethodName<'a>>,
    /// What methods are sorted by: `self` or `total`.
    #[serde(default)]
    pub sort: Cow<'static, str>,
    /// How many methods there are.
    #[serde(default)]
    pub methods: u64,
    /// How many of them the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// Methods by the size of the difference; the cause goes before them.
    #[serde(default)]
    pub diff: Vec<DiffRow<'a>>,
    /// The merged tree, a caller before its callees; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<DiffNode<'a>>>,
}

/// One side, as it is without the scale.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// What it rests on.
    #[serde(flatten)]
    pub basis: Basis,
    /// Why it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
    /// What its figures are multiplied by.
    #[serde(default)]
    pub factor: f64,
    /// Its tasks, where slow ones were asked for.
    #[serde(flatten)]
    pub slow: Option<SlowSide>,
}

/// Tasks of a side.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SlowSide {
    /// `median` or `slow`.
    pub name: Cow<'static, str>,
    /// The first hundred.
    #[serde(default)]
    pub tasks: Vec<SideTask>,
    /// How many.
    pub task_count: u64,
    /// Their CPU time.
    #[serde(default)]
    #[schemars(with = "f64")]
    pub task_cpu_seconds: Option<f64>,
}

/// A task of a side. What is not known is null.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SideTask {
    /// Spark's id of it (TID).
    pub task: Option<String>,
    /// Place in the stage.
    pub task_index: Option<String>,
    /// Number of the attempt, from 0.
    pub task_attempt: Option<String>,
    /// Number of the stage's attempt, from 0.
    pub stage_attempt: Option<String>,
    /// Id of the executor that ran it.
    pub executor: Option<String>,
    /// CPU time of its own thread, its helpers and its Python worker.
    pub cpu_seconds: f64,
}

/// A stage's tasks, and what slow ones spend more time with than usual ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Slow {
    /// How many tasks.
    pub tasks: u64,
    /// Where their times come from: `ledger` (exact), `samples` or `mixed`.
    pub source: Cow<'static, str>,
    /// What makes them slow: `cpu` or `wall` time.
    pub by: Cow<'static, str>,
    /// Percentiles of that time: `p40_cpu_seconds`, `p60_cpu_seconds`, `p90_cpu_seconds`, or `_wall_`.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    pub percentiles: Map<String, Value>,
    /// What a slow task's own thread has more of, the most first; without what lies within the spread of tasks.
    pub because: Vec<Because>,
    /// If `lock` is among these: which locks they are, by who held them, the most first; at most five.
    pub locks: Vec<SlowLock>,
    /// Where tasks are slow by CPU: the one that took longest, if it took twice as long as the usual ones and is none of
    /// the slow ones.
    pub long: Option<LongTask>,
}

/// A lock that a slow task waits longer for than a usual one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SlowLock {
    /// The class of its object.
    pub lock: Cow<'static, str>,
    /// The thread that held it.
    pub owner: Cow<'static, str>,
    /// How much longer, a task.
    pub seconds: f64,
}

/// A task that took long without much CPU time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LongTask {
    /// Which.
    #[serde(flatten)]
    pub task: SideTask,
    /// From its beginning to its end.
    pub wall_seconds: f64,
    /// Of these, waiting for anything but a CPU.
    pub blocked_seconds: f64,
    /// Wall time of a usual task.
    pub usual_wall_seconds: f64,
    /// Whether waits were sampled. If not, with Spark up to 4.1, the thread's waiting for its next task may be in the
    /// times.
    pub waits_sampled: bool,
}

/// What a slow task has more of than a usual one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Because {
    /// `cpu`, `run_delay`, `throttled`, a value of `wait`, or `blocked` where no wait was seen.
    pub of: Cow<'static, str>,
    /// How much more, a task.
    pub seconds: f64,
    /// Its part of all that it has more.
    pub share: f64,
}

/// Figures of both sides: seconds, or where the kind of samples is no time, amounts in its unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pair {
    /// The left side's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub left_seconds: Option<f64>,
    /// The right side's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub right_seconds: Option<f64>,
    /// The left side's amount, of a kind that is no time: bytes, faults, switches or events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub left_amount: Option<f64>,
    /// The right side's amount, of a kind that is no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub right_amount: Option<f64>,
    /// The right side's less the left side's.
    #[schemars(with = "f64")]
    pub difference: Option<f64>,
    /// Standard error of the difference, in the same unit.
    pub difference_error: Option<f64>,
    /// Samples that the left side's rests on.
    pub left_samples: u64,
    /// Samples that the right side's rests on.
    pub right_samples: u64,
}

impl Pair {
    /// The same with the figures of the left and the right side, of samples of a kind.
    pub fn with_sides(self, kind: SampleKind, [left, right]: [f64; 2]) -> Self {
        match kind.is_time() {
            true => Self { left_seconds: Some(left), right_seconds: Some(right), ..self },
            false => Self { left_amount: Some(left), right_amount: Some(right), ..self },
        }
    }

    /// The figures of the left and the right side, whatever their kind.
    pub fn sides(&self) -> [Option<f64>; 2] {
        [self.left_seconds.or(self.left_amount), self.right_seconds.or(self.right_amount)]
    }

    /// Whether the difference is larger than so many of its errors; false where either is not known.
    pub fn is_beyond(&self, errors: f64) -> bool {
        let both = self.difference.zip(self.difference_error);
        both.is_some_and(|(difference, error)| difference.abs() > errors * error)
    }

    /// A part of the left side's time: of the difference its growth. None of nothing.
    pub fn of_left(&self, seconds: Option<f64>) -> Option<f64> {
        let left = self.left_seconds.filter(|left| *left > 0.0)?;
        Some(seconds? / left)
    }
}

/// Which method it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MethodName<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Library or file that it is of; empty where it is not known.
    pub module: Cow<'a, str>,
}

/// A method on both sides.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiffRow<'a> {
    /// Which.
    #[serde(flatten)]
    pub method: MethodName<'a>,
    /// Kinds of code that it ran as.
    pub kinds: BTreeSet<Cow<'static, str>>,
    /// What is of it alone.
    #[serde(rename = "self")]
    pub own: Pair,
    /// What is of it and of what it called.
    pub total: Pair,
}

/// A node of the merged tree: figures of the left and the right side.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiffNode<'a> {
    /// Place of its caller; null of the root.
    pub parent: Option<u32>,
    /// Its method.
    #[serde(flatten)]
    pub method: MethodName<'a>,
    /// Kind of code.
    pub kind: Cow<'static, str>,
    /// What is of it alone.
    #[serde(rename = "self")]
    pub own: [f64; 2],
    /// What is of it and of all below it.
    pub total: [f64; 2],
}
