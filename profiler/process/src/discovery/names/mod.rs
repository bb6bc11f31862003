//! Spark's own names and figures for stages and tasks, asked for when somebody wants to know, and kept.
//!
//! In: questions ([`SparkSource`]) of any thread; the configured servers, and those that the registry
//! found ([`Places`]). Out: [`Joined`], at once or after a bounded wait. The first GET of all costs a
//! driver 3 s of CPU (it loads its servlets; Spark 3.5.9, JDK 17), so nothing is asked unless a user's
//! question needs it, or a driver here is to be read while it lives. One thread asks, one question at a
//! time; the same question is never under way twice; answers are kept for [`SOONEST`] to [`RUNNING`], or [`ENDED`], failures back off up to [`SLOWEST`]. Kept:
//! [`MAX_KEPT`] answers, [`MAX_BYTES`]; the longest unused go first.

mod beside;
mod client;
mod fetch;
#[cfg(debug_assertions)]
pub mod fuzzed;
mod kept;
mod places;
mod plans;
#[cfg(test)]
mod tests;
mod texts;
mod wire;

pub use places::{Place, Places, Tells};

use super::ProcRoot;
use crate::text::cut;
use client::{AskError, Client};
use emberscope_model::{Joined, SparkSource, SparkStages, SparkTasks, SparkUrl};
use emberscope_supervise::Beat;
use kept::{Keep, Kept};
use places::MAX_URLS;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer of a running application holds at the least.
pub const SOONEST: Duration = Duration::from_secs(5);
/// And at the most. In between it is [`PART`] times as long as the answer took.
pub const RUNNING: Duration = Duration::from_secs(30);
/// What a driver says in its last seconds is lost with it, so it is asked as often as this part of its time allows.
const PART: u32 = 200;
/// How long an answer of an application that ended holds.
pub const ENDED: Duration = Duration::from_secs(600);
/// Longest time between two attempts while there is no answer; the first is [`RUNNING`].
pub const SLOWEST: Duration = Duration::from_secs(600);
/// Longest for one question, with all its servers at their longest.
const STUCK: Duration = Duration::from_secs(300);
/// Questions that may wait for the thread.
pub const MAX_QUEUE: usize = 16;
/// Answers and failures kept.
pub const MAX_KEPT: usize = 64;
/// Bytes of answers kept, as far as they can be reckoned: 10,000 tasks are 1 MB.
pub const MAX_BYTES: usize = 4 << 20;
/// Bytes of a sentence about failures.
const MAX_SAYS: usize = 600;

/// Who is asked for names.
#[derive(Clone, Debug, Default)]
pub struct NamesConfig {
    /// Servers that the operator named; at most 8 are asked.
    pub urls: Vec<SparkUrl>,
    /// Ask drivers and history servers found on this node too.
    pub ask_found: bool,
}

/// What was asked and turned away, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamesCounters {
    /// Questions put to Spark's servers.
    pub asked: u64,
    /// Questions that none of the servers answered.
    pub failed: u64,
    /// Questions that were not put: too many waited.
    pub refused: u64,
    /// Answers given up for want of room.
    pub evicted: u64,
    /// Answers kept now.
    pub kept: usize,
    /// Bytes of the answers kept now.
    pub bytes: usize,
}

/// What is asked for: an application's stages, or the tasks of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    app: String,
    /// Stage and attempt; None: the application's stages.
    tasks: Option<(u32, u32)>,
}

#[derive(Debug, Default)]
struct State {
    kept: Kept,
    queue: VecDeque<Question>,
    started: bool,
    closing: bool,
    counters: NamesCounters,
}

#[derive(Debug)]
struct Shared {
    config: NamesConfig,
    places: Places,
    root: ProcRoot,
    state: Mutex<State>,
    changed: Condvar,
}

/// The door. Its thread ends when this is dropped.
#[derive(Debug)]
pub struct SparkNames {
    shared: Arc<Shared>,
}

impl SparkNames {
    /// Starts the thread, here and not with the first question: that comes from a thread which may not look at other
    /// processes, and what a thread starts may not either ([`emberscope_supervise::rights`]). Nobody is asked yet. `places` is the registry's handle ([`crate::Registry::places`]).
    pub fn new(config: NamesConfig, places: Places) -> Self {
        let root = ProcRoot::new("/proc");
        let (state, changed) = (Mutex::default(), Condvar::new());
        let names = Self { shared: Arc::new(Shared { config, places, root, state, changed }) };
        let shared = Arc::clone(&names.shared);
        let started = emberscope_supervise::spawn("spark-names", STUCK, move |beat| shared.run(beat));
        if let Err(error) = &started {
            tracing::warn!(%error, "no thread to ask Spark for names of stages");
        }
        names.shared.lock().started = started.is_ok();
        names
    }

    /// What was asked and turned away, since the start.
    pub fn counters(&self) -> NamesCounters {
        let state = self.shared.lock();
        NamesCounters { kept: state.kept.len(), bytes: state.kept.bytes(), ..state.counters }
    }

    fn ask<T: Keep>(&self, question: Question, wait: Duration) -> Joined<T> {
        if !fetch::is_plain_id(&question.app) {
            return Joined::NotAsked("This application's id is none that Spark could be asked about.".into());
        }
        let nobody = self.shared.nobody(&question.app);
        let until = Instant::now() + wait;
        let mut state = self.shared.lock();
        if nobody.is_none() && state.kept.is_due(&question) && !self.put(&mut state, &question) {
            return state.kept.tell(&question, Some("Too many questions to Spark are waiting: ask again."));
        }
        while state.kept.is_pending(&question) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = match self.shared.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.kept.tell(&question, nobody)
    }

    /// Puts a question before the thread; false: there is no room, or no thread.
    fn put(&self, state: &mut State, question: &Question) -> bool {
        if !state.started || state.queue.len() >= MAX_QUEUE {
            state.counters.refused += 1;
            return false;
        }
        state.counters.asked += 1;
        state.counters.evicted += state.kept.begin(question);
        state.queue.push_back(question.clone());
        self.shared.changed.notify_all();
        true
    }
}

impl Drop for SparkNames {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
    }
}

impl SparkSource for SparkNames {
    fn stages(&self, app: &str, wait: Duration) -> Joined<SparkStages> {
        self.ask(Question { app: app.to_owned(), tasks: None }, wait)
    }
    fn told_stages(&self, app: &str) -> Option<Arc<SparkStages>> {
        let told = self.shared.lock().kept.value(&Question { app: app.to_owned(), tasks: None })?;
        SparkStages::kept(&told)
    }
    fn tasks(&self, app: &str, stage: u32, attempt: u32, wait: Duration) -> Joined<SparkTasks> {
        self.ask(Question { app: app.to_owned(), tasks: Some((stage, attempt)) }, wait)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nobody can be asked about an application; None: somebody can.
    fn nobody(&self, app: &str) -> Option<&'static str> {
        let found = || !self.places.of(app).is_empty();
        match (self.config.urls.is_empty(), self.config.ask_found) {
            (false, _) => None,
            (true, true) if found() => None,
            (true, true) => Some(
                "Neither this application's driver nor a history server is on this node, and none is named (spark-url).",
            ),
            (true, false) => Some("Drivers are not asked (ask-drivers), and no server is named (spark-url)."),
        }
    }

    /// The thread: answers one question after another.
    fn run(&self, beat: &Beat) {
        loop {
            let mut state = self.lock();
            let question = loop {
                if state.closing {
                    return;
                }
                if let Some(question) = state.queue.pop_front() {
                    break question;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            let before = state.kept.value(&question);
            drop(state);
            let asked = Instant::now();
            let told = beat.work(|| self.answer(&question, before.as_ref(), &Client::default()));
            let took = asked.elapsed();
            let told = told.unwrap_or_else(|panicked| Err(format!("{panicked}.")));
            let mut state = self.lock();
            state.counters.failed += u64::from(told.is_err());
            state.counters.evicted += state.kept.end(&question, told, took);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Asks one server after another until one knows: the driver, those named, history servers here. `before`: the answer
    /// before.
    fn answer(
        &self,
        question: &Question,
        before: Option<&kept::Value>,
        client: &Client,
    ) -> Result<kept::Value, String> {
        let mut failures = Vec::new();
        for (who, urls) in self.servers(&question.app) {
            for url in urls.unwrap_or_else(|why| {
                failures.push(format!("{who} {why}"));
                Vec::new()
            }) {
                match question.at(&url, before, client) {
                    Ok(value) => return Ok(value),
                    Err(error) => failures.push(format!("{who} at {url}: {error}")),
                }
            }
        }
        let all = format!("not reachable: {}", failures.join("; "));
        Err(format!("{}.", cut(&all, MAX_SAYS)))
    }

    /// Who may know an application, and where each can be asked.
    fn servers(&self, app: &str) -> Vec<(String, Result<Vec<SparkUrl>, &'static str>)> {
        let places = if self.config.ask_found { self.places.of(app) } else { Vec::new() };
        let at = |place: &Place| (place.name(), place.urls(&self.root));
        let (drivers, histories): (Vec<_>, Vec<_>) =
            places.iter().partition(|place| matches!(place.tells, Tells::App(_)));
        let named = self.config.urls.iter().take(MAX_URLS);
        let mut servers: Vec<_> = drivers.into_iter().map(at).collect();
        servers.extend(named.map(|url| ("the server named".to_owned(), Ok(vec![url.clone()]))));
        servers.extend(histories.into_iter().map(at));
        servers
    }
}

impl Question {
    fn at(
        &self,
        url: &SparkUrl,
        before: Option<&kept::Value>,
        client: &Client,
    ) -> Result<kept::Value, AskError> {
        match self.tasks {
            None => {
                let before = before.and_then(SparkStages::kept);
                fetch::stages(client, url, &self.app, before.as_deref()).map(|told| told.keep())
            }
            Some((stage, attempt)) => {
                fetch::tasks(client, url, &self.app, stage, attempt).map(|told| told.keep())
            }
        }
    }
}
