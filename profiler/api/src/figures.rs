//! The two kinds of figures of a row: exact ones, by the kernel's accounts, and sampled ones. They are never mixed.

use crate::{Amount, Weight};
use emberscope_model::SampleKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the kernel has on threads' accounts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Exact {
    /// Time on a CPU.
    pub cpu_seconds: f64,
    /// Of it, in user mode.
    pub user_seconds: f64,
    /// Of it, in the kernel.
    pub system_seconds: f64,
    /// Time that passed.
    pub wall_seconds: f64,
    /// Of it, in which threads wanted to run and others ran, or their cgroup was throttled.
    pub run_delay_seconds: f64,
    /// Of the run delay, in which the cgroup had used up its quota of CPU time; 0 where waits are not sampled.
    pub throttled_seconds: f64,
    /// Time in which the JVM of these threads stood still: garbage collections and other safepoints. A thread that runs no
    /// Java code goes on meanwhile.
    pub paused_seconds: f64,
    /// Wall time less CPU time and run delay.
    pub blocked_seconds: f64,
    /// Of the blocked time, until a Python worker woke the thread.
    pub python_wait_seconds: f64,
    /// Times that threads gave the CPU up.
    pub voluntary_switches: u64,
    /// Times that the CPU was taken from them.
    pub involuntary_switches: u64,
    /// First touches of pages.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
    /// Times that a thread took this name: for a task's own thread, 1.
    pub begun: u64,
}

/// What samples say.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sampled {
    /// How many.
    pub samples: u64,
    /// What they weigh, under the name that their kind has for it: `cpu_seconds`.
    #[serde(flatten)]
    pub weight: Weight,
    /// Relative standard error of it; null without samples.
    pub sampling_error: Option<f64>,
}

impl Sampled {
    /// What they weigh, of samples of a kind: seconds, or the kind's own unit. None where the answer does not say.
    pub fn amount(&self, kind: SampleKind) -> Option<f64> {
        self.weight.of(kind)?.as_f64()
    }
}

impl From<Amount> for Sampled {
    fn from(Amount { samples, sampling_error, weight }: Amount) -> Self {
        Self { samples, weight, sampling_error }
    }
}

/// Both, of the same threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Figures {
    /// By the kernel's accounts; null where it has none.
    pub exact: Option<Exact>,
    /// By samples.
    pub sampled: Sampled,
}

/// What threads waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Waited {
    /// Sum of the sampled waits.
    pub seconds: f64,
    /// Which part of the exact blocked time they are; null without it.
    pub of_blocked: Option<f64>,
    /// Seconds by reason, a value of the label `wait`.
    pub by: BTreeMap<Cow<'static, str>, f64>,
}
