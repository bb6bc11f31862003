//! `/api/v1/runs/metrics`: the last run of each job beside what is usual, for Prometheus and its alerts.
//!
//! In: the rows of `/api/v1/runs`. Out: Prometheus text, a series for each job and user. They name jobs and users, so they
//! are no part of `/metrics`, and want a token that reads. Runs that go on are left out, and so are applications without a
//! name. Limits: [`MAX_JOBS`], those that ran last.

use super::super::ServeState;
use super::super::answer;
use super::super::params::Params;
use super::super::run::Size;
use super::super::time::parse_time;
use super::{Question, cpu_seconds, found, read, same_job};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::{Instant, Run, route};
use emberscope_model::WallTime;
use emberscope_store::Store;
use prometheus::{GaugeVec, Opts, Registry, TextEncoder};
use std::cmp::Reverse;
use std::sync::Arc;

/// Most jobs that are told.
const MAX_JOBS: usize = 500;
/// What is usual is the median of so many runs before the last one, at most.
const BEFORE: usize = 10;

/// A metric: its name, what it says, and its label beside the job and the user.
pub struct JobMetric {
    /// As Prometheus has it.
    pub name: &'static str,
    /// A sentence.
    pub help: &'static str,
    /// A third label.
    pub by: Option<&'static str>,
}

const fn metric(name: &'static str, help: &'static str) -> JobMetric {
    JobMetric { name, help, by: None }
}

static RUNS: JobMetric = metric("emberscope_job_runs", "Ended runs of a job that are kept.");
static ENDED: JobMetric =
    metric("emberscope_job_last_run_end_timestamp_seconds", "When the last ended run was last seen.");
static CPU: JobMetric =
    metric("emberscope_job_last_run_cpu_seconds", "CPU time of all threads of the last ended run.");
static WALL: JobMetric =
    metric("emberscope_job_last_run_wall_seconds", "From the last ended run's first window to its last.");
static WAITED: JobMetric = JobMetric {
    name: "emberscope_job_last_run_waiting_seconds",
    help: "What tasks of the last ended run waited for, by reason.",
    by: Some("wait"),
};
static COST: JobMetric =
    metric("emberscope_job_last_run_cost", "What the last ended run's executors cost, where prices are set.");
static USUAL_CPU: JobMetric = metric(
    "emberscope_job_usual_cpu_seconds",
    "Median of the CPU time of up to ten runs before the last one.",
);
static USUAL_WALL: JobMetric = metric(
    "emberscope_job_usual_wall_seconds",
    "Median of the wall time of up to ten runs before the last one.",
);
static CHANGED: JobMetric = metric(
    "emberscope_job_change_ratio",
    "CPU time of runs since the last lasting change over that before it.",
);
static CHANGED_AT: JobMetric =
    metric("emberscope_job_change_timestamp_seconds", "When the first run since that change began.");

/// All of them.
pub static JOB_METRICS: [&JobMetric; 10] =
    [&RUNS, &ENDED, &CPU, &WALL, &WAITED, &COST, &USUAL_CPU, &USUAL_WALL, &CHANGED, &CHANGED_AT];

/// Answers `/api/v1/runs/metrics`.
pub async fn metrics(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let params = Params::of_route(raw.as_deref(), &route::JOB_METRICS);
    let prices = state.prices;
    let read = move |params: &Params| Ok(Question { limit: usize::MAX, ..read(params, prices)? });
    let work = |store: &dyn Store, _: &Params, question: &Question| {
        let (_, runs) = found(store, question)?;
        answer::metrics(text(&runs.runs))
    };
    state.ask(params, Size::Sums, read, work).await
}

/// The text, of rows that stand job by job.
fn text(runs: &[Run]) -> prometheus::Result<String> {
    let registry = Registry::new();
    let mut families = Vec::new();
    for metric in JOB_METRICS {
        let mut labels = vec!["app_run", "user"];
        labels.extend(metric.by);
        let family = GaugeVec::new(Opts::new(metric.name, metric.help), &labels)?;
        registry.register(Box::new(family.clone()))?;
        families.push((metric.name, family));
    }
    let mut jobs: Vec<Vec<&Run>> = runs
        .chunk_by(same_job)
        .filter(|job| job.first().is_some_and(|run| run.job.is_some()))
        .map(|job| job.iter().filter(|run| !run.running).collect())
        .collect();
    jobs.sort_by_key(|job| Reverse(job.last().and_then(|last| last.ended.as_ref().map(|at| at.0.clone()))));
    for job in jobs.iter().take(MAX_JOBS) {
        for (metric, by, value) in values(job) {
            let Some(last) = job.last() else { continue };
            let mut labels =
                vec![last.job.as_deref().unwrap_or_default(), last.user.as_deref().unwrap_or_default()];
            labels.extend(by);
            for (_, family) in families.iter().filter(|(name, _)| *name == metric.name) {
                family.with_label_values(&labels).set(value);
            }
        }
    }
    TextEncoder::new().encode_to_string(&registry.gather())
}

/// What is told of a job's ended runs, the oldest first.
fn values<'a>(job: &[&'a Run]) -> Vec<(&'static JobMetric, Option<&'a str>, f64)> {
    let Some((last, before)) = job.split_last() else { return Vec::new() };
    let mut out = vec![
        (&RUNS, None, job.len() as f64),
        (&CPU, None, cpu_seconds(last)),
        (&WALL, None, last.wall_seconds),
    ];
    out.extend(last.ended.as_ref().and_then(seconds).map(|at| (&ENDED, None, at)));
    let waits = last.waited.iter().flat_map(|waited| &waited.by);
    out.extend(waits.map(|(reason, seconds)| (&WAITED, Some(&**reason), *seconds)));
    out.extend(last.reserved.and_then(|reserved| reserved.cost).map(|cost| (&COST, None, cost)));
    let before = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default();
    out.extend(median(before, cpu_seconds).map(|usual| (&USUAL_CPU, None, usual)));
    out.extend(median(before, |run| run.wall_seconds).map(|usual| (&USUAL_WALL, None, usual)));
    let changed = job.iter().rev().find_map(|run| Some((run.changed?, &run.begun)));
    if let Some((change, begun)) = changed.filter(|(change, _)| change.before_seconds > 0.0) {
        out.push((&CHANGED, None, change.after_seconds / change.before_seconds));
        out.extend(seconds(begun).map(|at| (&CHANGED_AT, None, at)));
    }
    out
}

/// The one in the middle, or the mean of the two there.
fn median(runs: &[&Run], of: impl Fn(&Run) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = runs.iter().map(|run| of(run)).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Unix time.
fn seconds(at: &Instant) -> Option<f64> {
    parse_time(&at.0, WallTime::now()).ok().map(|at| at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::JOB_METRICS;

    #[test]
    fn the_page_about_runs_names_each() {
        let page = include_str!("../../../../docs/runs.md");
        for metric in JOB_METRICS {
            assert!(
                page.contains(&format!("`{}`", metric.name)),
                "{} is missing from docs/runs.md",
                metric.name
            );
        }
    }
}
