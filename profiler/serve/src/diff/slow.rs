//! Slow tasks of a stage, and the usual ones to compare them with.
//!
//! In: one app and one stage. Out: the tenth of its tasks that used most CPU (at least one), those from
//! the 40th to the 60th percentile, the conditions that select each group's samples, and what the slow ones' longer
//! time went to. CPU is that of the own thread and the helpers, by the ledger, else by samples; for `type=wall` and
//! `off-cpu` it is the own thread's wall time, by the ledger, that makes a task slow. Limits: [`LEAST`] tasks;
//! [`MOST`] in a group (the slowest, and those in the middle), of which [`LISTED`] are listed.

use super::super::answer::text;
use super::super::error::ApiError;
use super::super::figures::seconds;
use super::super::params::Params;
use super::super::work::{self, Task};
use axum::http::StatusCode;
use emberscope_api as api;
use emberscope_model::{LabelKey, MatchOp, Matcher, Query, SampleKind};
use emberscope_store::Store;
use std::collections::BTreeMap;

/// Fewer tasks have no usual ones and slow ones.
const LEAST: usize = 4;
/// Tasks of a group: each label set of a query is held against every one of them.
const MOST: usize = 1000;
/// Tasks listed of a group.
const LISTED: usize = 100;

/// Tasks that are compared as one.
pub struct Group {
    /// What the tasks are: `median` or `slow`.
    pub name: &'static str,
    /// How many tasks there are.
    pub count: usize,
    /// CPU time of all tasks, nanoseconds.
    pub cpu_ns: u64,
    /// What the wall time of the tasks' own threads went to.
    times: Times,
    /// The first of them.
    pub listed: Vec<api::SideTask>,
    tids: Vec<String>,
}

impl Group {
    fn new(name: &'static str, tasks: &[Task]) -> Self {
        let row = |task: &Task| {
            let label = |key| text(task.label(key));
            api::SideTask {
                task: label(LabelKey::Task),
                task_index: label(LabelKey::TaskIndex),
                task_attempt: label(LabelKey::TaskAttempt),
                stage_attempt: label(LabelKey::StageAttempt),
                executor: label(LabelKey::Executor),
                cpu_seconds: seconds(task.cpu_ns()),
            }
        };
        Self {
            name,
            count: tasks.len(),
            cpu_ns: tasks.iter().map(Task::cpu_ns).fold(0, u64::saturating_add),
            times: Times::of(tasks),
            listed: tasks.iter().take(LISTED).map(row).collect(),
            tids: tasks.iter().map(|task| task.label(LabelKey::Task).to_owned()).collect(),
        }
    }
    /// The query for the samples of these tasks.
    pub fn query(&self, of: &Query) -> Query {
        let mut query = of.clone();
        let op = MatchOp::In(self.tids.clone());
        query.selection.matchers.push(Matcher { key: LabelKey::Task, op });
        query
    }
}

/// The two groups, and what they were taken from.
pub struct Slow {
    /// Tasks around the median.
    pub median: Group,
    /// Tasks above the 90th percentile.
    pub slow: Group,
    /// Tasks, source and percentiles.
    pub answer: api::Slow,
}

/// Looks at the parameters before any work.
///
/// # Errors
/// 400: `app` or `stage` is missing, or given twice; or a parameter is for one side, where `slow=1` makes both.
pub fn check(params: &Params) -> Result<(), ApiError> {
    if let Some(name) = params.sided() {
        let message = format!("`slow=1` makes the two sides itself: ask without `{name}`.");
        return Err(ApiError::bad(name, message));
    }
    for key in [LabelKey::App, LabelKey::Stage] {
        if params.one(key.name())?.is_none_or(str::is_empty) {
            let message = format!("`slow=1` compares the tasks of one stage: say which, with `{key}=`.");
            return Err(ApiError::bad(key.name(), message));
        }
    }
    Ok(())
}

/// Divides the query's tasks into usual and slow ones.
///
/// # Errors
/// 404 `unknown_stage`: no task was seen. 422 `too_few_tasks`: fewer than [`LEAST`] were. What the store fails with.
pub fn groups(store: &dyn Store, query: &Query) -> Result<Slow, ApiError> {
    let mut tasks = work::tasks(store, query)?;
    if tasks.is_empty() {
        return Err(work::unknown_stage(store, query));
    }
    // Samples are selected by the task's id.
    tasks.retain(|task| !task.label(LabelKey::Task).is_empty());
    let by_wall = query.kind.holds(SampleKind::OffCpu);
    let rank = |task: &Task| match task.own.exact {
        Some(sums) if by_wall => sums.wall_ns,
        _ => task.cpu_ns(),
    };
    tasks.sort_by_key(rank);
    let n = tasks.len();
    // n from 4 on: at least one task in each, none in both.
    let (p40, p60, p90) = (n * 4 / 10, (n * 6).div_ceil(10), n * 9 / 10);
    let beyond = (p60 - p40).saturating_sub(MOST);
    let middle = p40 + beyond / 2..p60 - beyond.div_ceil(2);
    let top = p90.max(n.saturating_sub(MOST))..n;
    let (Some(usual), Some(top), true) = (tasks.get(middle), tasks.get(top), n >= LEAST) else {
        let message = format!(
            "{n} tasks of the stage were seen: with fewer than {LEAST} there are no usual and no slow ones."
        );
        let error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_few_tasks", message);
        return Err(error.of_parameter(LabelKey::Stage.name()));
    };
    let exact = tasks.iter().filter(|task| task.is_exact()).count();
    let source = match exact {
        0 => "samples",
        _ if exact == n => "ledger",
        _ => "mixed",
    };
    let at = |place: usize| tasks.get(place).map(|task| seconds(rank(task)));
    let by = if by_wall { "wall" } else { "cpu" };
    let percentiles = [(40, p40), (60, p60 - 1), (90, p90 - 1)];
    let percentiles = percentiles.map(|(p, place)| (format!("p{p}_{by}_seconds"), at(place).into()));
    let (median, slow) = (Group::new("median", usual), Group::new("slow", top));
    Ok(Slow {
        answer: api::Slow {
            because: because(&median, &slow),
            tasks: n as u64,
            source: source.into(),
            by: by.into(),
            percentiles: percentiles.into_iter().collect(),
        },
        median,
        slow,
    })
}

/// What threads' wall time went to, nanoseconds: names as in `by` of `waited`, with `cpu`, `run_delay`, of which
/// `throttled` is none, and `blocked` for blocked time of which no wait was seen.
#[derive(Default)]
struct Times(BTreeMap<&'static str, u64>);

impl Times {
    /// The times of tasks' own threads, where the ledger knows these.
    fn of(tasks: &[Task]) -> Self {
        let mut all = Self::default();
        for (task, sums) in tasks.iter().filter_map(|task| Some((task, task.own.exact?))) {
            let mut blocked = sums.blocked_ns();
            all.add("cpu", sums.accounts.cpu_ns);
            let (queued, throttled) = sums.queued_and_throttled_ns();
            all.add("run_delay", queued);
            all.add("throttled", throttled);
            for (reason, ns) in task.waits.by_reason() {
                all.add(reason.slug(), ns);
                blocked = blocked.saturating_sub(ns);
            }
            all.add("blocked", blocked);
        }
        all
    }
    fn add(&mut self, what: &'static str, ns: u64) {
        let sum = self.0.entry(what).or_default();
        *sum = sum.saturating_add(ns);
    }
}

/// What a slow task's wall time has more of than a usual one's, the most first: seconds a task, and the part of all that it
/// has more.
fn because(median: &Group, slow: &Group) -> Vec<api::Because> {
    let each = |group: &Group, what| {
        group.times.0.get(what).copied().unwrap_or_default() as f64 / 1e9 / group.count.max(1) as f64
    };
    let more = slow.times.0.keys().map(|what| (*what, each(slow, what) - each(median, what)));
    let mut more: Vec<(&str, f64)> = more.filter(|(_, seconds)| *seconds > 0.0).collect();
    more.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = more.iter().map(|(_, seconds)| seconds).sum();
    more.iter()
        .map(|(what, seconds)| api::Because { of: (*what).into(), seconds: *seconds, share: seconds / all })
        .collect()
}
