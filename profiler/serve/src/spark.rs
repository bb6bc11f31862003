//! Joins what Spark says of stages and tasks to the rows of an answer.
//!
//! In: an answer with rows that name `app`, `stage`, `stage_attempt` (and `task`), and a [`SparkSource`].
//! Out: the same answer; each row has `spark` (null where Spark told nothing), and so has the answer, with
//! the source, the state and a sentence. Waits for Spark once, at most `wait`. No request can name a
//! server: the source knows those of the daemon's configuration and those found on its node, and no
//! other, or a client could have a daemon with root's rights fetch any address.

use super::error::ApiError;
use super::params::Params;
use emberscope_api::route::param;
use emberscope_api::{self as api, Join};
use emberscope_model::{Joined, SparkSource, SparkStage, SparkStages, SparkTask, SparkTasks, WallTime};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long an answer waits for Spark.
pub const WAIT: Duration = Duration::from_secs(3);
/// Applications, or stages for their tasks, that are asked about in one answer.
pub const MAX_ASKED: usize = 4;

/// The value of `join=`: whether Spark is asked. The default is `auto`.
///
/// # Errors
/// 400 `bad_parameter`: `join` is given more than once, or is neither `auto` nor `no`.
pub fn wanted(params: &Params) -> Result<bool, ApiError> {
    Ok(params.word(param::JOIN, Join::Auto)? == Join::Auto)
}

/// Adds `spark` to each of `answer.stages`. `source` is None where nobody is to be asked.
pub fn join_stages(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    join::<SparkStages>(answer, source, wait);
}

/// Adds `spark` to each of `answer.tasks`.
pub fn join_tasks(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    join::<SparkTasks>(answer, source, wait);
}

/// What Spark told that belongs to rows of one kind.
trait Told: Sized {
    /// What Spark is asked about.
    type Key: Ord;
    /// Key of the answer's rows in JSON.
    const ROWS: &'static str;
    /// What the keys are, for people, in the plural.
    const KEYS: &'static str;
    fn key(row: &Value) -> Option<Self::Key>;
    fn ask(source: &dyn SparkSource, key: &Self::Key, wait: Duration) -> Joined<Self>;
    fn of_row(&self, row: &Value) -> Option<Value>;
    fn origin(&self) -> (&str, WallTime, &[String]);
}

impl Told for SparkStages {
    type Key = String;
    const ROWS: &'static str = "stages";
    const KEYS: &'static str = "applications";
    fn key(row: &Value) -> Option<String> {
        // A stage without a number is none that Spark knows.
        number::<u32>(row, "stage").and_then(|_| text(row, "app"))
    }
    fn ask(source: &dyn SparkSource, app: &String, wait: Duration) -> Joined<Self> {
        source.stages(app, wait)
    }
    fn of_row(&self, row: &Value) -> Option<Value> {
        self.get(number(row, "stage")?, number(row, "stage_attempt")?)
            .map(|told| json!(stage(told, &self.pages)))
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

impl Told for SparkTasks {
    type Key = (String, u32, u32);
    const ROWS: &'static str = "tasks";
    const KEYS: &'static str = "stages";
    fn key(row: &Value) -> Option<Self::Key> {
        Some((text(row, "app")?, number(row, "stage")?, number(row, "stage_attempt")?))
    }
    fn ask(source: &dyn SparkSource, (app, stage, attempt): &Self::Key, wait: Duration) -> Joined<Self> {
        source.tasks(app, *stage, *attempt, wait)
    }
    fn of_row(&self, row: &Value) -> Option<Value> {
        self.get(number(row, "task")?).map(|told| json!(task(told)))
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

/// Asks about each key of the rows, at most [`MAX_ASKED`], and adds what was told.
fn join<T: Told>(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    let Some(Value::Array(rows)) = answer.get_mut(T::ROWS) else { return };
    let until = Instant::now() + wait;
    let mut told: BTreeMap<T::Key, Joined<T>> = BTreeMap::new();
    let mut left_out = false;
    for row in rows {
        let mut value = Value::Null;
        if let (Some(source), Some(key)) = (source, T::key(row)) {
            if told.len() < MAX_ASKED || told.contains_key(&key) {
                let left = || until.saturating_duration_since(Instant::now());
                let joined = told.entry(key).or_insert_with_key(|key| T::ask(source, key, left()));
                value = joined.value().and_then(|told| told.of_row(row)).unwrap_or_default();
            } else {
                left_out = true;
            }
        }
        if let Value::Object(row) = row {
            row.insert("spark".into(), value);
        }
    }
    answer.insert("spark".into(), json!(origin(source.is_some(), told.values(), left_out)));
}

/// Whom the figures are from, and what is to be said of them.
fn origin<'a, T: Told + 'a>(
    asked: bool,
    told: impl Iterator<Item = &'a Joined<T>> + Clone,
    left_out: bool,
) -> api::SparkOrigin {
    let mut says: BTreeSet<&str> = told.clone().map(Joined::says).filter(|text| !text.is_empty()).collect();
    let mut sources = BTreeSet::new();
    let mut fetched: Option<WallTime> = None;
    for value in told.clone().filter_map(Joined::value) {
        let (source, at, notes) = value.origin();
        sources.insert(source);
        fetched = Some(fetched.map_or(at, |earlier| earlier.min(at)));
        says.extend(notes.iter().map(String::as_str));
    }
    let too_many =
        format!("Spark is asked about {MAX_ASKED} {} at most in one answer: select fewer.", T::KEYS);
    says.extend(left_out.then_some(too_many.as_str()));
    says.extend((!asked).then_some("Spark was not asked."));
    let mut states: BTreeSet<&str> = told.map(Joined::state).collect();
    states.extend(left_out.then_some("not-asked"));
    let state = match (states.pop_first(), states.is_empty()) {
        (None, _) => "not-asked",
        (Some(one), true) => one,
        (Some(_), false) => "partly",
    };
    let list = |words: BTreeSet<&str>, between: &str| words.into_iter().collect::<Vec<_>>().join(between);
    api::SparkOrigin {
        state: state.into(),
        source: (!sources.is_empty()).then(|| list(sources, ", ")),
        fetched: fetched.map(Into::into),
        says: list(says, " "),
    }
}

fn text(row: &Value, key: &str) -> Option<String> {
    row.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A label that is a number.
fn number<N: std::str::FromStr>(row: &Value, key: &str) -> Option<N> {
    row.get(key)?.as_str()?.parse().ok()
}

fn stage(stage: &SparkStage, pages: &str) -> api::SparkStage {
    api::SparkStage {
        page: format!("{pages}/stages/stage/?id={}&attempt={}", stage.id, stage.attempt),
        name: (*stage.name).to_owned(),
        description: stage.description.as_deref().map(str::to_owned),
        job_ids: stage.job_ids.to_vec(),
        sql_id: stage.sql.as_ref().map(|sql| sql.id),
        sql_description: stage.sql.as_ref().map(|sql| (*sql.description).to_owned()),
        status: (*stage.status).to_owned(),
        tasks: stage.tasks,
        cpu: cpu(stage.executor_cpu_ns, stage.deserialize_cpu_ns),
        run_time_ms: stage.run_time_ms,
        submitted: stage.submitted.map(Into::into),
        completed: stage.completed.map(Into::into),
    }
}

fn task(task: &SparkTask) -> api::SparkTask {
    api::SparkTask {
        duration_ms: task.duration_ms,
        cpu: cpu(task.executor_cpu_ns, task.deserialize_cpu_ns),
        status: (*task.status).to_owned(),
        speculative: task.speculative,
        attempt: task.attempt,
        host: (*task.host).to_owned(),
        launched: task.launched.map(Into::into),
    }
}

fn cpu(executor_ns: u64, deserialize_ns: u64) -> api::SparkCpu {
    api::SparkCpu { executor_cpu_ns: Some(executor_ns), deserialize_cpu_ns: Some(deserialize_ns) }
}

#[cfg(test)]
pub(super) mod tests;
