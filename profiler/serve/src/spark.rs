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
    Joined, SparkFact, SparkFactKind, SparkSource, SparkStages, SparkTasks, TimeRange, WallTime,
};
use emberscope_store::Store;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod told;

use told::Told;

const NOT_ASKED: &str = "Spark was not asked.";
/// How long an answer waits for Spark.
pub const WAIT: Duration = Duration::from_secs(3);
/// Applications, or stages for their tasks, that are asked about in one answer.
pub const MAX_ASKED: usize = 4;
/// How long after an application's last window Spark's last words of it may be kept.
const LAST_WORDS: Duration = Duration::from_secs(3600);
/// Those of which it is told what is kept, where no more are asked about.
const MAX_KEPT: usize = 32;

/// The value of `join=`: whether Spark is asked. The default is `auto`.
///
/// # Errors
/// 400 `bad_parameter`: `join` is given more than once, or is neither `auto` nor `no`.
pub fn wanted(params: &Params) -> Result<bool, ApiError> {
    Ok(params.word(param::JOIN, Join::Auto)? == Join::Auto)
}

/// What a store keeps of Spark's words for the range of an answer.
pub struct KeptWords<'a> {
    store: &'a dyn Store,
    range: TimeRange,
    /// When each application was seen, where that is known: of a week's hundred each is looked for in its own hour.
    seen: BTreeMap<String, TimeRange>,
}

impl<'a> KeptWords<'a> {
    /// What is kept of a range, whenever applications were seen in it.
    pub fn of(store: &'a dyn Store, range: TimeRange) -> Self {
        Self { store, range, seen: BTreeMap::new() }
    }

    /// The same, with when applications were seen: each as often as it was.
    pub fn seen<'s>(mut self, all: impl Iterator<Item = (&'s str, TimeRange)>) -> Self {
        for (app, seen) in all {
            match self.seen.get_mut(app) {
                Some(known) => {
                    known.from = known.from.min(seen.from);
                    known.until = known.until.max(seen.until);
                }
                None => {
                    self.seen.insert(app.to_owned(), seen);
                }
            }
        }
        self
    }

    fn stages(&self, app: &str) -> Option<SparkStages> {
        let seen = self.seen.get(app).map(|seen| TimeRange { until: seen.until.plus(LAST_WORDS), ..*seen });
        match self.store.spark_facts(app, seen.unwrap_or(self.range)) {
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

/// What is told about one key.
struct Answered<T> {
    joined: Joined<T>,
    /// What is kept, read when something is asked for that Spark does not tell.
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

    /// What is kept alone.
    fn of_store(words: Words<'_>, key: &T::Key) -> Self {
        let kept = words.kept.and_then(|kept| T::kept(kept, key)).map(Arc::new);
        let none = Joined::NotAsked(String::new());
        Self { joined: kept.map_or(none, |kept| Joined::Kept(kept, String::new())), kept: Some(None) }
    }

    /// What `of` finds in what Spark told, else in what is kept, and whether only the store has it.
    fn find<V>(&mut self, words: Words<'_>, key: &T::Key, of: impl Fn(&T) -> Option<V>) -> (Option<V>, bool) {
        if let Some(value) = self.joined.value().and_then(|told| of(told)) {
            return (Some(value), false);
        }
        let read = || words.kept.and_then(|kept| T::kept(kept, key)).map(Arc::new);
        let value = self.kept.get_or_insert_with(read).as_ref().and_then(|kept| of(kept));
        let is_kept = value.is_some();
        (value, is_kept)
    }
}

/// What is told about the keys of one answer: each is asked about when it is first needed, at most [`MAX_ASKED`] of them.
/// Of thirty-two it is told what is kept.
pub struct Asking<'w, T: Told> {
    words: Words<'w>,
    until: Instant,
    told: BTreeMap<T::Key, Answered<T>>,
    left_out: bool,
    some_kept: bool,
}

impl<'w, T: Told> Asking<'w, T> {
    /// Nothing was asked yet. All answers together are waited for at most `wait`.
    pub fn new(words: Words<'w>, wait: Duration) -> Self {
        let (told, until) = (BTreeMap::new(), Instant::now() + wait);
        Self { words, until, told, left_out: false, some_kept: false }
    }

    fn is_asked(&self) -> bool {
        self.words.source.is_some() || self.words.kept.is_some()
    }

    /// What `of` finds in what is told about a key.
    fn find<V>(&mut self, key: &T::Key, of: impl Fn(&T) -> Option<V>) -> Option<V> {
        if !self.is_asked() {
            return None;
        }
        if self.told.len() < MAX_KEPT && !self.told.contains_key(key) {
            let answered = if self.told.len() < MAX_ASKED {
                let left = self.until.saturating_duration_since(Instant::now());
                Answered::ask(self.words, key, left)
            } else {
                let answered = Answered::of_store(self.words, key);
                let is_kept = answered.joined.value().is_some();
                self.some_kept |= is_kept;
                self.left_out |= !is_kept;
                answered
            };
            self.told.insert(key.clone(), answered);
        }
        let Some(answered) = self.told.get_mut(key) else {
            self.left_out = true;
            return None;
        };
        let (value, is_kept) = answered.find(self.words, key, of);
        self.some_kept |= is_kept;
        value
    }

    /// What is told of a row.
    pub fn row(&mut self, key: &T::Key, row: &T::Row) -> Option<T::Value> {
        self.find(key, |told| told.of_row(row))
    }

    /// Whom it is all from.
    pub fn origin(&self) -> api::SparkOrigin {
        let joined = self.told.values().map(|answered| &answered.joined);
        origin(self.is_asked(), joined, self.left_out, self.some_kept)
    }
}

impl Asking<'_, SparkStages> {
    /// The fact of an execution's plan.
    pub fn plan(&mut self, app: &str, execution: u64) -> Option<SparkFact> {
        let id = execution.to_string();
        let is_it = |fact: &&SparkFact| fact.kind == SparkFactKind::Plan && *fact.id == *id;
        self.find(&app.to_owned(), |told| told.beside.iter().find(is_it).cloned())
    }
}

/// Adds what is told to the rows of an answer.
fn join<T: Told>(answer: &mut Map<String, Value>, words: Words<'_>, wait: Duration) {
    let Some(Value::Array(rows)) = answer.get_mut(T::ROWS) else { return };
    let mut asking = Asking::<T>::new(words, wait);
    for row in rows {
        let told = T::key(row).and_then(|(key, of)| asking.row(&key, &of));
        if let Value::Object(row) = row {
            row.insert("spark".into(), told.map_or(Value::Null, |told| json!(told)));
        }
    }
    answer.insert("spark".into(), json!(asking.origin()));
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

#[cfg(test)]
pub(super) mod tests;
