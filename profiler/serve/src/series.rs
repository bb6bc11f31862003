//! `/api/v1/series`: a selection over time.
//!
//! In: `step` (a length of time, rounded up to whole windows; absent, what gives about 120 points over the windows
//! that there are) and
//! `by` (labels). Out: a series for each combination of those labels' values. A step in which no
//! window was kept has no point. Limit: [`MAX_STEPS`] steps.

use super::ServeState;
use super::answer::{labels, table};
use super::error::{ApiError, shown};
use super::params::Params;
use super::request;
use super::time::parse_length;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Amount, Point, Series, SeriesLine};
use emberscope_model::{Query, WallTime};
use emberscope_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Most steps in a range.
const MAX_STEPS: u128 = 11_000;
/// Steps in a range unless told.
const DEFAULT_STEPS: u32 = 120;

/// Answers `/api/v1/series`.
pub async fn series(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &route::SERIES, |store, params, query| {
            let by = request::labels(params, param::BY)?;
            let summary = store.summary(query)?;
            let step = step(store, params, query, summary.range.duration())?;
            let series = store.series(query, step, &by)?.into_iter().map(|(of, points)| {
                let points = points.into_iter().map(|point| Point {
                    time: WallTime::from_millis(point.time_ms).into(),
                    amount: Amount::new(query.kind, point.count, point.weight),
                });
                SeriesLine { labels: labels(of), points: points.collect() }
            });
            let content = Series { step_seconds: step.as_secs_f64(), series: series.collect() };
            Ok(table(&summary, store, content))
        })
        .await
}

/// `answered` is the length of what the answer is over, which may be far less than is asked for.
fn step(store: &dyn Store, params: &Params, query: &Query, answered: Duration) -> Result<Duration, ApiError> {
    let asked = match params.one(param::STEP)? {
        None => query.range.duration().min(answered) / DEFAULT_STEPS,
        Some(text) => {
            let step = parse_length(text);
            step.map_err(|e| ApiError::bad(param::STEP, format!("`step={}`: {e}", shown(text))))?
        }
    };
    // Whole windows: a step that is shorter would cut a window whose samples have no finer time.
    let window = store.window_length().max(Duration::from_millis(1)).as_nanos();
    let step = asked.as_nanos().div_ceil(window).max(1) * window;
    if query.range.duration().as_nanos() / step > MAX_STEPS {
        let message =
            format!("The range has more than {MAX_STEPS} steps: ask for a longer `step` or a shorter range.");
        return Err(ApiError::bad(param::STEP, message));
    }
    u64::try_from(step)
        .map(Duration::from_nanos)
        .map_err(|_| ApiError::bad(param::STEP, "`step` is too long."))
}
