//! What tasks did: the ledger and the samples, joined by task.
//!
//! In: a query. Out: a [`Task`] for each task whose own thread, helpers or Python worker were seen in its windows, in
//! the order of app, stage, attempt and TID. A task's own thread has the class `task`; every other class of a JVM with
//! a task's labels is a helper's. What has the role `python` is the worker's. Limits: the store's of label sets.

use super::error::{ApiError, shown};
use super::figures::Figures;
use super::waits::Waits;
use axum::http::StatusCode;
use emberscope_model::{
    LabelKey, MatchOp, Matcher, Query, Role, SampleKind, Selection, ThreadClass, TimeRange,
};
use emberscope_store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What tells tasks apart, in the order of [`KEYS`].
type Key = [Arc<str>; KEYS.len()];

/// The first of [`BY`].
const KEYS: [LabelKey; 8] = match BY.first_chunk() {
    Some(keys) => *keys,
    None => panic!("it begins with the keys"),
};
/// What the ledger is asked for: the keys, and what says whose thread it was.
const BY: [LabelKey; 11] = [
    LabelKey::App,
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::TaskIndex,
    LabelKey::TaskAttempt,
    LabelKey::Task,
    LabelKey::Executor,
    LabelKey::Node,
    LabelKey::AppName,
    LabelKey::Role,
    LabelKey::ThreadClass,
];
/// The stage of tasks whose name was not seen, and the application of a driver that is not known yet: neither is one that
/// Spark could name.
pub const UNKNOWN: &str = "unknown";
/// Most stages that an error names.
const MAX_NAMED: usize = 20;

/// What one task did, by whose threads.
#[derive(Debug)]
pub struct Task {
    key: Key,
    /// The app's name; empty while it is not known.
    pub app_name: Arc<str>,
    /// What the task's own thread used.
    pub own: Figures,
    /// What the threads of the JVM used that work for the task.
    pub helpers: Figures,
    /// What the task's Python workers used.
    pub python: Figures,
    /// What the task's own thread waited for.
    pub waits: Waits,
    /// What all threads used, by class, in the order of classes.
    pub classes: BTreeMap<Class, Figures>,
}

/// Place in the list of classes; behind them what is none.
pub type Class = usize;

/// A class by its label; what is no class (a set over the limit) is `other`, no label is None.
pub fn class_of(label: &str) -> Option<ThreadClass> {
    (!label.is_empty()).then(|| ThreadClass::from_slug(label).unwrap_or(ThreadClass::Other))
}

/// The place of a class in tables.
pub fn place(class: Option<ThreadClass>) -> Class {
    class.map_or(ThreadClass::ALL.len(), |class| class as usize)
}

/// The class at a place.
pub fn class_at(place: Class) -> Option<&'static str> {
    ThreadClass::ALL.get(place).map(|class| class.slug())
}

impl Task {
    /// A label of those that tell tasks apart.
    pub fn label(&self, key: LabelKey) -> &str {
        KEYS.iter().zip(&self.key).find(|(k, _)| **k == key).map_or("", |(_, value)| value)
    }
    /// When the task was seen.
    pub fn seen(&self) -> Option<TimeRange> {
        self.all().seen()
    }
    /// What its own thread, its helpers and its Python workers used together.
    pub fn all(&self) -> Figures {
        let mut all = self.own;
        all.add(&self.helpers);
        all.add(&self.python);
        all
    }
    /// Whether the ledger knows the task.
    pub fn is_exact(&self) -> bool {
        self.all().exact.is_some()
    }
    /// CPU time of its own thread, its helpers and its Python workers, nanoseconds: the ledger's, else the samples', which are
    /// of CPU time then ([`tasks`]).
    pub fn cpu_ns(&self) -> u64 {
        let all = self.all();
        all.exact.map_or(all.weight, |sums| sums.accounts.cpu_ns)
    }
    /// A key that sorts by app, stage, attempt and TID; numbers by size.
    pub fn order(&self) -> impl Ord + use<> {
        let number = |key| natural(self.label(key));
        let app: Arc<str> = self.key.first().cloned().unwrap_or_default();
        let stage = (number(LabelKey::Stage), number(LabelKey::StageAttempt));
        (app, stage, number(LabelKey::Task), self.key.clone())
    }
    fn figures(&mut self, role: &str, class: &str) -> [&mut Figures; 2] {
        let class = class_of(class);
        let whose = match class {
            _ if role == Role::Python.slug() => &mut self.python,
            Some(ThreadClass::Task) => &mut self.own,
            _ => &mut self.helpers,
        };
        [whose, self.classes.entry(place(class)).or_default()]
    }
}

/// Sorts numbers by size, and before other text.
pub fn natural(text: &str) -> (bool, u64, String) {
    match text.parse() {
        Ok(number) => (false, number, text.to_owned()),
        Err(_) => (true, 0, text.to_owned()),
    }
}

/// All tasks of a query, whatever its kind: what was sampled of them is CPU time.
///
/// # Errors
/// What the store fails with.
pub fn tasks(store: &dyn Store, query: &Query) -> Result<Vec<Task>, ApiError> {
    let selection = of_threads(&query.selection, query.kind);
    sampled_tasks(store, &Query { kind: SampleKind::Cpu, selection, ..query.clone() })
}

/// The conditions on samples of a kind that hold for a thread's exact sums and CPU time as well: those on labels that only other
/// samples have are left out. Of CPU time all stay, so that what no sample of it can have selects nothing.
fn of_threads(selection: &Selection, kind: SampleKind) -> Selection {
    let stays = |matcher: &&Matcher| kind == SampleKind::Cpu || !matcher.key.is_of_sample();
    Selection { matchers: selection.matchers.iter().filter(stays).cloned().collect() }
}

/// All tasks of a query: what was sampled of them is of its kind. What the ledger has of them and what they waited for do not
/// hang on the kind.
///
/// # Errors
/// What the store fails with.
pub fn sampled_tasks(store: &dyn Store, query: &Query) -> Result<Vec<Task>, ApiError> {
    let mut query = query.clone();
    query.selection.matchers.push(Matcher { key: LabelKey::Stage, op: MatchOp::NotIn(vec![String::new()]) });
    let threads = of_threads(&query.selection, query.kind);
    let mut tasks: BTreeMap<Key, Task> = BTreeMap::new();
    for line in store.ledger(query.range, &threads, &BY)? {
        for figures in figures(&mut tasks, |key| line.label(key).cloned()) {
            figures.add_exact(&line);
        }
    }
    for total in store.totals(&query)? {
        let value = |key| total.labels.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone());
        for figures in figures(&mut tasks, value) {
            figures.add_samples(&total);
        }
    }
    for total in store.totals(&Query { kind: SampleKind::OffCpu, selection: threads, ..query })? {
        let value = |key| total.labels.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| v);
        let key = KEYS.map(|key| Arc::from(value(key)));
        if class_of(value(LabelKey::ThreadClass)) == Some(ThreadClass::Task)
            && let Some(task) = tasks.get_mut(&key)
        {
            task.waits.add(value(LabelKey::Wait), total.weight);
        }
    }
    let mut tasks: Vec<Task> = tasks.into_values().collect();
    tasks.sort_by_cached_key(Task::order);
    Ok(tasks)
}

/// The figures that are of labels: the task's own or its helpers', and its class's.
fn figures(
    tasks: &mut BTreeMap<Key, Task>,
    value: impl Fn(LabelKey) -> Option<Arc<str>>,
) -> [&mut Figures; 2] {
    let value = |key| value(key).unwrap_or_default();
    let (key, app_name) = (KEYS.map(value), value(LabelKey::AppName));
    let task = tasks.entry(key.clone()).or_insert_with(|| Task {
        key,
        app_name: app_name.clone(),
        own: Figures::default(),
        helpers: Figures::default(),
        python: Figures::default(),
        waits: Waits::default(),
        classes: BTreeMap::new(),
    });
    if task.app_name.is_empty() {
        task.app_name = app_name;
    }
    task.figures(&value(LabelKey::Role), &value(LabelKey::ThreadClass))
}

/// The conditions that are of processes; those of threads left out.
pub fn of_processes(selection: &Selection) -> Selection {
    let of_process = |matcher: &&Matcher| !matcher.key.is_of_thread();
    Selection { matchers: selection.matchers.iter().filter(of_process).cloned().collect() }
}

/// The error for a selection of tasks in which none was seen: names the stages that were.
pub fn unknown_stage(store: &dyn Store, query: &Query) -> ApiError {
    let all = Query { selection: of_processes(&query.selection), ..query.clone() };
    let tasks = match tasks(store, &all) {
        Ok(tasks) => tasks,
        Err(error) => return error,
    };
    let mut stages: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for stage in tasks.iter().map(|task| task.label(LabelKey::Stage)) {
        if known.insert(stage) {
            stages.push(stage);
        }
    }
    let named: Vec<String> = stages.iter().take(MAX_NAMED).map(|stage| shown(stage)).collect();
    let there = match named.len() {
        0 => "no stage's tasks were.".to_owned(),
        _ => format!("those of these stages were: {}.", named.join(", ")),
    };
    let (from, until) = (query.range.from, query.range.until);
    let message = format!("No such task was seen between {from} and {until}; {there}");
    ApiError::new(StatusCode::NOT_FOUND, "unknown_stage", message)
        .of_parameter(LabelKey::Stage.name())
        .with_choices(stages.into_iter().take(MAX_NAMED).map(str::to_owned).collect())
}
