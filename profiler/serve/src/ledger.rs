//! `/api/v1/ledger`: exact sums by any labels.
//!
//! In: `by`, a list of labels. Out: a line for each combination of their values, as the store sums them.

use super::ServeState;
use super::answer::{head, headers, json};
use super::figures::{exact, put_seen};
use super::request;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Why an answer has no line though there are windows.
const NOTHING: &str = "The ledger has nothing of this selection in these windows; where the kernel's accounts \
                       cannot be read (/api/v1/status), there are only samples.";

/// Answers `/api/v1/ledger`.
pub async fn ledger(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &["by"], |store, params, query| {
            let by = request::labels(params, "by")?;
            let summary = store.summary(query)?;
            let lines = store.ledger(query.range, &query.selection, &by)?;
            let mut out = head(&summary, store);
            if lines.is_empty() && summary.windows > 0 {
                out.insert("note".into(), NOTHING.into());
            }
            out.insert("by".into(), by.iter().map(|key| key.name()).collect());
            out.insert("count".into(), lines.len().into());
            let rows = lines.iter().map(|line| {
                let labels: Map<String, Value> =
                    line.labels.iter().map(|(k, v)| (k.name().to_owned(), v.as_ref().into())).collect();
                let mut row = Map::new();
                row.insert("labels".into(), labels.into());
                row.insert("exact".into(), exact(&line.sums));
                put_seen(&mut row, Some(line.seen));
                Value::Object(row)
            });
            out.insert("ledger".into(), rows.collect());
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}
