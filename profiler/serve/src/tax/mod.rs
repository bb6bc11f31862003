//! `/api/v1/tax`: how the CPU time of JVMs splits by class of thread, user and kernel apart.
//!
//! In: a selection of processes, or of tasks: then the JVMs that ran these, in the windows in which they
//! were seen. Out: parts by class that sum to the total, and the same for each JVM; from the ledger where
//! it knows the JVM, else from samples; and what runs beside the JVMs. Limits: the store's.

mod part;
mod processes;

use super::ServeState;
use super::answer::table;
use super::error::ApiError;
use super::figures::{Figures, seconds};
use super::request::of_time;
use super::work::{self, natural};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::{Tax, TaxProcess, TaxStage, route};
use emberscope_model::{LabelKey, MatchOp, Matcher, Query, TimeRange, WallTime, sampling_error};
use emberscope_store::Store;
use part::{Part, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Answers `/api/v1/tax`.
pub async fn tax(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &route::TAX, |store, _, query| {
            of_time(query.kind)?;
            if query.selection.matchers.iter().any(|m| m.key == LabelKey::ThreadClass) {
                let message = "`thread_class` is what the tax splits by: ask without it.";
                return Err(ApiError::bad(LabelKey::ThreadClass.name(), message));
            }
            let of_tasks = query.selection.matchers.iter().any(|m| m.key.is_of_thread());
            let stage = of_tasks.then(|| Stage::of(store, query)).transpose()?;
            let query = stage.as_ref().map_or_else(|| query.clone(), |stage| stage.narrowed(query));
            let processes = processes::processes(store, &query, |value| {
                stage.as_ref().is_none_or(|stage| stage.ran.contains(&WHERE.map(value)))
            })?;
            let summary = store.summary(&query)?;
            let mut total = Part::default();
            let mut classes = BTreeMap::new();
            let mut rows = Vec::new();
            for (jvm, parts) in processes.jvms() {
                let mut own = Part::default();
                for (class, part) in &parts {
                    own.add(part);
                    classes.entry(*class).or_insert_with(Part::default).add(part);
                }
                total.add(&own);
                rows.push(TaxProcess {
                    who: jvm.who(),
                    source: own.source().map(|source| source.slug().into()),
                    total: own.answer(),
                    classes: processes::class_rows(&parts, &own, false),
                });
            }
            let content = Tax {
                source: total.source().map(|source| source.slug().into()),
                stage: stage.map(|stage| stage.answer()),
                total: total.answer(),
                classes: processes::class_rows(&classes, &total, true),
                processes: rows,
                beside: processes.beside(),
            };
            Ok(table(&summary, store, content))
        })
        .await
}

/// What says in which JVM a task ran.
const WHERE: [LabelKey; 3] = [LabelKey::App, LabelKey::Executor, LabelKey::Node];

/// The tasks whose time is asked for.
struct Stage {
    tasks: usize,
    seen: TimeRange,
    /// In which JVMs the tasks ran: values of [`WHERE`].
    ran: BTreeSet<[Arc<str>; WHERE.len()]>,
    figures: Figures,
    source: Source,
    cpu_ns: u64,
}

impl Stage {
    fn of(store: &dyn Store, query: &Query) -> Result<Self, ApiError> {
        let tasks = work::tasks(store, query)?;
        let mut figures = Figures::default();
        for task in &tasks {
            figures.add(&task.all());
        }
        let Some(seen) = figures.seen() else { return Err(work::unknown_stage(store, query)) };
        let source = |exact| if exact { Source::Ledger } else { Source::Samples };
        let sources = tasks.iter().map(|task| source(task.is_exact()));
        Ok(Self {
            tasks: tasks.len(),
            seen,
            ran: tasks.iter().map(|task| WHERE.map(|key| Arc::from(task.label(key)))).collect(),
            figures,
            source: sources.reduce(Source::with).unwrap_or(Source::Samples),
            cpu_ns: tasks.iter().map(work::Task::cpu_ns).fold(0, u64::saturating_add),
        })
    }

    /// All threads of the JVMs that ran the tasks, in the windows in which these were seen.
    fn narrowed(&self, query: &Query) -> Query {
        let from = self.seen.from.max(query.range.from);
        // A stretch may have no length, a window must.
        let until = self.seen.until.min(query.range.until).max(WallTime(from.0.saturating_add(1)));
        let mut selection = work::of_processes(&query.selection);
        for (at, key) in WHERE.iter().enumerate() {
            let values: BTreeSet<String> =
                self.ran.iter().filter_map(|ran| ran.get(at)).map(|value| value.to_string()).collect();
            selection.matchers.push(Matcher { key: *key, op: MatchOp::In(values.into_iter().collect()) });
        }
        Query { range: TimeRange { from, until }, selection, ..query.clone() }
    }

    fn answer(&self) -> TaxStage {
        let executors: BTreeSet<_> =
            self.ran.iter().filter_map(|ran| ran.get(1)).map(|executor| natural(executor)).collect();
        TaxStage {
            tasks: self.tasks as u64,
            first_seen: Some(self.seen.from.into()),
            last_seen: Some(self.seen.until.into()),
            executors: executors.into_iter().map(|(_, _, name)| name).collect(),
            source: self.source.slug().into(),
            cpu_seconds: Some(seconds(self.cpu_ns)),
            sampling_error: sampling_error(self.figures.samples).filter(|_| self.source != Source::Ledger),
        }
    }
}
