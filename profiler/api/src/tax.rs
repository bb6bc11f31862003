//! `/api/v1/tax`. Each figure is written; None is read of a daemon that does not send it.

use crate::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How the CPU time of JVMs splits by class of thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tax {
    /// Where the times come from: `ledger` (exact), `samples` or `mixed`; null of nothing.
    #[serde(default)]
    pub source: Option<Cow<'static, str>>,
    /// The stage whose time it is; null where no label of a task selects.
    pub stage: Option<TaxStage>,
    /// Sum of the classes, and of the processes.
    pub total: Part,
    /// A part for each class, used or not.
    #[serde(default)]
    pub classes: Vec<PartOf>,
    /// The JVMs.
    #[serde(default)]
    pub processes: Vec<TaxProcess>,
    /// The selection's processes that are no JVMs, in no sum; the busiest first.
    #[serde(default)]
    pub beside: Vec<Beside>,
}

/// The tasks whose time is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaxStage {
    /// How many.
    pub tasks: u64,
    /// When the first was seen.
    pub first_seen: Option<Instant>,
    /// When the last was seen.
    pub last_seen: Option<Instant>,
    /// Executors that ran them.
    pub executors: Vec<String>,
    /// Where the CPU time comes from.
    pub source: Cow<'static, str>,
    /// Their own CPU time, helpers and Python included.
    #[schemars(with = "f64")]
    pub cpu_seconds: Option<f64>,
    /// Relative standard error of it; null of what is exact.
    pub sampling_error: Option<f64>,
}

/// CPU time of a class, or of all. Errors are relative, and null of what is exact.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Part {
    /// Time on a CPU.
    #[schemars(with = "f64")]
    pub cpu_seconds: Option<f64>,
    /// Of it, in user mode.
    #[schemars(with = "f64")]
    pub user_seconds: Option<f64>,
    /// Of it, in the kernel.
    #[schemars(with = "f64")]
    pub system_seconds: Option<f64>,
    /// Standard error of the CPU time.
    pub cpu_error: Option<f64>,
    /// Standard error of its part in user mode.
    pub user_error: Option<f64>,
    /// Standard error of its part in the kernel.
    pub system_error: Option<f64>,
    /// Samples of the same threads.
    pub samples: u64,
    /// Their weight.
    #[schemars(with = "f64")]
    pub sampled_cpu_seconds: Option<f64>,
    /// Standard error of it; null without samples.
    pub sampling_error: Option<f64>,
}

/// A part of a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PartOf {
    /// The class; null of samples without one.
    pub thread_class: Option<Cow<'static, str>>,
    /// Where the times come from.
    pub source: Option<Cow<'static, str>>,
    /// Its times.
    #[serde(flatten)]
    pub part: Part,
    /// Its part of the whole's CPU time; null of nothing.
    pub share: Option<f64>,
    /// Standard error of the share, in the share's own unit.
    pub share_error: Option<f64>,
}

/// Which process it is. What is not known is null.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Who {
    /// Host name of its node.
    pub node: Option<String>,
    /// Its pid.
    pub pid: Option<u32>,
    /// The application's id.
    pub app: Option<String>,
    /// The application's name.
    pub app_name: Option<String>,
    /// `driver`, `executor`, `python`, ...
    pub role: Option<String>,
    /// The executor's id.
    pub executor: Option<String>,
    /// Name of the program.
    pub process: Option<String>,
}

/// A JVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaxProcess {
    /// Which.
    #[serde(flatten)]
    pub who: Who,
    /// Where the times come from.
    pub source: Option<Cow<'static, str>>,
    /// Sum of its classes.
    pub total: Part,
    /// The classes that it used.
    pub classes: Vec<PartOf>,
}

/// A process that is no JVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Beside {
    /// Which.
    #[serde(flatten)]
    pub who: Who,
    /// Where the CPU time comes from: `ledger` or `samples`.
    pub source: Cow<'static, str>,
    /// Its samples.
    pub samples: u64,
    /// Time on a CPU.
    #[schemars(with = "f64")]
    pub cpu_seconds: Option<f64>,
    /// Relative standard error of it; null of what is exact.
    pub sampling_error: Option<f64>,
}
