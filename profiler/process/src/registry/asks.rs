//! When which driver or Worker is asked, and what becomes of the answers.
//!
//! A question costs the one who answers: a driver loads its JSON servlet at the first GET, which took 3.0 s
//! of an idle local driver's CPU (Spark 3.5.9, JDK 17, /proc/PID/stat before and after); a later one some
//! 10 ms. So a driver is asked for its application's id only when nothing surer tells it (its environment, its
//! executors' `--driver-url`), and for its name once, when it is old enough to be read for what Spark says of it
//! (`discovery/names`), which pays for the first GET: what a program calls itself in its code (`appName`) is on no
//! command line, and goes before `--name`. A Worker is asked while an executor of its own has no name or a
//! provisional one: whether it was the Worker's answer or the driver's words that came first must not decide what an
//! application is called.

use super::Registry;
use super::entry::{Entry, Told};
use super::turn::Turn;
use crate::discovery::{Answer, Question, RestApp, Server};
use crate::identity::DriverAddress;
use emberscope_model::{Deploy, ProcessKey, Role};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

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
/// A driver whose name alone is wanted is asked so often in vain, some two minutes long (and while nobody listens
/// [`STARTS`](super::turn::STARTS) times more), and then left alone: it has no web server, or one that cannot be reached from here.
pub(super) const MAX_NAME_ASKS: u32 = 16;
/// Questions about one user's processes that wait at once. One thread asks them all: a lookalike's silent web server
/// keeps it four seconds, and a host name of his as long as the resolver takes.
const MAX_WAITING: usize = 4;
/// Searches remembered.
const MAX_SEARCHED: usize = 4096;

/// An application, and the user of the executors that name its driver.
type Search = (String, u32);

/// Whose turn it is to be asked, and the names that web servers told.
#[derive(Debug, Default)]
pub(super) struct Asks {
    servers: HashMap<ProcessKey, Turn>,
    /// Searches by application and the executors' user: what one user asks in vain is not asked in vain for another.
    searches: HashMap<Search, Turn>,
    names: HashMap<String, String>,
}

impl Asks {
    /// Names of applications as web servers told them.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(id, name)| (id.as_str(), name.as_str()))
    }

    /// Remembers a name; says whether that is news.
    fn name(&mut self, id: &str, name: &str) -> bool {
        if name.is_empty() || self.names.get(id).is_some_and(|known| known == name) {
            return false;
        }
        if self.names.len() >= MAX_NAMES {
            // All of them come again with the next answers.
            self.names.clear();
        }
        self.names.insert(id.to_owned(), name.to_owned());
        true
    }

    /// Remembers what believed drivers, and application masters, call their applications: the name outlives them.
    pub fn remember<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) {
        let drivers = entries
            .map(|e| &e.settled)
            .filter(|i| (i.is_driver_jvm() || i.role == Role::AppMaster) && i.name_is_sure);
        for driver in drivers {
            if let (Some(app), Some(name)) = (&driver.app, &driver.app_name) {
                self.name(app, name);
            }
        }
    }
}

impl Registry {
    /// Takes what the discovery thread found.
    pub(super) fn take_answers(&mut self) {
        while let Some(answer) = self.discovery.next_answer() {
            match answer {
                Answer::DriverAt { app, teller, driver } => self.take_driver(app, teller, driver),
                Answer::Rest { key, server, apps } => self.take_rest(key, server, apps.as_deref()),
                Answer::Clients { server, clients } => self.take_clients(server, clients.as_deref()),
            }
        }
    }

    /// An executor leads to the process that listens where it was told. That its driver is there is its own
    /// word: it counts for a driver of its own user, or where a service of the cluster started it.
    pub(super) fn take_driver(&mut self, app: String, teller: ProcessKey, driver: Option<ProcessKey>) {
        let by = self.entries.get(&teller).map(|e| {
            // Kubernetes in client mode: the driver's pod has users of its own, and says nothing of the application.
            let pods = e.own.by_kernel && e.own.pod && driver.is_some_and(|d| self.is_free_pod(d, &app));
            (e.process.uid, pods || self.is_vouched(teller, e, &app))
        });
        // Where the teller is forgotten by now, whoever asked for the application may ask again.
        let searches = self.asks.searches.iter_mut();
        let answered = searches.filter(|((of, uid), _)| *of == app && by.is_none_or(|(by, _)| by == *uid));
        answered.for_each(|(_, turn)| turn.waiting = false);
        let found = driver.and_then(|key| Some((key, self.entries.get_mut(&key)?)));
        let (Some((key, entry)), Some((uid, by_service))) = (found, by) else {
            return;
        };
        if entry.process.uid != uid && !by_service {
            self.stray(teller, key, &app);
            return;
        }
        let told = entry.told.get_or_insert_default();
        (told.by_url, told.by_service) = (Some(app), by_service);
        self.dirty = true;
    }

    /// Whether a driver runs in a pod, and no executors that live lead to it from another application.
    fn is_free_pod(&self, driver: ProcessKey, app: &str) -> bool {
        let Some(entry) = self.entries.get(&driver).filter(|e| e.own.pod) else { return false };
        let held = entry.told.as_ref().and_then(|told| told.by_url.as_deref()).filter(|held| *held != app);
        let lives = |held: &str| {
            let executors =
                self.entries.values().filter(|e| !e.process.exited && e.own.role == Role::Executor);
            executors.filter(|e| e.settled.app.as_deref() == Some(held)).any(|e| e.own.driver_at.is_some())
        };
        !held.is_some_and(lives)
    }

    pub(super) fn take_rest(&mut self, key: ProcessKey, server: Server, apps: Option<&[RestApp]>) {
        let (listens, apps) = (apps.is_some(), apps.unwrap_or_default());
        if let Some(turn) = self.asks.servers.get_mut(&key) {
            turn.waiting = false;
            turn.met(listens);
            if server == Server::Driver && !apps.is_empty() {
                (turn.next, turn.times) = (Instant::now() + KNOWN, 0);
            }
        }
        // A Worker may name what its own executors are believed to work for, and nothing else.
        let starts = |id: &str| {
            let executors = self.entries.values().filter(|e| e.parent == Some(key) && e.judged);
            executors
                .filter(|e| e.settled.role == Role::Executor)
                .any(|e| e.settled.app.as_deref() == Some(id))
        };
        let named: Vec<&RestApp> =
            apps.iter().filter(|app| server == Server::Worker && starts(&app.id)).collect();
        for app in named {
            self.dirty |= self.asks.name(&app.id, &app.name);
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
        let mut waiting = self.waiting();
        for (question, asked) in questions {
            let waiting = waiting.entry(question.uid()).or_default();
            if *waiting >= MAX_WAITING || !self.discovery.ask(question) {
                self.counters.asks_refused += 1;
                continue;
            }
            *waiting += 1;
            self.counters.asked += 1;
            match asked {
                Asked::Server(key) => self.asks.servers.entry(key).or_insert_with(Turn::new),
                Asked::App(search) => self.asks.searches.entry(search).or_insert_with(Turn::new),
            }
            .asked(now, &self.config.limits);
        }
    }

    /// How many questions about each user's processes have no answer yet.
    pub(super) fn waiting(&self) -> HashMap<u32, usize> {
        let servers = self.asks.servers.iter().filter(|(_, turn)| turn.waiting);
        let servers = servers.filter_map(|(key, _)| Some(self.entries.get(key)?.process.uid));
        let searches = self.asks.searches.iter().filter(|(_, turn)| turn.waiting);
        let mut waiting = HashMap::new();
        for uid in servers.chain(searches.map(|((_, uid), _)| *uid)) {
            *waiting.entry(uid).or_default() += 1;
        }
        waiting
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
        let servers = self.live().filter_map(|e| {
            let key = &e.process.key;
            let server = match e.settled.role {
                Role::Driver if self.wants_id(*key, e) || self.wants_name(*key, e) => Server::Driver,
                Role::Worker if self.has_unsure_names(*key) => Server::Worker,
                _ => return None,
            };
            let due = self.asks.servers.get(key).is_none_or(|turn| turn.due(now));
            let process = e.candidate();
            due.then_some((Question::Rest { process, server, ui_port: e.own.ui_port }, Asked::Server(*key)))
        });
        servers.collect()
    }

    /// Whether only its web server can tell this driver's application, as far as can be seen by now.
    fn wants_id(&self, key: ProcessKey, entry: &Entry) -> bool {
        if !entry.settled.is_driver_jvm() || driver_is_certain(entry) {
            return false;
        }
        let patience = self.config.limits.driver_patience;
        // In local mode no executor will ever tell.
        entry.settled.deploy == Deploy::Local
            || age(key) >= patience && entry.seen.elapsed() >= patience.min(LOOK_FIRST)
    }

    /// Whether this driver's application is known, and not what the program calls it.
    fn wants_name(&self, key: ProcessKey, entry: &Entry) -> bool {
        let asked = self.asks.servers.get(&key).map_or(0, |turn| turn.times);
        entry.settled.is_driver_jvm()
            && driver_is_certain(entry)
            && !entry.settled.name_is_sure
            && asked < MAX_NAME_ASKS
            && age(key) >= self.config.limits.driver_patience
    }

    /// A Worker knows its executors' applications by the names that they gave themselves.
    fn has_unsure_names(&self, worker: ProcessKey) -> bool {
        let live = self.entries.values().filter(|e| !e.process.exited && e.parent == Some(worker));
        live.filter(|e| e.settled.role == Role::Executor).any(|e| !e.settled.name_is_sure)
    }

    /// Applications that run executors here, and whose driver is not known.
    fn searches(&self, now: Instant) -> Vec<(Question, Asked)> {
        let found: HashSet<&str> = self
            .live()
            .filter(|e| e.settled.is_driver_jvm() && driver_is_certain(e))
            .filter_map(|e| e.settled.app.as_deref())
            .collect();
        let mut wanted: HashMap<Search, (&Entry, &DriverAddress)> = HashMap::new();
        for entry in self.live().filter(|e| self.claims.disowns(e.process.key).is_none()) {
            if let (Some(app), Some(at)) = (&entry.own.app, &entry.own.driver_at)
                && !found.contains(app.as_str())
            {
                let search = (app.clone(), entry.process.uid);
                if self.asks.searches.get(&search).is_none_or(|t| t.due(now) && t.times < MAX_SEARCHES) {
                    wanted.insert(search, (entry, at));
                }
            }
        }
        let question = |(search, (entry, at)): (Search, (&Entry, &DriverAddress))| {
            let (teller, netns, at) = (entry.process.key, entry.netns.clone(), at.clone());
            let candidates = self.candidates(search.1);
            let (app, uid) = search.clone();
            (Question::DriverAt { app, uid, teller, at, netns, candidates }, Asked::App(search))
        };
        wanted.into_iter().map(question).collect()
    }
}

/// Whose turn a question is.
enum Asked {
    Server(ProcessKey),
    App(Search),
}

/// How long ago a process began; its start is in ticks since boot (proc_pid_stat(5)).
pub(super) fn age(key: ProcessKey) -> Duration {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(u64::try_from(up.tv_sec).unwrap_or(0), 0);
    let began = key.start_ticks / rustix::param::clock_ticks_per_second().max(1);
    up.saturating_sub(Duration::from_secs(began))
}

/// Whether a driver's application is told by its own environment, or by its executors.
fn driver_is_certain(entry: &Entry) -> bool {
    entry.own.app.is_some() || entry.told.as_ref().is_some_and(|t: &Told| t.by_url.is_some())
}
