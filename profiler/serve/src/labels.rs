//! `/api/v1/labels` and `/api/v1/labels/{name}/values`: what there is to select by.
//!
//! In: the store's sums by label set. Out: names that occur in the selection, or one name's values with
//! their samples, the most sampled first. Values are cut to `limit`; the answer says how many were cut.

use super::ServeState;
use super::answer::table;
use super::error::ApiError;
use super::request;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use emberscope_api::route::{self, param};
use emberscope_api::{Amount, LabelValue, LabelValues, Labels};
use emberscope_model::LabelKey;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `/api/v1/labels`
pub async fn names(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let work = |store: &dyn emberscope_store::Store, _: &_, query: &_| {
        let summary = store.summary(query)?;
        let mut keys = BTreeSet::new();
        for total in store.totals(query)? {
            keys.extend(total.labels.iter().map(|(key, _)| key));
        }
        // What a stage is of, and what its samples' stacks tell.
        if keys.contains(&LabelKey::Stage) {
            keys.extend(LabelKey::TOLD);
        }
        Ok(table(&summary, store, Labels { labels: keys.into_iter().map(|key| key.name().into()).collect() }))
    };
    state.select(raw, &route::LABELS, work).await
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
        .select(raw, &route::LABEL_VALUES, move |store, params, query| {
            let limit = params.number_of(&route::LABEL_VALUES, param::LIMIT)?;
            let summary = store.summary(query)?;
            let mut rows = store.values(query, key)?;
            let cut = rows.len().saturating_sub(limit) as u64;
            rows.truncate(limit);
            let rows = rows.into_iter().map(|known| LabelValue {
                value: (*known.value).to_owned(),
                amount: Amount::new(query.kind, known.count, known.weight),
            });
            let content = LabelValues { label: key.name().into(), cut, values: rows.collect() };
            Ok(table(&summary, store, content))
        })
        .await
}
