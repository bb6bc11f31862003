//! `/api/v1/labels`, `/api/v1/labels/{name}/values`, and `/api/v1/ledger`: sums by labels.

use crate::{Amount, Exact, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Names to select by.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Labels {
    /// Those that occur.
    pub labels: Vec<Cow<'static, str>>,
}

/// Values of one label.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LabelValues {
    /// Name of the label.
    #[serde(default)]
    pub label: Cow<'static, str>,
    /// How many values the limit left out.
    #[serde(default)]
    pub cut: u64,
    /// The most sampled first.
    pub values: Vec<LabelValue>,
}

/// A value of a label.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LabelValue {
    /// The value; empty of samples without the label.
    pub value: String,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Exact sums by any labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Labels that it is split by.
    pub by: Vec<Cow<'static, str>>,
    /// How many lines.
    pub count: u64,
    /// A line for each combination of the labels' values.
    pub ledger: Vec<LedgerLine>,
}

/// Sums of one combination of labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LedgerLine {
    /// The labels' values; those that it does not have are empty.
    pub labels: BTreeMap<Cow<'static, str>, String>,
    /// The sums.
    pub exact: Exact,
    /// When it was first booked to.
    pub first_seen: Option<Instant>,
    /// When it was last booked to.
    pub last_seen: Option<Instant>,
}
