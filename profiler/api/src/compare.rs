//! `/api/v1/compare`. What is not known is null. Names are borrowed where an answer is made.

use crate::{Basis, DiffRow, Held, Instant, Pair, SparkOrigin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Two runs: the right one against the left. Times are as they are, of tasks with their helpers and Python workers unless
/// it is said otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Compare<'a> {
    /// What there is to be asked for.
    #[serde(flatten)]
    pub held: Held,
    /// What is compared with.
    pub left: ComparedRun,
    /// What is compared.
    pub right: ComparedRun,
    /// Both as a whole.
    #[serde(default)]
    pub whole: ComparedWhole,
    /// Queries of Spark SQL, the largest difference first.
    #[serde(default)]
    pub queries: Compared<ComparedQuery>,
    /// Stages, the largest difference first.
    #[serde(default)]
    pub stages: Compared<ComparedStage>,
    /// Operators of Spark SQL by what frames tell, the largest difference first.
    #[serde(default)]
    pub operators: Compared<ComparedOperator>,
    /// Methods by self, the largest difference first.
    #[serde(default)]
    pub methods: Compared<ComparedMethod<'a>>,
    /// Whether the whole, a query, a stage, an operator or a method differs by more than chance explains.
    #[serde(default)]
    pub significant: bool,
    /// Settings that Spark reported for both runs and that differ.
    #[serde(default)]
    pub settings: Vec<ComparedSetting>,
    /// With `fail_over`: what grew by more. Null without.
    pub judged: Option<Judged>,
}

/// A setting that is another in the right run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedSetting {
    /// Its name.
    pub name: String,
    /// The left run's; null: it was not set.
    pub left: Option<String>,
    /// The right run's; null: it was not set.
    pub right: Option<String>,
}

/// Rows, and how many there are.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}s")]
pub struct Compared<T> {
    /// How many.
    #[serde(default)]
    pub count: u64,
    /// How many of them the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// The rows.
    pub rows: Vec<T>,
}

impl<T> Default for Compared<T> {
    fn default() -> Self {
        Self { count: 0, cut: 0, rows: Vec::new() }
    }
}

/// A run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedRun {
    /// What its samples rest on, those of tasks.
    #[serde(flatten)]
    pub basis: Basis,
    /// The application's id.
    pub app: String,
    /// The application's name.
    pub app_name: Option<String>,
    /// When it was first seen.
    pub begun: Option<Instant>,
    /// When it was last seen.
    pub ended: Option<Instant>,
    /// Queries that Spark reported.
    pub queries: u64,
    /// Stages whose tasks were seen.
    pub stages: u64,
    /// Stages without a name from Spark: they are matched by order alone.
    pub unnamed_stages: u64,
    /// Whom the names are from.
    pub spark: SparkOrigin,
}

/// A figure of both runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Change {
    /// Both figures and their difference. The error of an exact one is how much tasks differ among themselves, that of a
    /// sampled one sampling's; null where neither tells.
    #[serde(flatten)]
    pub pair: Pair,
    /// The left one's part of the run's, in CPU time of tasks.
    pub left_share: Option<f64>,
    /// The right one's part of the run's.
    pub right_share: Option<f64>,
    /// Whether it differs by more than twice its error.
    pub significant: bool,
    /// `ledger` (exact), `samples` or `mixed`.
    pub source: Cow<'static, str>,
}

/// Both runs as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedWhole {
    /// CPU time of tasks.
    pub cpu: Change,
    /// CPU time of all other threads: the driver's, GC, JIT.
    pub beside: Change,
    /// From when each was first seen until it was last seen; null where that is not known.
    pub wall: Option<Change>,
    /// Times of tasks' own threads.
    #[serde(flatten)]
    pub times: ComparedTimes,
}

/// Times of tasks' own threads; null where the ledger has none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedTimes {
    /// Time that passed in tasks.
    pub task_wall: Option<Change>,
    /// Of it, in which they wanted to run and others ran.
    pub run_delay: Option<Change>,
    /// Of it, in which they waited for anything else.
    pub blocked: Option<Change>,
    /// Sampled waits by reason, a value of the label `wait`: seconds of the left and the right run.
    pub waited: BTreeMap<Cow<'static, str>, [f64; 2]>,
}

/// A query of both runs, or of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedQuery {
    /// Its description: what was set for people, else the call site.
    pub description: String,
    /// `left` or `right`: only that run has it. Null of both.
    pub only: Option<Cow<'static, str>>,
    /// Number of the execution in the left run.
    pub left_execution: Option<u64>,
    /// Number of the execution in the right run.
    pub right_execution: Option<u64>,
    /// Whether the operators of its plan are others; null where a plan is not known.
    pub plan_changed: Option<bool>,
    /// CPU time.
    pub cpu: Change,
    /// Times.
    #[serde(flatten)]
    pub times: ComparedTimes,
}

/// A stage of both runs, or of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedStage {
    /// Its name: the call site, unless the job set one. Null if Spark reported none.
    pub name: Option<String>,
    /// Description of its query or job.
    pub description: Option<String>,
    /// `left` or `right`: only that run has it. Null of both.
    pub only: Option<Cow<'static, str>>,
    /// Its number in the left run.
    pub left_stage: Option<String>,
    /// Its number in the right run.
    pub right_stage: Option<String>,
    /// Tasks that were seen in the left run.
    pub left_tasks: u64,
    /// Tasks that were seen in the right run.
    pub right_tasks: u64,
    /// CPU time.
    pub cpu: Change,
    /// Times.
    #[serde(flatten)]
    pub times: ComparedTimes,
}

/// An operator, or Spark's work around them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedOperator {
    /// Its name: a value of the label `operator`.
    pub operator: String,
    /// CPU time by samples.
    pub cpu: Change,
}

/// A method.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparedMethod<'a> {
    /// Which, and its times by samples.
    #[serde(flatten)]
    pub method: DiffRow<'a>,
    /// Whether its self time differs by more than twice its error.
    pub significant: bool,
}

/// What may grow by so much and no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Judged {
    /// The growth of CPU time that is allowed: 0.1 is a tenth.
    pub fail_over: f64,
    /// How many grew by more beyond their error.
    pub failed: u64,
    /// The whole, and each query and stage of both runs that is a twentieth of a run.
    pub checked: Vec<Checked>,
}

/// Something that is judged by its growth.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Checked {
    /// `whole`, `query` or `stage`.
    pub of: Cow<'static, str>,
    /// Its name.
    pub name: String,
    /// By which part of the left one's CPU time it grew; null where that is not known.
    pub growth: Option<f64>,
    /// Standard error of that.
    pub error: Option<f64>,
    /// Whether it grew by more than it may: the whole by more than twice its error, too, a part with twice its error taken
    /// off. What has no error does not fail.
    pub failed: bool,
}
