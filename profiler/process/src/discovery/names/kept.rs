//! Answers that are kept, when each may be asked for again, and what is told meanwhile.
//!
//! In: questions and what came of them. Out: [`Joined`]. An answer that is too old, or could not be had
//! again, is still told, with a sentence. No I/O; the time is the monotonic clock's.

use super::{ENDED, MAX_BYTES, MAX_KEPT, PART, Question, RUNNING, SLOWEST, SOONEST};
use emberscope_model::{Joined, SparkStages, SparkTasks, WallTime};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An answer of any type.
#[derive(Clone, Debug)]
pub enum Value {
    Stages(Arc<SparkStages>),
    Tasks(Arc<SparkTasks>),
}

/// A type of answer.
pub trait Keep: Sized {
    /// The answer as one of any type.
    fn keep(self) -> Value;
    /// The answer back from one of any type; None: it is of another.
    fn kept(value: &Value) -> Option<Arc<Self>>;
}

impl Keep for SparkStages {
    fn keep(self) -> Value {
        Value::Stages(Arc::new(self))
    }
    fn kept(value: &Value) -> Option<Arc<Self>> {
        match value {
            Value::Stages(told) => Some(Arc::clone(told)),
            Value::Tasks(_) => None,
        }
    }
}

impl Keep for SparkTasks {
    fn keep(self) -> Value {
        Value::Tasks(Arc::new(self))
    }
    fn kept(value: &Value) -> Option<Arc<Self>> {
        match value {
            Value::Tasks(told) => Some(Arc::clone(told)),
            Value::Stages(_) => None,
        }
    }
}

impl Value {
    fn completed(&self) -> bool {
        match self {
            Self::Stages(told) => told.completed,
            Self::Tasks(told) => told.completed,
        }
    }
    fn fetched(&self) -> WallTime {
        match self {
            Self::Stages(told) => told.fetched,
            Self::Tasks(told) => told.fetched,
        }
    }
    /// Bytes of the answer, roughly; a text that several stages share counts for each.
    fn bytes(&self) -> usize {
        match self {
            Self::Stages(told) => {
                let row = |s: &emberscope_model::SparkStage| {
                    let sql = s.sql.as_ref().map_or(0, |sql| sql.description.len());
                    let words = s.name.len() + s.description.as_ref().map_or(0, |d| d.len()) + sql;
                    size_of_val(s) + words + s.job_ids.len() * 4
                };
                let beside: usize = told.beside.iter().map(emberscope_model::SparkFact::bytes).sum();
                told.stages.iter().map(row).sum::<usize>() + beside
            }
            Self::Tasks(told) => told.tasks.iter().map(size_of_val).sum(),
        }
    }
}

/// How long an answer of a running application holds that took so long.
fn while_it_runs(took: Duration) -> Duration {
    took.saturating_mul(PART).clamp(SOONEST, RUNNING)
}

#[derive(Debug)]
struct Entry {
    value: Option<Value>,
    failure: Option<String>,
    pending: bool,
    failures: u32,
    due: Instant,
    used: Instant,
}

/// The answers that are kept, by question.
#[derive(Debug, Default)]
pub struct Kept {
    entries: HashMap<Question, Entry>,
}

impl Kept {
    /// How many are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all answers that are kept, roughly.
    pub fn bytes(&self) -> usize {
        self.entries.values().filter_map(|e| e.value.as_ref()).map(Value::bytes).sum()
    }

    /// The answer to a question, if there was one.
    pub fn value(&self, question: &Question) -> Option<Value> {
        self.entries.get(question).and_then(|entry| entry.value.clone())
    }

    /// Whether it is time to ask, and nobody is asking.
    pub fn is_due(&self, question: &Question) -> bool {
        self.entries.get(question).is_none_or(|e| !e.pending && Instant::now() >= e.due)
    }

    /// Whether somebody is asking.
    pub fn is_pending(&self, question: &Question) -> bool {
        self.entries.get(question).is_some_and(|e| e.pending)
    }

    /// The question is being asked. Returns how many others had to go.
    pub fn begin(&mut self, question: &Question) -> u64 {
        let now = Instant::now();
        let new = Entry { value: None, failure: None, pending: false, failures: 0, due: now, used: now };
        self.entries.entry(question.clone()).or_insert(new).pending = true;
        self.make_room()
    }

    /// The question was asked, and the answer took so long. Returns how many others had to go.
    pub fn end(&mut self, question: &Question, told: Result<Value, String>, took: Duration) -> u64 {
        let Some(entry) = self.entries.get_mut(question) else { return 0 };
        entry.pending = false;
        // Whoever waits for it comes for it now.
        entry.used = Instant::now();
        let hold = match told {
            Ok(value) => {
                let hold = if value.completed() { ENDED } else { while_it_runs(took) };
                (entry.value, entry.failure, entry.failures) = (Some(value), None, 0);
                hold
            }
            Err(why) => {
                entry.failure = Some(why);
                entry.failures = entry.failures.saturating_add(1);
                RUNNING.saturating_mul(1 << (entry.failures - 1).min(16)).min(SLOWEST)
            }
        };
        entry.due = Instant::now() + hold;
        self.make_room()
    }

    /// What is known by now; `nobody` says why the question is not asked.
    pub fn tell<T: Keep>(&mut self, question: &Question, nobody: Option<&str>) -> Joined<T> {
        let Some(entry) = self.entries.get_mut(question) else {
            let why =
                nobody.unwrap_or("Spark was asked, and there was no room to keep its answer: ask again.");
            return Joined::NotAsked(why.to_owned());
        };
        entry.used = Instant::now();
        let value = entry.value.as_ref().and_then(|value| T::kept(value).map(|told| (told, value.fetched())));
        let why = match (nobody, &entry.failure) {
            (Some(why), _) if Instant::now() >= entry.due => Some(why),
            (_, why) => why.as_deref(),
        };
        match (value, why, entry.pending) {
            (Some((told, at)), _, true) => Joined::Stale(
                told,
                format!("As of {at}; Spark has been asked again and has not answered yet."),
            ),
            (Some((told, at)), Some(why), false) => {
                Joined::Stale(told, format!("As of {at}. Since then: {why}"))
            }
            (Some((told, _)), None, false) => Joined::Ready(told),
            (None, _, true) => Joined::Asking,
            (None, why, false) => match nobody {
                Some(nobody) => Joined::NotAsked(nobody.to_owned()),
                None => Joined::Unreachable(why.unwrap_or_default().to_owned()),
            },
        }
    }

    /// Lets the longest unused go.
    fn make_room(&mut self) -> u64 {
        let mut gone = 0;
        while self.entries.len() > MAX_KEPT || self.bytes() > MAX_BYTES {
            let idle = self.entries.iter().filter(|(_, e)| !e.pending);
            let Some(oldest) = idle.min_by_key(|(_, e)| e.used).map(|(question, _)| question.clone()) else {
                break;
            };
            self.entries.remove(&oldest);
            gone += 1;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_answers_fast_is_asked_sooner() {
        let seconds = |took: u64| while_it_runs(Duration::from_millis(took)).as_secs();
        assert_eq!([1, 25, 60, 150, 3_000].map(seconds), [5, 5, 12, 30, 30]);
    }
}
