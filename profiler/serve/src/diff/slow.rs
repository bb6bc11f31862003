//! Slow tasks of a stage, and the usual ones to compare them with.
//!
//! In: one app and one stage. Out: the tenth of its tasks that used most CPU (at least one), those from
//! the 40th to the 60th percentile, and the conditions that select each group's samples. CPU is that of
//! the own thread and the helpers, by the ledger, else by samples. Limits: [`LEAST`] tasks; [`MOST`] in a
//! group (the slowest, and those in the middle), of which [`LISTED`] are listed.

use super::super::error::ApiError;
use super::super::figures::seconds;
use super::super::params::Params;
use super::super::stages::labels;
use super::super::work::{self, Task};
use axum::http::StatusCode;
use emberscope_model::{LabelKey, MatchOp, Matcher, Query};
use emberscope_store::Store;
use serde_json::{Value, json};

/// Fewer tasks have no usual ones and slow ones.
const LEAST: usize = 4;
/// Tasks of a group: each label set of a query is held against every one of them.
const MOST: usize = 1000;
/// Tasks listed of a group.
const LISTED: usize = 100;

/// Some tasks.
pub struct Group {
    /// What they are.
    pub name: &'static str,
    /// How many.
    pub count: usize,
    /// Their CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// The first of them, for JSON.
    pub listed: Value,
    tids: Vec<String>,
}

impl Group {
    fn new(name: &'static str, tasks: &[Task]) -> Self {
        use LabelKey::{Executor, StageAttempt, Task as Tid, TaskAttempt, TaskIndex};
        let row = |task: &Task| {
            let mut row = labels(task, &[Tid, TaskIndex, TaskAttempt, StageAttempt, Executor]);
            row.insert("cpu_seconds".into(), seconds(task.cpu_ns()).into());
            Value::Object(row)
        };
        Self {
            name,
            count: tasks.len(),
            cpu_ns: tasks.iter().map(Task::cpu_ns).fold(0, u64::saturating_add),
            listed: tasks.iter().take(LISTED).map(row).collect(),
            tids: tasks.iter().map(|task| task.label(Tid).to_owned()).collect(),
        }
    }
    /// The query for its samples.
    pub fn query(&self, of: &Query) -> Query {
        let mut query = of.clone();
        let op = MatchOp::In(self.tids.clone());
        query.selection.matchers.push(Matcher { key: LabelKey::Task, op });
        query
    }
}

/// The two groups, and what they were taken from.
pub struct Slow {
    /// Around the median.
    pub median: Group,
    /// Above the 90th percentile.
    pub slow: Group,
    /// Tasks, source and percentiles, for JSON.
    pub json: Value,
}

/// What is wrong with the parameters, before any work.
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

/// Divides the query's tasks.
pub fn groups(store: &dyn Store, query: &Query) -> Result<Slow, ApiError> {
    let mut tasks = work::tasks(store, query)?;
    if tasks.is_empty() {
        return Err(work::unknown_stage(store, query));
    }
    // Samples are selected by the task's id.
    tasks.retain(|task| !task.label(LabelKey::Task).is_empty());
    tasks.sort_by_key(Task::cpu_ns);
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
    let at = |place: usize| tasks.get(place).map(|task| seconds(task.cpu_ns()));
    Ok(Slow {
        json: json!({
            "tasks": n,
            "source": source,
            "p40_cpu_seconds": at(p40),
            "p60_cpu_seconds": at(p60 - 1),
            "p90_cpu_seconds": at(p90 - 1),
        }),
        median: Group::new("median", usual),
        slow: Group::new("slow", top),
    })
}
