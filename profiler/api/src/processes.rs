//! `/api/v1/processes`.

use crate::{Amount, Jvm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Who ran on the node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Processes {
    /// The busiest first.
    pub processes: Vec<Process>,
}

/// A process, Spark's or not.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks after the boot: tells processes of one pid apart.
    pub start_ticks: u64,
    /// Its program.
    pub program: String,
    /// The host, as its executor knows it; null where it says none.
    pub host: Option<String>,
    /// Cores that Spark gave it.
    pub cores: Option<u32>,
    /// Its JVM.
    pub jvm: Option<Jvm>,
    /// Its labels, without those of threads.
    pub labels: BTreeMap<Cow<'static, str>, String>,
    /// Its samples; null where the pid was used twice in the range, since samples carry the pid alone.
    #[serde(flatten)]
    pub amount: Amount<Option<u64>>,
}
