//! `/api/v1/processes`: who ran on the node, Spark's or not.
//!
//! In: the store's process records and sums by pid. Out: one row for each incarnation, the busiest first.
//! Samples carry the pid, not the start time: where a pid was reused in the range, its time cannot be told
//! apart and is null.

use super::ServeState;
use super::answer::{labels, table, text};
use super::apps::jvm;
use super::work::of_processes;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::{Amount, Process, Processes, route};
use emberscope_model::LabelKey;
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
            let (count, weight) = sum(record.key.pid);
            let reused = incarnations.get(&record.key.pid).is_some_and(|n| *n > 1);
            Process {
                pid: record.key.pid,
                start_ticks: record.key.start_ticks,
                program: record.program.clone(),
                host: text(&record.host),
                cores: (record.cores > 0).then_some(record.cores),
                jvm: record.jvm.as_ref().map(jvm),
                labels: labels(record.labels.iter()),
                amount: match reused {
                    true => Amount::unknown(query.kind),
                    false => Amount::new(query.kind, count, weight).into(),
                },
            }
        });
        Ok(table(&summary, store, Processes { processes: rows.collect() }))
    };
    state.select(raw, &route::PROCESSES, work).await
}
