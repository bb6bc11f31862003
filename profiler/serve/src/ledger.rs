//! `/api/v1/ledger`: exact sums by any labels.
//!
//! In: `by`, a list of labels. Out: a line for each combination of their values, as the store sums them.

use super::ServeState;
use super::answer::{head, headers, json, labels, whole};
use super::figures::exact;
use super::request;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Ledger, LedgerLine};
use serde_json::Value;
use std::sync::Arc;

/// Why an answer has no line though there are windows.
const NOTHING: &str = "The ledger has nothing of this selection in these windows; where the kernel's accounts \
                       cannot be read (/api/v1/status), there are only samples.";

/// Answers `/api/v1/ledger`.
pub async fn ledger(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &route::LEDGER, |store, params, query| {
            let by = request::labels(params, param::BY)?;
            let summary = store.summary(query)?;
            let lines = store.ledger(query.range, &query.selection, &by)?;
            let mut head = head(&summary, store);
            if lines.is_empty() && summary.windows > 0 {
                head.note = Some(NOTHING.to_owned());
            }
            let rows = lines.iter().map(|line| LedgerLine {
                labels: labels(line.labels.iter().map(|(key, value)| (*key, value))),
                exact: exact(&line.sums),
                first_seen: Some(line.seen.from.into()),
                last_seen: Some(line.seen.until.into()),
            });
            let content = Ledger {
                by: by.iter().map(|key| key.name().into()).collect(),
                count: lines.len() as u64,
                ledger: rows.collect(),
            };
            Ok(json(headers(&summary, store), &Value::Object(whole(head, content))))
        })
        .await
}
