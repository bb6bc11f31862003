//! Reads what Spark says of its applications while their drivers live, so that it is kept with their windows.
//!
//! In: applications whose drivers are on this node and that the store has samples of; Spark's answers, by the thread
//! that asks for users too, so that nothing is asked twice, and no driver more often than it can bear
//! (`discovery/names`). Out: facts for the store: what has changed, and what has
//! not ended yet, for each part of the store is to have the facts of its own windows. What is not read while the driver
//! lives stays unknown.
//!
//! One question is under way at most, so that a user's waits for no more than one: who does not answer in
//! [`PATIENCE`] is asked again after the others, and the drivers of the user who was waited for least come first. Limits:
//! [`MAX_APPS`] applications, which users share where there are more; a hash of each fact, at most
//! [`MAX_WRITTEN`] of them, after which all are given to the store once more.

use super::event_logs::{self, EventLogs};
use crate::Lifecycle;
use emberscope_config::DaemonConfig;
use emberscope_model::{
    Detail, Excess, Joined, LabelKey, Query, SampleKind, Selection, SparkFact, SparkSource, SparkStages,
    Tenant, TimeRange, WallTime,
};
use emberscope_process::{Places, SparkNames};
use emberscope_store::Store;
use emberscope_supervise::Beat;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks what is to be asked, and what was answered.
const LOOK: Duration = Duration::from_secs(5);
/// How long an answer is waited for: a driver that has answered before takes some tenths of a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often what has not ended is given to the store again, and who could not be asked is asked again.
const EVERY: Duration = Duration::from_secs(30);
/// How far back an application's samples may be.
const SEEN: Duration = Duration::from_secs(120);
/// Applications that are asked about.
const MAX_APPS: usize = 64;
/// Hashes of an application that are remembered: Spark itself keeps 1,000 stages, jobs and executions each.
const MAX_WRITTEN: usize = 16_384;
/// Longest for one look, which waits for the store's disk.
const STUCK: Duration = Duration::from_secs(60);

/// Which facts of an application were given to the store.
#[derive(Default)]
pub(super) struct Given(HashSet<u64>);

impl Given {
    /// Gives the store what is new to it, and `again` what has not ended. False: it has no window yet, and is to be given it
    /// again.
    pub fn give(&mut self, told: impl Iterator<Item = SparkFact>, again: bool, store: &dyn Store) -> bool {
        if self.0.len() > MAX_WRITTEN {
            self.0.clear();
        }
        let is_new = |fact: &SparkFact| again && fact.ended.is_none() || !self.0.contains(&fact.digest());
        let facts: Vec<SparkFact> = told.filter(is_new).collect();
        let taken = store.learn(&facts);
        if taken {
            self.0.extend(facts.iter().map(SparkFact::digest));
        }
        taken
    }
}

/// What of an application was given to the store.
#[derive(Default)]
struct Read {
    fetched: Option<WallTime>,
    due: Option<Instant>,
    given: Given,
    /// When what has not ended was given last.
    all_given: Option<Instant>,
}

impl Read {
    /// Gives the store what was told. It comes again soon where the store has no window yet.
    fn give(&mut self, told: &SparkStages, store: &dyn Store, now: Instant) {
        let again = self.all_given.is_none_or(|given| now >= given + EVERY);
        if self.given.give(told.facts(), again, store) {
            self.fetched = Some(told.fetched);
            self.all_given = if again { Some(now) } else { self.all_given };
        }
    }
}

/// Gives the store what Spark says.
struct Recorder {
    store: Arc<dyn Store>,
    source: Arc<dyn SparkSource>,
    read: BTreeMap<String, Read>,
    /// How long drivers of a user were waited for: who took more of the thread's time comes later.
    waited: BTreeMap<u32, Duration>,
}

impl Recorder {
    /// Nothing was read yet.
    pub fn new(store: Arc<dyn Store>, source: Arc<dyn SparkSource>) -> Self {
        Self { store, source, read: BTreeMap::new(), waited: BTreeMap::new() }
    }

    /// Asks about those applications that are due, and takes what was answered since. `drivers`: the applications with
    /// the user of each.
    pub fn look(&mut self, drivers: &BTreeMap<String, u32>, now: Instant) {
        self.read.retain(|app, _| drivers.contains_key(app));
        let due = |app: &String| self.read.get(app).and_then(|read| read.due);
        let waited = |user: &u32| self.waited.get(user).copied().unwrap_or_default();
        let all = shared(drivers).into_iter().map(|(app, user)| (waited(&user), due(app), app, user));
        let mut due: Vec<_> = all.filter(|(_, due, ..)| due.is_none_or(|due| now >= due)).collect();
        if due.is_empty() {
            return;
        }
        // Then who waits longest comes first, and who was never asked before all.
        due.sort();
        let is_read = |app: &String| self.read.get(app).is_some_and(|read| read.fetched.is_some());
        let seen = if due.iter().all(|(_, _, app, _)| is_read(app)) { BTreeSet::new() } else { self.seen() };
        for (_, _, app, user) in due {
            let read = self.read.entry(app.clone()).or_default();
            read.due = Some(now + LOOK);
            if read.fetched.is_none() && !seen.contains(app.as_str()) {
                // Its first window has not closed, or it is not to be kept.
                read.due = Some(now + 3 * LOOK);
                continue;
            }
            let begun = Instant::now();
            let told = self.source.stages(app, PATIENCE);
            *self.waited.entry(user).or_default() += begun.elapsed();
            match told {
                Joined::Ready(told) if read.fetched.is_none_or(|fetched| told.fetched > fetched) => {
                    read.give(&told, &*self.store, now);
                }
                // It is the answer of before.
                Joined::Ready(_) => {}
                // Nobody can be asked, or he does not answer: who asks for users waits as long.
                Joined::NotAsked(_) | Joined::Unreachable(_) => read.due = Some(now + EVERY),
                Joined::Stale(..) | Joined::Kept(..) | Joined::Asking => break,
            }
        }
        let users: BTreeSet<u32> = drivers.values().copied().collect();
        self.waited.retain(|user, _| users.contains(user));
    }

    /// Applications that the store has samples of: what is not to be kept has none.
    fn seen(&self) -> BTreeSet<String> {
        let now = WallTime::now();
        let query = Query {
            range: TimeRange { from: now.minus(SEEN), until: now },
            selection: Selection::all(),
            kind: SampleKind::Cpu,
            group: Vec::new(),
            detail: Detail::default(),
        };
        let values = self.store.values(&query, LabelKey::App).unwrap_or_else(|error| {
            tracing::debug!(%error, "the store does not tell its applications");
            Vec::new()
        });
        values.into_iter().map(|value| value.value.to_string()).collect()
    }
}

/// The applications that are asked about, each with its user: at most [`MAX_APPS`], of each user a share.
fn shared(drivers: &BTreeMap<String, u32>) -> Vec<(&String, u32)> {
    let tenant = |user: &u32| Tenant { spark: true, uid: *user, group: 0 };
    let mut excess = Excess::over(MAX_APPS, drivers.values().map(|user| (tenant(user), 1)));
    // Ids of applications have their beginning in them: the youngest go.
    let mut all: Vec<_> = drivers.iter().rev().filter(|(_, user)| !excess.take(&tenant(user), 1)).collect();
    all.reverse();
    all.into_iter().map(|(app, user)| (app, *user)).collect()
}

/// Starts the thread; it ends with the daemon. `drivers` tells of the applications whose drivers are on this node, and of their users.
///
/// # Errors
/// The kernel starts no thread.
fn start(
    mut recorder: Recorder,
    drivers: impl Fn() -> BTreeMap<String, u32> + Send + 'static,
    life: Lifecycle,
) -> io::Result<JoinHandle<()>> {
    emberscope_supervise::spawn("spark-words", STUCK, move |beat: &Beat| {
        while !life.sleep(LOOK) {
            // After a panic what was read is read again.
            if beat.work(|| recorder.look(&drivers(), Instant::now())).is_err() {
                (recorder.read, recorder.waited) = Default::default();
            }
        }
    })
}

/// Starts what keeps Spark's words with the windows: of drivers that can be asked, whose thread is the answer, and of event
/// logs ([`event_logs`]), whose thread nobody waits for.
///
/// # Errors
/// The kernel starts no thread.
pub(super) fn keep(
    config: &DaemonConfig,
    store: &Arc<dyn Store>,
    names: &Arc<SparkNames>,
    places: Places,
    life: &Lifecycle,
) -> io::Result<Option<JoinHandle<()>>> {
    if let Some(dirs) = &config.event_logs {
        let brought = config.data_dir.get().join("event-logs");
        let (logs, places) = (EventLogs::new(store, dirs.get(), brought), places.clone());
        event_logs::start(logs, move || places.users_of_drivers(), life.clone())?;
    }
    if !config.ask_drivers {
        return Ok(None);
    }
    let recorder = Recorder::new(Arc::clone(store), names.clone());
    start(recorder, move || places.users_of_drivers(), life.clone()).map(Some)
}

#[cfg(test)]
mod tests;
