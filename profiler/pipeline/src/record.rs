//! One answer of what is sampled now: for the command line, without a store on disk and without a server.

use super::{Lifecycle, PipelineError, join};
use emberscope_config::RecordConfig;
use emberscope_model::{Answer, Query, Selection, TimeRange, WallTime, grouped, implied};
use emberscope_store::{AnswerLimits, ByJob, ByOperator, MemoryStore, MemoryStoreConfig, Store};
use std::sync::Arc;

/// Samples for a while, at most until the end is asked for, and answers with all that was selected.
///
/// # Errors
/// Before anything is sampled: [`PipelineError::Keep`], [`PipelineError::Metrics`], [`PipelineError::Runtime`],
/// [`PipelineError::Capture`] (also where the kind cannot be sampled here). Later [`PipelineError::Capture`] or
/// [`PipelineError::Panicked`]; [`PipelineError::Select`]: what was chosen was not sampled; [`PipelineError::Store`]:
/// the answer is too large. What was sampled is lost in each case.
pub fn record(config: RecordConfig, life: Lifecycle) -> Result<Answer, PipelineError> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryStoreConfig {
        window_length: config.daemon.window.get().get(),
        answers: AnswerLimits::default(),
    }));
    let mut worker = join(&config.daemon, Arc::clone(&store), None)?.worker;
    worker.capture.must_have(config.kind)?;
    let from = worker.warm_up(|| life.is_stopping())?;
    let until = std::time::Instant::now().checked_add(config.duration);
    let over = || until.is_some_and(|until| std::time::Instant::now() >= until);
    worker.run(|| life.is_stopping() || over())?;
    let range = store.span().unwrap_or(TimeRange { from, until: WallTime::now() });
    // What was sampled before is not kept, if nothing came after it either.
    let range = TimeRange { from: from.max(range.from), until: from.max(range.until) };
    let query = |selection| Query {
        range,
        selection,
        kind: config.kind,
        group: config.group.clone(),
        detail: config.detail,
    };
    let seen = store.totals(&query(Selection::all()))?;
    let mut selection = config.selection(seen.iter().map(|total| &*total.labels))?;
    selection.matchers.extend(implied(config.kind, &selection.matchers));
    let group = grouped(config.kind, &selection.matchers, config.group.clone());
    Ok(ByJob::new(&ByOperator::new(store.as_ref()), None).merge(&Query { group, ..query(selection) })?)
}
