//! `/api/v1/stages` and `/api/v1/tasks`: what tasks used, exactly and by samples.
//!
//! In: the tasks of a selection ([`super::work`]). Out: a row for each stage attempt, or for each task,
//! with what Spark itself says of it ([`super::spark`]) where it can be asked.
//! Limits: `limit` rows of tasks; the answer says how many there are.

use super::ServeState;
use super::answer::{head, headers, json};
use super::figures::{Figures, put_seen};
use super::request::of_time;
use super::spark;
use super::waits::Waits;
use super::work::{self, Class, Task, class_at};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_model::{LabelKey, LedgerSums};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of tasks unless told.
const DEFAULT_LIMIT: usize = 1000;
/// The most rows of tasks that `limit` may say.
const MAX_LIMIT: usize = 100_000;

/// Sums over a stage's tasks.
#[derive(Default)]
struct Stage<'a> {
    app_name: &'a str,
    tasks: u64,
    own: Figures,
    helpers: Figures,
    python: Figures,
    waits: Waits,
    executors: BTreeSet<&'a str>,
    classes: BTreeMap<Class, Figures>,
}

impl<'a> Stage<'a> {
    fn add(&mut self, task: &'a Task) {
        if self.app_name.is_empty() {
            self.app_name = &task.app_name;
        }
        self.tasks += 1;
        self.own.add(&task.own);
        self.helpers.add(&task.helpers);
        self.python.add(&task.python);
        self.waits.add_all(&task.waits);
        let executor = task.label(LabelKey::Executor);
        self.executors.extend((!executor.is_empty()).then_some(executor));
        for (class, figures) in &task.classes {
            self.classes.entry(*class).or_default().add(figures);
        }
    }

    fn row(&self, app: &str, stage: &str, attempt: &str) -> Value {
        let mut row = Map::new();
        for (key, value) in
            [("app", app), ("app_name", self.app_name), ("stage", stage), ("stage_attempt", attempt)]
        {
            row.insert(key.into(), text(value));
        }
        row.insert("tasks".into(), self.tasks.into());
        row.insert("begun".into(), self.own.exact.map_or(Value::Null, |sums| sums.begun.into()));
        row.insert("executors".into(), self.executors.len().into());
        let mut all = self.own;
        all.add(&self.helpers);
        all.add(&self.python);
        put_seen(&mut row, all.seen());
        row.extend(self.own.json());
        row.insert("helpers".into(), self.helpers.json().into());
        row.insert("python".into(), self.python.json().into());
        row.insert("waited".into(), self.waits.json(self.own.exact.as_ref()));
        let classes = self.classes.iter().map(|(class, figures)| {
            let mut row = Map::new();
            row.insert("thread_class".into(), class_at(*class).map_or(Value::Null, Value::from));
            row.extend(figures.json());
            Value::Object(row)
        });
        row.insert("classes".into(), classes.collect());
        Value::Object(row)
    }
}

/// What is not known is null.
fn text(value: &str) -> Value {
    if value.is_empty() { Value::Null } else { value.into() }
}

/// Answers `/api/v1/stages`.
pub async fn stages(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let source = state.spark.clone();
    state
        .select(raw, &["join"], move |store, params, query| {
            of_time(query.kind)?;
            let source = if spark::wanted(params)? { source } else { None };
            let summary = store.summary(query)?;
            let tasks = work::tasks(store, query)?;
            // Tasks come stage by stage.
            let mut stages: Vec<([&str; 3], Stage<'_>)> = Vec::new();
            for task in &tasks {
                let key = [LabelKey::App, LabelKey::Stage, LabelKey::StageAttempt].map(|k| task.label(k));
                match stages.last_mut() {
                    Some((last, stage)) if *last == key => stage.add(task),
                    _ => {
                        let mut stage = Stage::default();
                        stage.add(task);
                        stages.push((key, stage));
                    }
                }
            }
            let mut out = head(&summary, store);
            out.insert("count".into(), stages.len().into());
            let rows = stages.iter().map(|([app, id, attempt], stage)| stage.row(app, id, attempt));
            out.insert("stages".into(), rows.collect());
            spark::join_stages(&mut out, source.as_deref(), spark::WAIT);
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

/// What tasks are sorted by.
#[derive(Clone, Copy)]
enum Sort {
    Cpu,
    RunDelay,
    Blocked,
    Wall,
    Task,
}

const SORTS: [(&str, Sort); 5] = [
    ("cpu", Sort::Cpu),
    ("run_delay", Sort::RunDelay),
    ("blocked", Sort::Blocked),
    ("wall", Sort::Wall),
    ("task", Sort::Task),
];

/// The number that a task is sorted by.
fn rank(task: &Task, sort: Sort) -> u64 {
    let own = |field: fn(&LedgerSums) -> u64| task.own.exact.as_ref().map_or(0, field);
    match sort {
        Sort::Cpu => task.cpu_ns(),
        Sort::RunDelay => own(|sums| sums.accounts.run_delay_ns),
        Sort::Blocked => own(LedgerSums::blocked_ns),
        Sort::Wall => own(|sums| sums.wall_ns),
        Sort::Task => 0,
    }
}

/// Answers `/api/v1/tasks`.
pub async fn tasks(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let source = state.spark.clone();
    state
        .select(raw, &["sort", "limit", "join"], move |store, params, query| {
            of_time(query.kind)?;
            let source = if spark::wanted(params)? { source } else { None };
            let sort = params.choice("sort", &SORTS, Sort::Cpu)?;
            let limit = params.number("limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
            let summary = store.summary(query)?;
            let mut tasks = work::tasks(store, query)?;
            // Stable: equal ones stay in the order of their numbers.
            tasks.sort_by_key(|task| Reverse(rank(task, sort)));
            let count = tasks.len();
            tasks.truncate(limit);
            let mut out = head(&summary, store);
            out.insert("count".into(), count.into());
            out.insert("cut".into(), (count - tasks.len()).into());
            out.insert("sort".into(), params.one("sort")?.unwrap_or("cpu").into());
            out.insert("tasks".into(), tasks.iter().map(row).collect());
            spark::join_tasks(&mut out, source.as_deref(), spark::WAIT);
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

/// A task's labels, as a row begins.
pub fn labels(task: &Task, keys: &[LabelKey]) -> Map<String, Value> {
    keys.iter().map(|key| (key.name().to_owned(), text(task.label(*key)))).collect()
}

fn row(task: &Task) -> Value {
    use LabelKey::{App, Executor, Node, Stage, StageAttempt, Task as Tid, TaskAttempt, TaskIndex};
    let mut row = labels(task, &[App, Stage, StageAttempt, TaskIndex, TaskAttempt, Tid, Executor, Node]);
    put_seen(&mut row, task.seen());
    row.extend(task.own.json());
    row.insert("helpers".into(), task.helpers.json().into());
    row.insert("python".into(), task.python.json().into());
    row.insert("waited".into(), task.waits.json(task.own.exact.as_ref()));
    Value::Object(row)
}
