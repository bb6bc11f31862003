//! Joins what Spark says of stages and tasks to the rows of an answer.
//!
//! In: an answer with rows that name `app`, `stage`, `stage_attempt` (and `task`), a [`SparkSource`], and what the store
//! keeps of Spark's words ([`KeptWords`]), which stands in for what Spark does not say any more.
//! Out: the same answer; each row has `spark` (null where Spark told nothing), and so has the answer, with
//! the source, the state and a sentence. Waits for Spark once, at most `wait`. No request can name a
//! server: the source knows those of the daemon's configuration and those found on its node, and no
//! other, or a client could have a daemon with root's rights fetch any address.

use super::error::ApiError;
use super::params::Params;
use emberscope_api::route::param;
use emberscope_api::{self as api, Join};
use emberscope_model::{
    Joined, SparkSource, SparkStage, SparkStages, SparkTask, SparkTasks, TimeRange, WallTime,
};
use emberscope_store::Store;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOT_ASKED: &str = "Spark was not asked.";
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

/// What a store keeps of Spark's words for the range of an answer.
pub struct KeptWords<'a> {
    /// The store of the answer.
    pub store: &'a dyn Store,
    /// The range of the answer.
    pub range: TimeRange,
}

impl KeptWords<'_> {
    fn stages(&self, app: &str) -> Option<SparkStages> {
        match self.store.spark_facts(app, self.range) {
            Ok(facts) => SparkStages::of_facts(app, facts),
            Err(error) => {
                tracing::warn!(%error, "names that are kept are not told");
                None
            }
        }
    }
}

/// Who tells Spark's words.
#[derive(Clone, Copy, Default)]
pub struct Words<'a> {
    /// Spark itself; None: nobody is to be asked.
    pub source: Option<&'a dyn SparkSource>,
    /// What is kept; None: it is not to be told.
    pub kept: Option<&'a KeptWords<'a>>,
}

/// Adds `spark` to each of `answer.stages`.
pub fn join_stages(answer: &mut Map<String, Value>, words: Words<'_>, wait: Duration) {
    join::<SparkStages>(answer, words, wait);
}

/// Adds `spark` to each of `answer.tasks`.
pub fn join_tasks(answer: &mut Map<String, Value>, words: Words<'_>, wait: Duration) {
    join::<SparkTasks>(answer, words, wait);
}

/// What Spark told that belongs to rows of one kind.
trait Told: Sized {
    /// What Spark is asked about.
    type Key: Ord + Clone;
    /// Key of the answer's rows in JSON.
    const ROWS: &'static str;
    /// What the keys are, for people, in the plural.
    const KEYS: &'static str;
    fn key(row: &Value) -> Option<Self::Key>;
    fn ask(source: &dyn SparkSource, key: &Self::Key, wait: Duration) -> Joined<Self>;
    /// What is kept about a key.
    fn kept(kept: &KeptWords<'_>, key: &Self::Key) -> Option<Self>;
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
    fn kept(kept: &KeptWords<'_>, app: &String) -> Option<Self> {
        kept.stages(app)
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
    fn kept(_: &KeptWords<'_>, _: &Self::Key) -> Option<Self> {
        None
    }
    fn of_row(&self, row: &Value) -> Option<Value> {
        self.get(number(row, "task")?).map(|told| json!(task(told)))
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

/// What is told about one key.
struct Answered<T> {
    joined: Joined<T>,
    /// What is kept, read when a row is asked for that Spark does not tell of.
    kept: Option<Option<Arc<T>>>,
}

impl<T: Told> Answered<T> {
    /// Asks Spark, and looks at what is kept where it tells nothing.
    fn ask(words: Words<'_>, key: &T::Key, wait: Duration) -> Self {
        let joined = match words.source {
            Some(source) => T::ask(source, key, wait),
            None => Joined::NotAsked(NOT_ASKED.to_owned()),
        };
        if joined.value().is_some() {
            return Self { joined, kept: None };
        }
        match words.kept.and_then(|kept| T::kept(kept, key)).map(Arc::new) {
            None => Self { joined, kept: Some(None) },
            Some(value) => {
                let says =
                    format!("As kept with the windows, read at {}. {}", value.origin().1, joined.says());
                Self { joined: Joined::Kept(value, says.trim_end().to_owned()), kept: Some(None) }
            }
        }
    }

    /// The row's value, and whether it is one that only the store has.
    fn of_row(&mut self, words: Words<'_>, key: &T::Key, row: &Value) -> (Option<Value>, bool) {
        if let Some(value) = self.joined.value().and_then(|told| told.of_row(row)) {
            return (Some(value), false);
        }
        let read = || words.kept.and_then(|kept| T::kept(kept, key)).map(Arc::new);
        let value = self.kept.get_or_insert_with(read).as_ref().and_then(|kept| kept.of_row(row));
        let is_kept = value.is_some();
        (value, is_kept)
    }
}

/// Asks about each key of the rows, at most [`MAX_ASKED`], and adds what was told.
fn join<T: Told>(answer: &mut Map<String, Value>, words: Words<'_>, wait: Duration) {
    let Some(Value::Array(rows)) = answer.get_mut(T::ROWS) else { return };
    let until = Instant::now() + wait;
    let is_asked = words.source.is_some() || words.kept.is_some();
    let mut told: BTreeMap<T::Key, Answered<T>> = BTreeMap::new();
    let (mut left_out, mut some_kept) = (false, false);
    for row in rows {
        let mut value = Value::Null;
        if let (true, Some(key)) = (is_asked, T::key(row)) {
            if told.len() < MAX_ASKED && !told.contains_key(&key) {
                let left = until.saturating_duration_since(Instant::now());
                let answered = Answered::ask(words, &key, left);
                told.insert(key.clone(), answered);
            }
            match told.get_mut(&key) {
                Some(answered) => {
                    let (of_row, is_kept) = answered.of_row(words, &key, row);
                    value = of_row.unwrap_or_default();
                    some_kept |= is_kept;
                }
                None => left_out = true,
            }
        }
        if let Value::Object(row) = row {
            row.insert("spark".into(), value);
        }
    }
    let joined = told.values().map(|answered| &answered.joined);
    answer.insert("spark".into(), json!(origin(is_asked, joined, left_out, some_kept)));
}

/// Whom the figures are from, and what is to be said of them.
fn origin<'a, T: Told + 'a>(
    asked: bool,
    told: impl Iterator<Item = &'a Joined<T>> + Clone,
    left_out: bool,
    some_kept: bool,
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
    says.extend(some_kept.then_some("What Spark no longer has is as kept with the windows."));
    says.extend((!asked).then_some(NOT_ASKED));
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
    let page = |pages: &str| format!("{pages}/stages/stage/?id={}&attempt={}", stage.id, stage.attempt);
    api::SparkStage {
        // What is kept has no server behind it any more.
        page: if pages.is_empty() { String::new() } else { page(pages) },
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
