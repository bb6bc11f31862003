//! `/api/v1/apps` and `/api/v1/executors`.

use crate::{Amount, Instant, SparkExecutor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Spark applications.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Apps {
    /// A row for each, by id.
    pub apps: Vec<App>,
}

/// A Spark application.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct App {
    /// Spark's id of it.
    pub id: String,
    /// Its name; what is not known is null.
    pub name: Option<String>,
    /// Whose processes these are: the driver's user, where it was seen.
    pub user: Option<String>,
    /// How it was deployed.
    pub deploy: Option<String>,
    /// How many executors were sampled.
    #[serde(default)]
    pub executors: u64,
    /// Pids of drivers; of a PySpark program its Python process and its JVM.
    #[serde(default)]
    pub drivers: BTreeSet<u32>,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
    /// Beginning of the first window with a sample.
    #[serde(default)]
    pub first_seen: Instant,
    /// End of the last window with a sample.
    #[serde(default)]
    pub last_seen: Instant,
}

/// Executors.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Executors {
    /// A row for each executor and role: its JVM, its Python workers.
    pub executors: Vec<Executor>,
}

/// An executor's processes of one role.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// The application's id.
    pub app: String,
    /// The application's name; what is not known is null.
    pub app_name: Option<String>,
    /// Spark's id of it.
    pub executor: String,
    /// `driver`, `executor` or `python`.
    #[serde(default)]
    pub role: String,
    /// Host name of the node whose daemon took the samples.
    pub node: Option<String>,
    /// The host, as Spark knows it.
    pub host: Option<String>,
    /// Its processes.
    #[serde(default)]
    pub pids: BTreeSet<u32>,
    /// Cores that Spark gave it.
    pub cores: Option<u32>,
    /// Its JVM.
    pub jvm: Option<Jvm>,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
    /// Beginning of the first window with a sample.
    #[serde(default)]
    pub first_seen: Instant,
    /// End of the last window with a sample.
    #[serde(default)]
    pub last_seen: Instant,
    /// What Spark said of it, as it is kept with the windows; null where that is nothing, and of Python workers.
    pub spark: Option<SparkExecutor>,
}

/// What is known of a JVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Jvm {
    /// Its release.
    pub version: String,
    /// How its methods get their names.
    pub names: Cow<'static, str>,
    /// The same in a sentence.
    pub names_detail: Cow<'static, str>,
}
