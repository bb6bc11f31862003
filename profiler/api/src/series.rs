//! `/api/v1/series`.

use crate::{Amount, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A selection over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Length of a step: whole windows.
    pub step_seconds: f64,
    /// A line for each combination of the labels' values.
    pub series: Vec<SeriesLine>,
}

/// Samples of one combination of labels over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesLine {
    /// The labels' values.
    pub labels: BTreeMap<Cow<'static, str>, String>,
    /// A point for each step in which there are windows.
    pub points: Vec<Point>,
}

/// Samples of one step.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Beginning of the step.
    pub time: Instant,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
}
