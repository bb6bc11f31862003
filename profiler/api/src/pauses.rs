//! `/api/v1/pauses`. What is not known is null.

use crate::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pauses of JVMs: all threads of one were stopped at a safepoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pauses {
    /// How many are kept.
    pub count: u64,
    /// How many of them the limit left out: the shortest.
    pub cut: u64,
    /// Length of all that are kept.
    pub seconds: f64,
    /// Sums by JVM and cause, the largest first.
    pub causes: Vec<PauseCause>,
    /// One by one, by their begin.
    pub pauses: Vec<Pause>,
}

/// Pauses of one JVM for one cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PauseCause {
    /// Whose.
    #[serde(flatten)]
    pub jvm: PausedJvm,
    /// The operation.
    pub cause: Option<String>,
    /// How many.
    pub count: u64,
    /// Length of all together.
    pub seconds: f64,
    /// Length of the longest.
    pub longest_seconds: f64,
}

/// A pause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pause {
    /// Whose.
    #[serde(flatten)]
    pub jvm: PausedJvm,
    /// When threads began to be stopped.
    pub began: Instant,
    /// The same to the nanosecond, since the Unix epoch.
    pub began_ns: u64,
    /// From then until they went on.
    pub seconds: f64,
    /// The operation, as the JVM's log has it: `G1CollectForAllocation`.
    pub cause: Option<String>,
}

/// A JVM whose threads were stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PausedJvm {
    /// The application's id.
    pub app: Option<String>,
    /// The executor's id.
    pub executor: Option<String>,
    /// What the process is to Spark.
    pub role: Option<String>,
    /// The node.
    pub node: Option<String>,
    /// The process.
    pub pid: Option<String>,
}
