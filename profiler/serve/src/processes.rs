//! `/api/v1/processes`: who ran on the node, Spark's or not.
//!
//! In: the store's process records and sums by pid. Out: one row for each incarnation, the busiest first.
//! Samples carry the pid, not the start time: where a pid was reused in the range, its time cannot be told
//! apart and is null.

use super::ServeState;
use super::answer::{amount, table};
use super::apps::jvm;
use super::work::of_processes;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_model::{LabelKey, ProcessRecord};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers `/api/v1/processes`.
pub async fn processes(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let work = |store: &dyn emberscope_store::Store, _: &_, query: &emberscope_model::Query| {
        let summary = store.summary(query)?;
        let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for total in store.totals(query)? {
            if let Ok(pid) = total.labels.get(LabelKey::Pid).parse() {
                let sum = sums.entry(pid).or_default();
                *sum = (sum.0.saturating_add(total.count), sum.1.saturating_add(total.weight));
            }
        }
        // A process record has no labels of threads: those conditions are kept by the sums.
        let mut records = store.processes(query.range, &of_processes(&query.selection));
        records.retain(|record| sums.contains_key(&record.key.pid));
        let mut incarnations: BTreeMap<u32, usize> = BTreeMap::new();
        for record in &records {
            *incarnations.entry(record.key.pid).or_default() += 1;
        }
        let sum = |pid: u32| sums.get(&pid).copied().unwrap_or_default();
        records.sort_by_key(|r| (Reverse(sum(r.key.pid).1), r.key));
        let rows = records.iter().map(|record| {
            let mut row = describe(record);
            let (count, weight) = sum(record.key.pid);
            let mut amount = amount(query.kind, count, weight);
            if incarnations.get(&record.key.pid).is_some_and(|n| *n > 1) {
                amount.values_mut().for_each(|value| *value = Value::Null);
            }
            row.extend(amount);
            Value::Object(row)
        });
        Ok(table(&summary, store, "processes", rows.collect()))
    };
    state.select(raw, &[], work).await
}

fn describe(record: &ProcessRecord) -> Map<String, Value> {
    let labels: Map<String, Value> =
        record.labels.iter().map(|(key, value)| (key.name().to_owned(), value.as_ref().into())).collect();
    let mut row = Map::new();
    row.insert("pid".into(), record.key.pid.into());
    row.insert("start_ticks".into(), record.key.start_ticks.into());
    row.insert("program".into(), record.program.as_str().into());
    row.insert("host".into(), json!((!record.host.is_empty()).then_some(&record.host)));
    row.insert("cores".into(), json!((record.cores > 0).then_some(record.cores)));
    row.insert("jvm".into(), record.jvm.as_ref().map_or(Value::Null, jvm));
    row.insert("labels".into(), Value::Object(labels));
    row
}
