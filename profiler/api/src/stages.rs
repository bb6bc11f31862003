//! `/api/v1/stages` and `/api/v1/tasks`. What is not known is null.

use crate::{Figures, Instant, SparkOrigin, SparkStage, SparkTask, Waited};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Stages.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stages {
    /// How many.
    #[serde(default)]
    pub count: u64,
    /// How many of them the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// In the order of app, stage and attempt, as numbers, unless another was asked for.
    pub stages: Vec<Stage>,
    /// Whom Spark's figures are from.
    pub spark: Option<SparkOrigin>,
}

/// An attempt of a stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stage {
    /// The application's id.
    pub app: Option<String>,
    /// The application's name.
    pub app_name: Option<String>,
    /// Spark's id; `unknown` of a task that ran when the daemon came, or whose name was lost.
    pub stage: Option<String>,
    /// Number of the attempt, from 0.
    pub stage_attempt: Option<String>,
    /// Distinct tasks that were seen.
    pub tasks: u64,
    /// Of these, how many began in the answer's windows; null without a ledger.
    pub begun: Option<u64>,
    /// On how many executors.
    pub executors: u64,
    /// To the instant where the ledger tells, else a window's beginning.
    pub first_seen: Option<Instant>,
    /// To the instant where the ledger tells, else a window's end.
    pub last_seen: Option<Instant>,
    /// Of the tasks' own threads.
    #[serde(flatten)]
    pub own: Figures,
    /// Of threads that tasks' threads started to do their work.
    pub helpers: Figures,
    /// Of the tasks' Python workers.
    pub python: Figures,
    /// What the tasks' own threads waited for; null where waits are not sampled.
    pub waited: Option<Waited>,
    /// How long its tasks took, by their own threads' wall time in the answer's windows; null without a ledger.
    pub durations: Option<Durations>,
    /// All of them by class of thread.
    pub classes: Vec<ClassFigures>,
    /// What Spark reports about it; null if nothing.
    pub spark: Option<SparkStage>,
}

/// How long some tasks took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Durations {
    /// Of the one in the middle; of an even number of tasks the shorter of the two there.
    pub median_seconds: f64,
    /// Of the longest.
    pub max_seconds: f64,
}

/// Figures of a class of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClassFigures {
    /// The class; null of threads without one.
    pub thread_class: Option<Cow<'static, str>>,
    /// Of its threads.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// How many there are.
    #[serde(default)]
    pub count: u64,
    /// How many of them the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// What they are sorted by.
    #[serde(default)]
    pub sort: Cow<'static, str>,
    /// The largest first.
    pub tasks: Vec<Task>,
    /// Whom Spark's figures are from.
    pub spark: Option<SparkOrigin>,
}

/// An attempt of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Task {
    /// The application's id.
    pub app: Option<String>,
    /// Spark's id of the stage, or `unknown`.
    pub stage: Option<String>,
    /// Number of the stage's attempt, from 0.
    pub stage_attempt: Option<String>,
    /// Place in the stage.
    pub task_index: Option<String>,
    /// Number of the attempt, from 0.
    pub task_attempt: Option<String>,
    /// Spark's id of it (TID).
    pub task: Option<String>,
    /// Id of the executor that ran it.
    pub executor: Option<String>,
    /// Host name of the node that it ran on.
    pub node: Option<String>,
    /// To the instant where the ledger tells, else a window's beginning.
    pub first_seen: Option<Instant>,
    /// To the instant where the ledger tells, else a window's end.
    pub last_seen: Option<Instant>,
    /// Of its own thread.
    #[serde(flatten)]
    pub own: Figures,
    /// Of threads that its thread started to do its work.
    pub helpers: Figures,
    /// Of its Python worker.
    pub python: Figures,
    /// What its own thread waited for; null where waits are not sampled.
    pub waited: Option<Waited>,
    /// What Spark reports about it; null if nothing.
    pub spark: Option<SparkTask>,
}
