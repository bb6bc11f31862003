//! `/api/v1/runs`. What is not known is null.

use crate::{Figures, Instant, Waited};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs of jobs: applications of one `job` and user.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// How many runs.
    #[serde(default)]
    pub count: u64,
    /// How many of them the limit left out: the oldest.
    #[serde(default)]
    pub cut: u64,
    /// Job by job, the oldest run first.
    pub runs: Vec<Run>,
}

/// A run of a job: an application.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// The application's id.
    pub app: String,
    /// The job: what who started the application says, what run-names makes of its name, else its name (label `app_run`). Of
    /// an application without one no other run is known.
    pub job: Option<String>,
    /// The application's name.
    pub app_name: Option<String>,
    /// Whose processes these are: the driver's user, where it was seen.
    pub user: Option<String>,
    /// How it was deployed.
    pub deploy: Option<String>,
    /// What `run` takes for it beside the job: -1 is the last one of the job in the answer's range, -2 the one before.
    pub run: Option<i64>,
    /// When it was first seen: to the instant where the ledger tells, else a window's beginning.
    pub begun: Instant,
    /// When it was last seen; null while it runs.
    pub ended: Option<Instant>,
    /// It was seen in the newest window, and that is no minute ago.
    pub running: bool,
    /// From the one to the other, or until it was last seen.
    pub wall_seconds: f64,
    /// CPU time of all its threads: exact where the ledger has it, and by samples.
    #[serde(flatten)]
    pub cpu: Figures,
    /// Of it, that of tasks, with their helpers and Python workers.
    pub tasks: Figures,
    /// What its tasks' own threads waited for; null where waits are not sampled.
    pub waited: Option<Waited>,
    /// Stages whose tasks were seen.
    pub stages: u64,
    /// CPU time changed at this run; null if it did not, or if that is not known.
    pub changed: Option<RunChange>,
    /// What its executors reserved; null if Spark reported none.
    pub reserved: Option<Reserved>,
    /// Settings that Spark reported, of a closed list; empty if it reported none.
    pub settings: BTreeMap<String, String>,
}

/// What the executors of an application reserved, from when each was added until it was removed, or the application was last
/// seen; of all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reserved {
    /// Executors that were counted.
    pub executors: u64,
    /// Hours of their cores.
    pub core_hours: f64,
    /// Hours of their memory, GiB: heap, off-heap memory, on YARN and Kubernetes overhead and that of Python workers; null
    /// where Spark did not tell its settings.
    pub gib_hours: Option<f64>,
    /// What that costs by the settings `price-core-hour` and `price-gib-hour`; null without prices, or where what a price is
    /// of is not known.
    pub cost: Option<f64>,
}

/// A lasting change of the CPU time of a job's runs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunChange {
    /// Mean CPU time of the runs before it, back to the change before; geometric, as runs are compared by ratios.
    pub before_seconds: f64,
    /// The same of this run and those after it, up to the next change.
    pub after_seconds: f64,
    /// How often chance alone makes runs differ so much: at most one in a hundred is called a change.
    pub chance: f64,
}
