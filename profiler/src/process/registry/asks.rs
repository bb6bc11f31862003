//! When which driver or Worker is asked, and what becomes of the answers.
//!
//! A question costs the one who answers: a driver loads its JSON servlet at the first GET, which took 3.0 s
//! of an idle local driver's CPU (Spark 3.5.9, JDK 17, /proc/PID/stat before and after); a later one some
//! 10 ms. So a driver is asked only when nothing surer tells its application's id (its environment, its
//! executors' `--driver-url`), and a Worker only while an executor of its own has no name or a provisional one:
//! whether it was the Worker's answer or the driver's words that came first must not decide what an application
//! is called. An id without a name is not worth a question to a driver: `--name`, the script or the id itself
//! will do.

use super::entry::{Entry, Told};
use super::{Limits, Registry};
use crate::model::{Deploy, ProcessKey, Role};
use crate::process::discovery::{Answer, Candidate, MAX_CANDIDATES, Question, RestApp, Server};
use crate::process::identity::{DriverAddress, Runtime};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Longest time between two questions while there is no answer. A driver on a busy machine takes 20 s for
/// its first one (it loads some thousand classes), and is not asked to do so twice.
const SLOWEST: Duration = Duration::from_secs(10);
/// Time between two questions to a driver that has answered, and of whose application nothing surer tells:
/// a notebook may have stopped its session and made another.
const KNOWN: Duration = Duration::from_secs(300);
/// How long a driver that was just seen is left to its executors, which tell of it as soon as the daemon has
/// looked where they connect.
const LOOK_FIRST: Duration = Duration::from_secs(3);
/// Names of applications kept; more than a node runs in weeks.
const MAX_NAMES: usize = 4096;
/// Applications whose driver is looked for on this node: this often, then it is elsewhere.
const MAX_SEARCHES: u32 = 5;
/// Searches remembered.
const MAX_SEARCHED: usize = 4096;

/// When something is asked next.
#[derive(Clone, Copy, Debug)]
struct Turn {
    next: Instant,
    times: u32,
    waiting: bool,
}

impl Turn {
    fn new() -> Self {
        Self { next: Instant::now(), times: 0, waiting: false }
    }
    fn due(&self, now: Instant) -> bool {
        !self.waiting && now >= self.next
    }
    fn asked(&mut self, now: Instant, limits: &Limits) {
        self.waiting = true;
        self.next = now + limits.ask_interval.saturating_mul(1 << self.times.min(16)).min(SLOWEST);
        self.times = self.times.saturating_add(1);
    }
}

/// Turns and names.
#[derive(Debug, Default)]
pub(super) struct Asks {
    servers: HashMap<ProcessKey, Turn>,
    searches: HashMap<String, Turn>,
    names: HashMap<String, String>,
}

impl Asks {
    /// Names of applications as web servers told them.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(id, name)| (id.as_str(), name.as_str()))
    }

    /// Remembers a name; says whether that is news.
    fn name(&mut self, app: &RestApp) -> bool {
        if app.name.is_empty() || self.names.get(&app.id) == Some(&app.name) {
            return false;
        }
        if self.names.len() >= MAX_NAMES {
            // All of them come again with the next answers.
            self.names.clear();
        }
        self.names.insert(app.id.clone(), app.name.clone());
        true
    }
}

impl Registry {
    /// Takes what the discovery thread found.
    pub(super) fn take_answers(&mut self) {
        while let Some(answer) = self.discovery.next_answer() {
            match answer {
                Answer::DriverAt { app, driver } => self.take_driver(app, driver),
                Answer::Rest { key, server, apps } => self.take_rest(key, server, &apps),
            }
        }
    }

    fn take_driver(&mut self, app: String, driver: Option<ProcessKey>) {
        if let Some(turn) = self.asks.searches.get_mut(&app) {
            turn.waiting = false;
        }
        match driver.and_then(|key| self.entries.get_mut(&key)) {
            Some(entry) => {
                entry.told.get_or_insert_default().by_url = Some(app);
                self.dirty = true;
            }
            None => self.counters.asks_unanswered += 1,
        }
    }

    pub(super) fn take_rest(&mut self, key: ProcessKey, server: Server, apps: &[RestApp]) {
        if let Some(turn) = self.asks.servers.get_mut(&key) {
            turn.waiting = false;
            if server == Server::Driver && !apps.is_empty() {
                turn.next = Instant::now() + KNOWN;
            }
        }
        self.counters.asks_unanswered += u64::from(apps.is_empty());
        for app in apps {
            self.dirty |= self.asks.name(app);
        }
        // A driver tells of itself alone; two would be another kind of server.
        if let (Server::Driver, [app]) = (server, apps)
            && let Some(entry) = self.entries.get_mut(&key)
        {
            let told = entry.told.get_or_insert_default();
            if told.by_rest.as_ref() != Some(app) {
                told.by_rest = Some(app.clone());
                self.dirty = true;
            }
        }
    }

    /// Asks whom it is time to ask.
    pub(super) fn ask(&mut self) {
        let now = Instant::now();
        self.forget_turns();
        let mut questions = self.searches(now);
        if self.config.ask_drivers {
            questions.extend(self.servers(now));
        }
        for (question, asked) in questions {
            if !self.discovery.ask(question) {
                self.counters.asks_refused += 1;
                continue;
            }
            self.counters.asked += 1;
            match asked {
                Asked::Server(key) => self.asks.servers.entry(key).or_insert_with(Turn::new),
                Asked::App(app) => self.asks.searches.entry(app).or_insert_with(Turn::new),
            }
            .asked(now, &self.config.limits);
        }
    }

    fn forget_turns(&mut self) {
        let entries = &self.entries;
        self.asks.servers.retain(|key, _| entries.get(key).is_some_and(|e| !e.process.exited));
        if self.asks.searches.len() > MAX_SEARCHED {
            self.asks.searches.retain(|_, turn| turn.waiting);
        }
    }

    /// Drivers' and Workers' web servers whose turn it is.
    fn servers(&self, now: Instant) -> Vec<(Question, Asked)> {
        let live = self.entries.iter().filter(|(_, e)| !e.process.exited && !e.stale);
        let servers = live.filter_map(|(key, e)| {
            let server = match e.settled.role {
                Role::Driver if self.wants_id(*key, e) => Server::Driver,
                Role::Worker if self.has_unsure_names(*key) => Server::Worker,
                _ => return None,
            };
            let due = self.asks.servers.get(key).is_none_or(|turn| turn.due(now));
            let process = Candidate { key: *key, netns: e.netns.clone() };
            due.then_some((Question::Rest { process, server, ui_port: e.own.ui_port }, Asked::Server(*key)))
        });
        servers.collect()
    }

    /// Only its web server can tell this driver's application, as far as can be seen by now.
    fn wants_id(&self, key: ProcessKey, entry: &Entry) -> bool {
        if !entry.settled.is_driver_jvm() || driver_is_certain(entry) {
            return false;
        }
        let patience = self.config.limits.driver_patience;
        // In local mode no executor will ever tell.
        entry.settled.deploy == Deploy::Local
            || age(key) >= patience && entry.seen.elapsed() >= patience.min(LOOK_FIRST)
    }

    /// A Worker knows its executors' applications by the names that they gave themselves.
    fn has_unsure_names(&self, worker: ProcessKey) -> bool {
        let live = self.entries.values().filter(|e| !e.process.exited && e.parent == Some(worker));
        live.filter(|e| e.settled.role == Role::Executor).any(|e| !e.settled.name_is_sure)
    }

    /// Applications that run executors here, and whose driver is not known.
    fn searches(&self, now: Instant) -> Vec<(Question, Asked)> {
        let live = || self.entries.values().filter(|e| !e.process.exited && !e.stale);
        let found: HashSet<&str> = live()
            .filter(|e| e.settled.is_driver_jvm() && driver_is_certain(e))
            .filter_map(|e| e.settled.app.as_deref())
            .collect();
        let mut wanted: HashMap<&str, (&DriverAddress, &str)> = HashMap::new();
        for entry in live() {
            if let (Some(app), Some(at)) = (&entry.own.app, &entry.own.driver_at)
                && !found.contains(app.as_str())
                && self.asks.searches.get(app).is_none_or(|t| t.due(now) && t.times < MAX_SEARCHES)
            {
                wanted.insert(app, (at, &entry.netns));
            }
        }
        if wanted.is_empty() {
            return Vec::new();
        }
        let candidates = candidates(live());
        let question = |(app, (at, netns)): (&str, (&DriverAddress, &str))| {
            let (app, at, netns) = (app.to_owned(), at.clone(), netns.to_owned());
            let asked = Asked::App(app.clone());
            (Question::DriverAt { app, at, netns, candidates: candidates.clone() }, asked)
        };
        wanted.into_iter().map(question).collect()
    }
}

/// Whose turn a question is.
enum Asked {
    Server(ProcessKey),
    App(String),
}

/// How long ago a process began; its start is in ticks since boot (proc_pid_stat(5)).
fn age(key: ProcessKey) -> Duration {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(u64::try_from(up.tv_sec).unwrap_or(0), 0);
    let began = key.start_ticks / rustix::param::clock_ticks_per_second().max(1);
    up.saturating_sub(Duration::from_secs(began))
}

/// Its application is told by its own environment, or by its executors.
fn driver_is_certain(entry: &Entry) -> bool {
    entry.own.app.is_some() || entry.told.as_ref().is_some_and(|t: &Told| t.by_url.is_some())
}

/// JVMs that may be a driver: drivers first, then programs of whoever made a SparkContext without
/// spark-submit. On Kubernetes, and in YARN's containers, drivers say so themselves.
fn candidates<'a>(live: impl Iterator<Item = &'a Entry>) -> Vec<Candidate> {
    let mut candidates: Vec<(bool, Candidate)> = live
        .filter(|e| e.own.runtime == Runtime::Java && e.own.app.is_none())
        .filter(|e| matches!(e.own.role, Role::Driver | Role::Other) && e.own.deploy != Deploy::Local)
        .map(|e| (e.own.role != Role::Driver, Candidate { key: e.process.key, netns: e.netns.clone() }))
        .collect();
    candidates.sort_by_key(|(other, candidate)| (*other, candidate.key));
    candidates.truncate(MAX_CANDIDATES);
    candidates.into_iter().map(|(_, candidate)| candidate).collect()
}
