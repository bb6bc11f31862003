//! `/api/v1/stages` and `/api/v1/tasks`: what tasks used, exactly and by samples.
//!
//! In: the tasks of a selection ([`super::work`]), with samples of the kind that is asked for. Out: a row for each stage attempt,
//! or for each task, with what Spark itself says of it ([`super::spark`]) where it can be asked.
//! Limits: `limit` rows of tasks; the answer says how many there are.

use super::ServeState;
use super::answer::{head, headers, json, text, whole};
use super::figures::{Figures, seconds};
use super::spark::{self, KeptWords, Words};
use super::waits::Waits;
use super::work::{self, Class, Task, class_at};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{self as api, ClassFigures, Durations, StageOrder, Stages, TaskOrder, Tasks, Word as _};
use emberscope_model::{LabelKey, LedgerSums, SampleKind};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    /// Of each task, nanoseconds.
    walls: Vec<u64>,
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
        self.walls.extend(task.own.exact.map(|sums| sums.wall_ns));
        let executor = task.label(LabelKey::Executor);
        self.executors.extend((!executor.is_empty()).then_some(executor));
        for (class, figures) in &task.classes {
            self.classes.entry(*class).or_default().add(figures);
        }
    }

    /// The number that it is sorted by; samples are of a kind.
    fn rank(&self, sort: StageOrder, kind: SampleKind) -> u64 {
        let sum = |of: &dyn Fn(&Figures) -> u64| {
            [&self.own, &self.helpers, &self.python].map(of).into_iter().fold(0, u64::saturating_add)
        };
        match sort {
            StageOrder::Stage => 0,
            StageOrder::Cpu => sum(&|figures| cpu_ns(figures, kind)),
            StageOrder::Amount => sum(&|figures| figures.weight),
            StageOrder::RunDelay => exact(&self.own, |sums| sums.accounts.run_delay_ns),
            StageOrder::Blocked => exact(&self.own, LedgerSums::blocked_ns),
            StageOrder::Wall => exact(&self.own, |sums| sums.wall_ns),
        }
    }

    fn row(&self, [app, stage, attempt]: [&str; 3], kind: SampleKind) -> api::Stage {
        let mut all = self.own;
        all.add(&self.helpers);
        all.add(&self.python);
        let classes = self.classes.iter().map(|(class, figures)| ClassFigures {
            thread_class: class_at(*class).map(Into::into),
            figures: figures.answer(kind),
        });
        api::Stage {
            app: text(app),
            app_name: text(self.app_name),
            stage: text(stage),
            stage_attempt: text(attempt),
            tasks: self.tasks,
            begun: self.own.exact.map(|sums| sums.begun),
            executors: self.executors.len() as u64,
            first_seen: all.seen().map(|seen| seen.from.into()),
            last_seen: all.seen().map(|seen| seen.until.into()),
            own: self.own.answer(kind),
            helpers: self.helpers.answer(kind),
            python: self.python.answer(kind),
            waited: self.waits.answer(self.own.exact.as_ref()),
            durations: durations(&self.walls),
            classes: classes.collect(),
            spark: None,
        }
    }
}

/// How long tasks took: the one in the middle, and the longest.
fn durations(walls: &[u64]) -> Option<Durations> {
    let mut walls = walls.to_vec();
    walls.sort_unstable();
    let median = walls.get(walls.len().checked_sub(1)? / 2)?;
    Some(Durations { median_seconds: seconds(*median), max_seconds: seconds(*walls.last()?) })
}

/// `/api/v1/stages`
pub async fn stages(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let source = state.spark.clone();
    state
        .select(raw, &route::STAGES, move |store, params, query| {
            let joined = spark::wanted(params)?;
            let source = source.filter(|_| joined);
            let kind = query.kind;
            let usual = if kind == SampleKind::Cpu { StageOrder::Stage } else { StageOrder::Amount };
            let sort = params.word(param::SORT, usual)?;
            let limit = params.number_of(&route::STAGES, param::LIMIT)?;
            let summary = store.summary(query)?;
            let tasks = work::sampled_tasks(store, query)?;
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
            // Stable: equal ones stay in the order of their numbers.
            stages.sort_by_key(|(_, stage)| Reverse(stage.rank(sort, kind)));
            let count = stages.len();
            stages.truncate(limit);
            let rows = stages.iter().map(|(key, stage)| stage.row(*key, kind));
            let cut = (count - stages.len()) as u64;
            let content = Stages { count: count as u64, cut, stages: rows.collect(), spark: None };
            let mut out = whole(head(&summary, store), content);
            let seen = tasks.iter().filter_map(|task| Some((task.label(LabelKey::App), task.all().seen()?)));
            let kept = KeptWords::of(store, summary.range).seen(seen);
            let words = Words { source: source.as_deref(), kept: joined.then_some(&kept) };
            spark::join_stages(&mut out, words, spark::WAIT);
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

/// CPU time of a row with samples of a kind, nanoseconds: the ledger's, else the samples' if they are of CPU time.
fn cpu_ns(figures: &Figures, kind: SampleKind) -> u64 {
    let sampled = if kind == SampleKind::Cpu { figures.weight } else { 0 };
    figures.exact.map_or(sampled, |sums| sums.accounts.cpu_ns)
}

/// The number that a task with samples of a kind is sorted by.
fn rank(task: &Task, sort: TaskOrder, kind: SampleKind) -> u64 {
    match sort {
        TaskOrder::Cpu => cpu_ns(&task.all(), kind),
        TaskOrder::Amount => task.all().weight,
        TaskOrder::RunDelay => exact(&task.own, |sums| sums.accounts.run_delay_ns),
        TaskOrder::Blocked => exact(&task.own, LedgerSums::blocked_ns),
        TaskOrder::Wall => exact(&task.own, |sums| sums.wall_ns),
        TaskOrder::Task => 0,
    }
}

/// What the ledger has of a row's own threads.
fn exact(own: &Figures, field: fn(&LedgerSums) -> u64) -> u64 {
    own.exact.as_ref().map_or(0, field)
}

/// Answers `/api/v1/tasks`.
pub async fn tasks(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let source = state.spark.clone();
    state
        .select(raw, &route::TASKS, move |store, params, query| {
            let joined = spark::wanted(params)?;
            let source = source.filter(|_| joined);
            let kind = query.kind;
            let usual = if kind == SampleKind::Cpu { TaskOrder::Cpu } else { TaskOrder::Amount };
            let sort = params.word(param::SORT, usual)?;
            let limit = params.number_of(&route::TASKS, param::LIMIT)?;
            let summary = store.summary(query)?;
            let mut tasks = work::sampled_tasks(store, query)?;
            // Stable: equal ones stay in the order of their numbers.
            tasks.sort_by_key(|task| Reverse(rank(task, sort, kind)));
            let count = tasks.len();
            tasks.truncate(limit);
            let content = Tasks {
                count: count as u64,
                cut: (count - tasks.len()) as u64,
                sort: sort.word().into(),
                tasks: tasks.iter().map(|task| row(task, kind)).collect(),
                spark: None,
            };
            let mut out = whole(head(&summary, store), content);
            let kept = KeptWords::of(store, summary.range);
            let words = Words { source: source.as_deref(), kept: joined.then_some(&kept) };
            spark::join_tasks(&mut out, words, spark::WAIT);
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

fn row(task: &Task, kind: SampleKind) -> api::Task {
    let label = |key| text(task.label(key));
    api::Task {
        app: label(LabelKey::App),
        stage: label(LabelKey::Stage),
        stage_attempt: label(LabelKey::StageAttempt),
        task_index: label(LabelKey::TaskIndex),
        task_attempt: label(LabelKey::TaskAttempt),
        task: label(LabelKey::Task),
        executor: label(LabelKey::Executor),
        node: label(LabelKey::Node),
        first_seen: task.seen().map(|seen| seen.from.into()),
        last_seen: task.seen().map(|seen| seen.until.into()),
        own: task.own.answer(kind),
        helpers: task.helpers.answer(kind),
        python: task.python.answer(kind),
        waited: task.waits.answer(task.own.exact.as_ref()),
        spark: None,
    }
}
