//! What Spark's own REST API says of stages and tasks, beside our figures and in none of them.

use crate::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Whom Spark's figures are from.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SparkOrigin {
    /// `ready`, `stale`, `kept` (as it is kept with the windows: Spark tells nothing now), `asking`, `unreachable`, `not-asked` or `partly`.
    pub state: Cow<'static, str>,
    /// Base URLs of the servers that told.
    pub source: Option<String>,
    /// When the oldest of it was told.
    pub fetched: Option<Instant>,
    /// What is missing, and why.
    pub says: String,
}

/// Spark's clocks of CPU time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SparkCpu {
    /// Inside tasks, nanoseconds; failed and killed ones count as 0.
    pub executor_cpu_ns: Option<u64>,
    /// Reading tasks in, nanoseconds.
    pub deserialize_cpu_ns: Option<u64>,
}

impl SparkCpu {
    /// Both together, seconds; None where Spark has not told.
    pub fn seconds(&self) -> Option<f64> {
        let read_in = self.deserialize_cpu_ns.unwrap_or(0);
        Some(self.executor_cpu_ns?.saturating_add(read_in) as f64 / 1e9)
    }
}

/// What Spark says of an attempt of a stage, whatever the range.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SparkStage {
    /// Spark's page of it, for people; empty of what is kept: no server is known to have it.
    pub page: String,
    /// The call site, unless the job set a name.
    pub name: String,
    /// The job's description, where one was set.
    pub description: Option<String>,
    /// Jobs that it belongs to.
    pub job_ids: Vec<u32>,
    /// The SQL execution that its job belongs to.
    pub sql_id: Option<u64>,
    /// Description of the SQL execution.
    pub sql_description: Option<String>,
    /// `PENDING`, `ACTIVE`, `COMPLETE` or `FAILED`.
    pub status: String,
    /// Tasks of the stage's task set; copies and retries are not counted again.
    pub tasks: u64,
    /// CPU time.
    #[serde(flatten)]
    pub cpu: SparkCpu,
    /// Wall time inside tasks, milliseconds.
    pub run_time_ms: u64,
    /// When it was submitted.
    pub submitted: Option<Instant>,
    /// When it ended.
    pub completed: Option<Instant>,
}

/// What Spark said of an executor, whatever the range.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SparkExecutor {
    /// `ACTIVE` or `REMOVED`.
    pub status: String,
    /// When it was added.
    pub added: Option<Instant>,
    /// When it was removed; null where it had not been when Spark was asked.
    pub removed: Option<Instant>,
    /// Why it was removed.
    pub reason: Option<String>,
    /// When Spark was asked.
    pub fetched: Option<Instant>,
}

/// What Spark says of an attempt of a task, whatever the range.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SparkTask {
    /// From launch to end (or to now), milliseconds, as the driver saw it.
    pub duration_ms: Option<u64>,
    /// CPU time.
    #[serde(flatten)]
    pub cpu: SparkCpu,
    /// `RUNNING`, `SUCCESS`, `FAILED`, `KILLED`, ...
    pub status: String,
    /// A speculative copy.
    pub speculative: bool,
    /// Number of the attempt, from 0.
    pub attempt: u32,
    /// Host of the executor.
    pub host: String,
    /// When the driver launched it.
    pub launched: Option<Instant>,
}
