//! `/api/v1/runs`: the runs of jobs, what each used, and where that changed.
//!
//! In: sums of samples by label set, exact sums by application and stage, and sums of waits. Out: a row for each
//! application, job by job: those of one user that are runs of one job by the label `app_run`, else by name; with what its
//! executors reserved, as Spark said. Without times all that is kept is looked at. Limits: the store's of label sets; `limit` rows, the last ones; [`MAX_TOLD`].

mod change;
mod reserved;
mod scraped;

pub use reserved::{Prices, settings};
pub use scraped::{JOB_METRICS, metrics};

use super::ServeState;
use super::answer::{table, text};
use super::apps::{Sum, sums};
use super::error::{ApiError, shown};
use super::figures::Figures;
use super::params::Params;
use super::request::{Asked, of_time};
use super::run::{Rendered, Size};
use super::waits::Waits;
use super::work::UNKNOWN;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Run, RunChange, Runs};
use emberscope_model::{
    LabelKey, MatchOp, Matcher, Query, SampleKind, Summary, ThreadClass, TimeRange, WallTime,
};
use emberscope_store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Most jobs that an error names.
const MAX_NAMED: usize = 20;
/// Runs of which it is told what they reserved, the last ones: each asks the store for all that Spark said of it.
const MAX_TOLD: usize = 200;
/// An application that was seen in the newest window runs, if that window is not older.
const RECENT: Duration = Duration::from_secs(60);
/// What is asked.
struct Question {
    asked: Asked,
    job: Option<String>,
    limit: usize,
    prices: Prices,
}

/// What an application used beside what samples tell of it.
#[derive(Default)]
struct Used {
    all: Figures,
    tasks: Figures,
    stages: BTreeSet<Arc<str>>,
    waits: Waits,
}

/// Answers `/api/v1/runs`.
pub async fn runs(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let params = Params::of_route(raw.as_deref(), &route::RUNS);
    let prices = state.prices;
    let read = move |params: &Params| read(params, prices);
    state.ask(params, Size::Sums, read, |store, _, question| answer(store, question)).await
}

fn read(params: &Params, prices: Prices) -> Result<Question, ApiError> {
    let asked = Asked::read(params, WallTime::now())?;
    of_time(asked.kind)?;
    let job = params.one(param::JOB)?.map(str::to_owned);
    Ok(Question { asked, job, limit: params.number_of(&route::RUNS, param::LIMIT)?, prices })
}

fn answer(store: &dyn Store, question: &Question) -> Result<Rendered, ApiError> {
    let (summary, runs) = found(store, question)?;
    Ok(table(&summary, store, runs))
}

/// The runs, and what they rest on.
fn found(store: &dyn Store, question: &Question) -> Result<(Summary, Runs), ApiError> {
    let mut query = question.asked.query_of_all(store)?;
    let none = MatchOp::NotIn(vec![String::new(), UNKNOWN.to_owned()]);
    query.selection.matchers.push(Matcher { key: LabelKey::App, op: none });
    let mut apps = sums(store, &query, |total| text(total.labels.get(LabelKey::App)))?;
    let mut jobs: BTreeSet<String> = BTreeSet::new();
    if let Some(wanted) = &question.job {
        jobs = apps.values().filter_map(job).collect();
        let named = |sum: &Sum| sum.value(LabelKey::AppName).as_ref() == Some(wanted);
        apps.retain(|_, sum| job(sum).as_ref() == Some(wanted) || named(sum));
        // By its id: a node that saw no driver knows no more of an application.
        let op = MatchOp::In(apps.keys().cloned().collect());
        query.selection.matchers.push(Matcher { key: LabelKey::App, op });
    }
    let summary = store.summary(&query)?;
    if let Some(job) = question.job.as_deref().filter(|_| apps.is_empty() && summary.windows > 0) {
        return Err(unknown_job(jobs, job));
    }
    let mut used = used(store, &query)?;
    let mut seen: BTreeMap<&str, TimeRange> = BTreeMap::new();
    let mut rows: Vec<(TimeRange, Run)> = (apps.iter())
        .map(|(id, sum)| {
            let used = used.remove(id).unwrap_or_default();
            let times = *seen.entry(id).or_insert(used.all.seen().unwrap_or(sum.seen));
            (sum.seen, row(store, id, sum, (&used, times)))
        })
        .collect();
    rows.sort_by(|(a, one), (b, other)| {
        let key = |run: &Run| (run.job.clone(), run.user.clone());
        key(one).cmp(&key(other)).then_with(|| (a.from, &one.app).cmp(&(b.from, &other.app)))
    });
    let mut rows: Vec<Run> = number(rows);
    for job in rows.chunk_by_mut(|a, b| a.job.is_some() && same_job(a, b)) {
        mark(job);
    }
    let count = rows.len();
    let cut = count.saturating_sub(question.limit);
    if cut > 0 {
        rows = last(rows, question.limit);
    }
    let mut last: Vec<&mut Run> = rows.iter_mut().collect();
    last.sort_by(|a, b| b.begun.0.cmp(&a.begun.0));
    for run in last.into_iter().take(MAX_TOLD) {
        let Some(times) = seen.get(run.app.as_str()) else { continue };
        let facts = store.spark_facts(&run.app, *times)?.facts;
        run.settings = settings(&facts);
        let of = (run.deploy.as_deref(), &run.settings);
        run.reserved = reserved::reserved(&facts, of, times.until, question.prices);
    }
    Ok((summary, Runs { count: count as u64, cut: cut as u64, runs: rows }))
}

fn same_job(a: &Run, b: &Run) -> bool {
    a.job == b.job && a.user == b.user
}

/// Numbers the runs of a job from the last one on, whoever's they are: as `run` counts.
fn number(rows: Vec<(TimeRange, Run)>) -> Vec<Run> {
    let mut order: Vec<(WallTime, String, usize)> =
        rows.iter().enumerate().map(|(at, (seen, run))| (seen.from, run.app.clone(), at)).collect();
    order.sort_by(|a, b| b.cmp(a));
    let mut rows: Vec<Run> = rows.into_iter().map(|(_, run)| run).collect();
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    for (.., at) in order {
        let Some(run) = rows.get_mut(at) else { continue };
        if let Some(job) = run.job.clone() {
            let back = counted.entry(job).or_default();
            *back -= 1;
            run.run = Some(*back);
        }
    }
    rows
}

/// Marks the runs of one job from which on CPU time was another. A run that goes on is not judged.
fn mark(job: &mut [Run]) {
    let whole: Vec<usize> =
        (job.iter().enumerate()).filter(|(_, run)| !run.running).map(|(at, _)| at).collect();
    let cpu: Vec<f64> = whole.iter().filter_map(|at| job.get(*at)).map(cpu_seconds).collect();
    for change in change::changes(&cpu) {
        if let Some(run) = whole.get(change.at).and_then(|at| job.get_mut(*at)) {
            let change::Change { before, after, chance, .. } = change;
            run.changed = Some(RunChange { before_seconds: before, after_seconds: after, chance });
        }
    }
}

/// CPU time of a run: the ledger's, else the samples'.
fn cpu_seconds(run: &Run) -> f64 {
    let sampled = || run.cpu.sampled.amount(SampleKind::Cpu).unwrap_or_default();
    run.cpu.exact.map_or_else(sampled, |exact| exact.cpu_seconds)
}

/// The last `limit` of all runs, in the order in which they are.
fn last(rows: Vec<Run>, limit: usize) -> Vec<Run> {
    let mut begun: Vec<&str> = rows.iter().map(|run| run.begun.0.as_str()).collect();
    begun.sort_unstable();
    let first = begun.get(begun.len().saturating_sub(limit)).map(|text| (*text).to_owned());
    let kept = rows.into_iter().filter(|run| first.as_ref().is_none_or(|first| run.begun.0 >= *first));
    kept.take(limit).collect()
}

/// What applications used, by their id.
fn used(store: &dyn Store, query: &Query) -> Result<BTreeMap<String, Used>, ApiError> {
    let mut out: BTreeMap<String, Used> = BTreeMap::new();
    for line in store.ledger(query.range, &query.selection, &[LabelKey::App, LabelKey::Stage])? {
        let (Some(app), Some(stage)) = (line.label(LabelKey::App), line.label(LabelKey::Stage)) else {
            continue;
        };
        let used = out.entry((**app).to_owned()).or_default();
        used.all.add_exact(&line);
        if !stage.is_empty() {
            used.tasks.add_exact(&line);
            used.stages.insert(stage.clone());
        }
    }
    for total in store.totals(query)? {
        let used = out.entry(total.labels.get(LabelKey::App).to_owned()).or_default();
        used.all.add_samples(&total);
        let stage = total.labels.get(LabelKey::Stage);
        if !stage.is_empty() {
            used.tasks.add_samples(&total);
            used.stages.insert(stage.into());
        }
    }
    for total in store.totals(&Query { kind: SampleKind::OffCpu, ..query.clone() })? {
        let label = |key| total.labels.get(key);
        if label(LabelKey::ThreadClass) == ThreadClass::Task.slug() && !label(LabelKey::Stage).is_empty() {
            let used = out.entry(label(LabelKey::App).to_owned()).or_default();
            used.waits.add(label(LabelKey::Wait), total.weight);
        }
    }
    Ok(out)
}

fn row(store: &dyn Store, id: &str, sum: &Sum, (used, seen): (&Used, TimeRange)) -> Run {
    let newest = store.span().map(|span| span.until);
    let running =
        newest.is_some_and(|newest| sum.seen.until >= newest && newest.plus(RECENT) >= WallTime::now());
    Run {
        app: id.to_owned(),
        job: job(sum),
        app_name: sum.value(LabelKey::AppName),
        user: sum.value(LabelKey::User),
        deploy: sum.value(LabelKey::Deploy),
        run: None,
        begun: seen.from.into(),
        ended: (!running).then(|| seen.until.into()),
        running,
        wall_seconds: seen.until.as_secs_f64() - seen.from.as_secs_f64(),
        cpu: used.all.answer(SampleKind::Cpu),
        tasks: used.tasks.answer(SampleKind::Cpu),
        waited: used.waits.answer(used.tasks.exact.as_ref()),
        stages: used.stages.iter().filter(|stage| &***stage != UNKNOWN).count() as u64,
        changed: None,
        reserved: None,
        settings: BTreeMap::new(),
    }
}

/// What an application is a run of. Samples of versions before the label have a name alone.
fn job(sum: &Sum) -> Option<String> {
    sum.value(LabelKey::AppRun).or_else(|| sum.value(LabelKey::AppName))
}

fn unknown_job(jobs: BTreeSet<String>, job: &str) -> ApiError {
    let names: Vec<String> = jobs.into_iter().take(MAX_NAMED).collect();
    let there = match names.len() {
        0 => "no application has a name.".to_owned(),
        _ => format!("there are: {}.", names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ")),
    };
    let message = format!("There is no run of a job `{}`; {there}", shown(job));
    ApiError::new(StatusCode::NOT_FOUND, "unknown_job", message).of_parameter(param::JOB).with_choices(names)
}
