//! `/api/v1/series`: a selection over time.
//!
//! In: `step` (a length of time, rounded up to whole windows; absent, what gives about 120 points) and
//! `by` (labels). Out: a series for each combination of those labels' values. A step in which no
//! window was kept has no point. Limit: [`MAX_STEPS`] steps.

use super::ServeState;
use super::answer::{amount, head, headers, instant, json};
use super::error::{ApiError, shown};
use super::params::Params;
use super::request;
use super::time::parse_length;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_model::{Query, WallTime};
use emberscope_store::Store;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Most steps in a range.
const MAX_STEPS: u128 = 11_000;
/// Steps in a range unless told.
const DEFAULT_STEPS: u32 = 120;

/// Answers `/api/v1/series`.
pub async fn series(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &["step", "by"], |store, params, query| {
            let by = request::labels(params, "by")?;
            let step = step(store, params, query)?;
            let summary = store.summary(query)?;
            let series = store.series(query, step, &by)?.into_iter().map(|(labels, points)| {
                let labels: Map<String, Value> = labels
                    .into_iter()
                    .map(|(key, value)| (key.name().to_owned(), value.as_ref().into()))
                    .collect();
                let points = points.into_iter().map(|point| {
                    let mut row = amount(query.kind, point.count, point.weight);
                    row.insert("time".into(), instant(WallTime::from_millis(point.time_ms)));
                    Value::Object(row)
                });
                let points: Value = points.collect();
                serde_json::json!({ "labels": labels, "points": points })
            });
            let mut out = head(&summary, store);
            out.insert("step_seconds".into(), step.as_secs_f64().into());
            out.insert("series".into(), series.collect());
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

fn step(store: &dyn Store, params: &Params, query: &Query) -> Result<Duration, ApiError> {
    let asked = match params.one("step")? {
        None => query.range.duration() / DEFAULT_STEPS,
        Some(text) => {
            let step = parse_length(text);
            step.map_err(|e| ApiError::bad("step", format!("`step={}`: {e}", shown(text))))?
        }
    };
    // Whole windows: a step that is shorter would cut a window whose samples have no finer time.
    let window = store.window_length().max(Duration::from_millis(1)).as_nanos();
    let step = asked.as_nanos().div_ceil(window).max(1) * window;
    if query.range.duration().as_nanos() / step > MAX_STEPS {
        let message =
            format!("The range has more than {MAX_STEPS} steps: ask for a longer `step` or a shorter range.");
        return Err(ApiError::bad("step", message));
    }
    u64::try_from(step).map(Duration::from_nanos).map_err(|_| ApiError::bad("step", "`step` is too long."))
}
