//! Reads the event logs of applications whose drivers are or were on this node, for what their REST API did not tell: it is
//! off, or something happened after it was asked last.
//!
//! In: directories and URLs, applications with the user of their driver. Out: facts for the store. A log is read when its driver has
//! ended, and every half hour before, for a fact is found with windows of the hour before it; one elsewhere is brought here at the
//! end alone. It is believed only if each of its files is the driver's user's own, where that can be told, and it tells of that application. What is read is bounded ([`BOUNDS`]), at the lowest priority; who
//! waits for a directory that does not answer is this thread alone. Limits: [`MAX_APPS`] applications, [`MAX_OF_USER`] of a user, [`TRIES`] of a log
//! that has no end yet. An application that ended while no daemon ran is not looked for: `emberscope import --event-log`.

use super::far_logs::{FarLogError, FarLogs};
use super::spark_words::Given;
use crate::Lifecycle;
use emberscope_config::LogPlace;
use emberscope_import::{Bounds, EventLog, EventLogFacts};
use emberscope_model::{
    Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange, WallTime,
};
use emberscope_store::Store;
use emberscope_supervise::Beat;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks which drivers there are.
const LOOK: Duration = Duration::from_secs(5);
/// From one reading of a log that goes on being written to the next.
const EVERY: Duration = Duration::from_secs(1800);
/// From a driver's end to the first look for its log, which is given its last name then; each further one waits four times
/// as long.
const AFTER: Duration = Duration::from_secs(10);
/// How often a log is looked for, and read as long as it has no end, once its driver is gone.
const TRIES: u32 = 4;
/// Applications that are known at a time, of all users and of one.
const MAX_APPS: usize = 256;
const MAX_OF_USER: usize = 16;
/// Logs of one application that are read: attempts of a driver that YARN started again have one each.
const MAX_LOGS: usize = 4;
/// How far back an application's samples may be.
const SEEN: Duration = Duration::from_secs(3600);
/// Of a log: some 15 MB of memory at the most while it is read.
const BOUNDS: Bounds = Bounds { log: 2 << 30, line: 4 << 20, each: 4_000, operators: 20_000 };
/// Of a log elsewhere: bytes that are brought here, as it is packed.
const BROUGHT: u64 = 256 << 20;
/// A log of 2 GiB takes a minute or two.
const STUCK: Duration = Duration::from_secs(900);
/// The lowest priority.
const NICE: i32 = 19;

/// An application whose driver is or was here.
struct App {
    user: u32,
    due: Instant,
    /// How often its log was looked for since the driver's end.
    ended: Option<u32>,
    given: Given,
}

/// What is read, and what was.
pub(super) struct EventLogs {
    /// It may end while a log is read from a directory that does not answer.
    store: Weak<dyn Store>,
    places: Vec<LogPlace>,
    /// Where logs from elsewhere lie while they are read.
    brought: PathBuf,
    apps: BTreeMap<String, App>,
    /// How long logs of a user were read: who took more of the thread's time comes later.
    spent: BTreeMap<u32, Duration>,
}

impl EventLogs {
    /// Nothing was read yet.
    pub fn new(store: &Arc<dyn Store>, places: &[LogPlace], brought: PathBuf) -> Self {
        Self {
            store: Arc::downgrade(store),
            places: places.to_vec(),
            brought,
            apps: BTreeMap::new(),
            spent: BTreeMap::new(),
        }
    }

    /// Reads the log of the application that is due first, if one is.
    pub fn look(&mut self, drivers: &BTreeMap<String, u32>, now: Instant) {
        for (name, user) in drivers {
            if let Some(app) = self.apps.get_mut(name) {
                app.ended = None;
            } else if self.apps.len() < MAX_APPS && self.of(*user) < MAX_OF_USER {
                let app = App { user: *user, due: now + EVERY, ended: None, given: Given::default() };
                self.apps.insert(name.clone(), app);
            }
        }
        for (_, app) in
            self.apps.iter_mut().filter(|(name, app)| app.ended.is_none() && !drivers.contains_key(*name))
        {
            (app.ended, app.due) = (Some(0), now + AFTER);
        }
        let due = self.apps.iter().filter(|(_, app)| now >= app.due);
        let spent = |user: u32| self.spent.get(&user).copied().unwrap_or_default();
        let next = due.min_by_key(|(_, app)| (spent(app.user), app.due));
        let Some((name, user)) = next.map(|(name, app)| (name.clone(), app.user)) else { return };
        let begun = Instant::now();
        if self.read(&name, now) {
            self.apps.remove(&name);
        }
        *self.spent.entry(user).or_default() += begun.elapsed();
        let users: BTreeSet<u32> = self.apps.values().map(|app| app.user).collect();
        self.spent.retain(|user, _| users.contains(user));
    }

    /// How many applications of a user are known.
    fn of(&self, user: u32) -> usize {
        self.apps.values().filter(|app| app.user == user).count()
    }

    /// Reads an application's log. True: it need not be looked for again.
    fn read(&mut self, name: &str, now: Instant) -> bool {
        let Some(app) = self.apps.get_mut(name) else { return true };
        let Some(store) = self.store.upgrade() else { return true };
        if !is_kept(&*store, name) {
            app.due = now + EVERY;
            return app.ended.is_some();
        }
        // It is not needed while the log is read, which may take long.
        drop(store);
        let logs = find(&self.places, name, app.user);
        let mut read: Vec<EventLogFacts> = logs.iter().filter_map(|log| told(log, name)).collect();
        // One that goes on being written is not there yet in an object store, and would be brought again and again.
        if app.ended.is_some() && read.is_empty() {
            read = self.places.iter().flat_map(|place| from_afar(place, name, &self.brought)).collect();
        }
        let found = !logs.is_empty() || !read.is_empty();
        let Some(store) = self.store.upgrade() else { return true };
        let mut is_whole = !read.is_empty();
        for told in read {
            let (count, has_ended) = (told.facts.len(), told.has_ended);
            is_whole &= app.given.give(told.facts.into_iter(), true, &*store) && has_ended;
            let remarks = told.remarks.join(" ");
            tracing::info!(app = %name, facts = count, %remarks, "read an event log of Spark");
        }
        let Some(tries) = &mut app.ended else {
            app.due = now + EVERY;
            return false;
        };
        *tries += 1;
        app.due = now + AFTER * 4_u32.saturating_pow(*tries);
        if !found && *tries >= TRIES {
            tracing::info!(app = %name, places = ?self.places, "there is no event log of the driver's user");
        }
        is_whole || *tries >= TRIES
    }
}

/// Whether there are samples of an application: what is not to be kept has none.
fn is_kept(store: &dyn Store, app: &str) -> bool {
    let now = WallTime::now();
    let query = Query {
        range: TimeRange { from: now.minus(SEEN), until: now },
        selection: Selection {
            matchers: vec![Matcher { key: LabelKey::App, op: MatchOp::In(vec![app.to_owned()]) }],
        },
        kind: SampleKind::Cpu,
        group: Vec::new(),
        detail: Detail::default(),
    };
    store.values(&query, LabelKey::App).is_ok_and(|values| !values.is_empty())
}

/// The logs of an application that are its user's.
fn find(places: &[LogPlace], app: &str, user: u32) -> Vec<EventLog> {
    let mut found = Vec::new();
    for place in places {
        let LogPlace::Dir(dir) = place else { continue };
        match EventLog::find_of(dir, app, user) {
            Ok(own) => {
                for (log, refusal) in own.refused {
                    let why = refusal.sentence();
                    tracing::warn!(log = %log.display(), driver = user, "an event log is not read: {why}");
                }
                found.extend(own.logs);
            }
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "a directory of event logs cannot be read")
            }
        }
    }
    // The last attempt's is the newest.
    found.drain(..found.len().saturating_sub(MAX_LOGS));
    found
}

/// What the logs of an application in another storage tell: they are brought here one by one, and go when they are read. Whose
/// they are is not told there, so who may write there is believed.
fn from_afar(place: &LogPlace, app: &str, brought: &Path) -> Vec<EventLogFacts> {
    let LogPlace::Url(url) = place else { return Vec::new() };
    let read = || -> Result<Vec<EventLogFacts>, FarLogError> {
        let mut far = FarLogs::open(url)?;
        let mut logs = far.find(Some(app))?;
        logs.drain(..logs.len().saturating_sub(MAX_LOGS));
        let mut facts = Vec::new();
        for log in &logs {
            // What an earlier reading that ended in the middle left, too.
            let _ = std::fs::remove_dir_all(brought);
            std::fs::create_dir_all(brought)?;
            match far.bring(log, brought, BROUGHT) {
                Ok(here) => facts.extend(told(&here, app)),
                Err(error) => tracing::warn!(%url, %error, "an event log cannot be brought"),
            }
        }
        Ok(facts)
    };
    let facts = read().unwrap_or_else(|error| {
        if !matches!(error, FarLogError::NoLog(_)) {
            tracing::warn!(%url, %error, "event logs cannot be looked for");
        }
        Vec::new()
    });
    let _ = std::fs::remove_dir_all(brought);
    facts
}

fn told(log: &EventLog, app: &str) -> Option<EventLogFacts> {
    match log.read_within(BOUNDS) {
        Ok(told) if told.app == app => Some(told),
        Ok(told) => {
            tracing::warn!(log = %log.path().display(), %app, says = %told.app, "an event log is of another application");
            None
        }
        Err(error) => {
            tracing::warn!(log = %log.path().display(), %error, "an event log cannot be read");
            None
        }
    }
}

/// Starts the thread. `drivers` tells of the applications whose drivers are on this node, each with its user's id.
///
/// # Errors
/// The kernel starts no thread.
pub(super) fn start(
    mut logs: EventLogs,
    drivers: impl Fn() -> BTreeMap<String, u32> + Send + 'static,
    life: Lifecycle,
) -> io::Result<JoinHandle<()>> {
    emberscope_supervise::spawn("event-logs", STUCK, move |beat: &Beat| {
        // Of this thread alone (setpriority(2), C library/kernel differences).
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "event logs are read at the usual priority");
        }
        while !life.sleep(LOOK) {
            // A log that ends in a panic is not tried again.
            if beat.work(|| logs.look(&drivers(), Instant::now())).is_err() {
                logs.apps.clear();
            }
        }
    })
}

#[cfg(test)]
mod tests;
