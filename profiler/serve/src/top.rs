//! `/api/v1/top`: methods by the time in them and below them.
//!
//! In: [`emberscope_store::Store::methods`]. Out: JSON, the rows sorted as [`emberscope_export::sort`] does. Limits:
//! `limit` rows; the answer says how many there are.

use super::ServeState;
use super::answer::{amount, head, headers, json, share, share_error};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_export::{Cost, Method, sort};
use emberscope_model::{MethodAnswer, SampleKind, Summary};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Rows that are answered unless `limit` says.
const DEFAULT_LIMIT: usize = 50;
/// The most rows that `limit` may say.
const MAX_LIMIT: usize = 100_000;

/// Answers `/api/v1/top`.
pub async fn top(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &["limit", "sort", "lines"], |store, params, query| {
            let by_total = params.choice("sort", &[("self", false), ("total", true)], false)?;
            let limit = params.number("limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
            let MethodAnswer { methods, range, windows, quality } = store.methods(query)?;
            let summary = Summary { range, windows, quality };
            let mut methods: Vec<Method<'_>> = methods.iter().map(Method::of).collect();
            sort(&mut methods, by_total);
            let count = methods.len();
            methods.truncate(limit);
            let rows = methods.iter().map(|method| row(method, summary.quality.samples, query.kind));
            let mut out = head(&summary, store);
            out.insert("sort".into(), if by_total { "total" } else { "self" }.into());
            out.insert("methods".into(), count.into());
            out.insert("top".into(), rows.collect());
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

fn row(method: &Method<'_>, samples: u64, kind: SampleKind) -> Value {
    let cost = |cost: Cost| {
        let mut out = amount(kind, cost.count, cost.weight);
        let share = share(cost.count, samples);
        out.insert("share".into(), serde_json::json!(share));
        out.insert("share_error".into(), serde_json::json!(share_error(cost.count, samples)));
        Value::Object(out)
    };
    let mut row = Map::new();
    row.insert("name".into(), method.name.into());
    row.insert("module".into(), method.module.into());
    row.insert("kinds".into(), method.kinds.iter().copied().collect());
    row.insert("self".into(), cost(method.own));
    row.insert("total".into(), cost(method.total));
    Value::Object(row)
}
