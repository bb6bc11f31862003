//! The steps of a time series.
//!
//! In: windows. Out: the step in which each begins, and a point for each step that has one.

use super::super::facts::Facts;
use crate::error::StoreError;
use emberscope_model::{SeriesPoint, WallTime};
use std::collections::BTreeSet;
use std::time::Duration;

/// Steps in which a window of the answer begins.
pub(super) struct Steps {
    length: Duration,
    begun: BTreeSet<WallTime>,
}

impl Steps {
    /// No window yet.
    pub fn new(length: Duration) -> Self {
        Self { length, begun: BTreeSet::new() }
    }

    /// The step of each of a view's windows; those of touched ones are the answer's.
    pub fn of(&mut self, facts: &Facts, touched: &[bool]) -> Vec<WallTime> {
        let steps: Vec<WallTime> =
            facts.windows.iter().map(|window| window.range.from.floor(self.length)).collect();
        self.begun.extend(steps.iter().zip(touched).filter(|(_, touched)| **touched).map(|(step, _)| *step));
        steps
    }

    /// Whether so many series may have a point in each step.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: they would have more than the limit.
    pub fn fit(&self, series: usize, limit: usize) -> Result<(), StoreError> {
        if series.saturating_mul(self.begun.len()) > limit { Err(too_long(limit)) } else { Ok(()) }
    }

    /// A point in each step, by its start: count and weight, zeros where there are none.
    pub fn points(&self, sum: impl Fn(u64) -> Option<(u64, u64)>) -> Vec<SeriesPoint> {
        let point = |step: &WallTime| {
            let (count, weight) = sum(step.0).unwrap_or_default();
            SeriesPoint { time_ms: step.as_millis(), count, weight }
        };
        self.begun.iter().map(point).collect()
    }
}

pub(super) fn too_long(limit: usize) -> StoreError {
    StoreError::TooLarge { what: "points in its time series", limit }
}
