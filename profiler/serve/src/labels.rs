//! `/api/v1/labels` and `/api/v1/labels/{name}/values`: what there is to select by.
//!
//! In: the store's sums by label set. Out: names that occur in the selection, or one name's values with
//! their samples, the most sampled first. Values are cut to `limit`; the answer says how many were cut.

use super::ServeState;
use super::answer::{amount, head, headers, json, table};
use super::error::ApiError;
use super::request;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Values that are answered unless `limit` says.
const DEFAULT_LIMIT: usize = 1000;
/// The most values that `limit` may say.
const MAX_LIMIT: usize = 100_000;

/// Answers `/api/v1/labels`.
pub async fn names(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let work = |store: &dyn emberscope_store::Store, _: &_, query: &_| {
        let summary = store.summary(query)?;
        let mut keys = BTreeSet::new();
        for total in store.totals(query)? {
            keys.extend(total.labels.iter().map(|(key, _)| key));
        }
        Ok(table(&summary, store, "labels", keys.into_iter().map(|key| key.name()).collect()))
    };
    state.select(raw, &[], work).await
}

/// Answers `/api/v1/labels/{name}/values`.
pub async fn values(
    State(state): State<Arc<ServeState>>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(raw): RawQuery,
) -> Response {
    let key = match name {
        Ok(Path(name)) => request::label(&name, "name"),
        Err(_) => Err(ApiError::bad("name", "The label's name in the path is not UTF-8 once decoded.")),
    };
    let key = match key {
        Ok(key) => key,
        Err(error) => {
            return ApiError { status: StatusCode::NOT_FOUND, code: "unknown_label", ..error }
                .into_response();
        }
    };
    state
        .select(raw, &["limit"], move |store, params, query| {
            let limit = params.number("limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
            let summary = store.summary(query)?;
            let mut rows = store.values(query, key)?;
            let cut = rows.len().saturating_sub(limit);
            rows.truncate(limit);
            let rows = rows.into_iter().map(|known| {
                let mut row = amount(query.kind, known.count, known.weight);
                row.insert("value".into(), (*known.value).into());
                Value::Object(row)
            });
            let mut out = head(&summary, store);
            out.insert("label".into(), key.name().into());
            out.insert("cut".into(), cut.into());
            out.insert("values".into(), rows.collect());
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}
