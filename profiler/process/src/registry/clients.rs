//! The clients of Spark Connect servers: which Python processes here are, besides the driver's JVM, the driver of its
//! application.
//!
//! A client is found by its connection, while it has one: every [`LOOK_EVERY`] where a server and a Python that may be a
//! client run. One that was older than [`STARTS_WITHIN`] when it connected keeps what was sampled of it before as its own:
//! a web server that once asks something of Spark has served pages until then. It is believed to be of an application
//! whose server is its own user's, or a service's that acts for others (`cluster-users`): whoever may open a connection could
//! put his stacks into another's graph.

use super::Registry;
use super::asks::age;
use super::entry::Entry;
use crate::discovery::{Candidate, MAX_CLIENTS, Question};
use crate::identity::Runtime;
use emberscope_model::{ProcessKey, Role};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Time between two looks for a server's clients. A look reads the sockets of its network namespace.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How old a process is at most that connects as soon as it has started: imports, a session's first words.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// What is known of a process that was seen to be a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientOf {
    /// The driver that serves it.
    pub server: ProcessKey,
    /// The process had run for long before it connected, or had been a client before.
    pub late: bool,
    /// Its connection has ended, and the process has not.
    pub left: bool,
}

/// When each server's clients are looked for next.
#[derive(Debug, Default)]
pub(super) struct Clients(HashMap<ProcessKey, Look>);

#[derive(Clone, Copy, Debug)]
struct Look {
    next: Instant,
    uid: u32,
    waiting: bool,
}

impl Registry {
    /// Asks which processes are clients of the servers whose turn it is; of each user's servers one at a time.
    pub(super) fn look_for_clients(&mut self) {
        let now = Instant::now();
        let entries = &self.entries;
        self.clients.0.retain(|key, _| entries.get(key).is_some_and(|e| !e.process.exited));
        let mut busy: HashSet<u32> =
            self.clients.0.values().filter(|look| look.waiting).map(|look| look.uid).collect();
        for question in self.servers_of_clients(now) {
            let Question::Clients { server, .. } = &question else { continue };
            let (key, uid) = (server.key, server.uid);
            if busy.insert(uid) {
                let waiting = self.discovery.ask(question);
                self.clients.0.insert(key, Look { next: now + LOOK_EVERY, uid, waiting });
            }
        }
    }

    /// Servers of known applications, each with the processes that may be its clients.
    fn servers_of_clients(&self, now: Instant) -> Vec<Question> {
        let servers = self.live().filter(|e| e.settled.is_driver_jvm() && e.settled.app.is_some());
        let due = |e: &&Entry| self.clients.0.get(&e.process.key).is_none_or(|l| !l.waiting && now >= l.next);
        let question = |server: &Entry| {
            let port = server.own.connect_port?;
            let candidates = self.may_be_clients(server);
            (!candidates.is_empty()).then(|| Question::Clients {
                server: server.candidate(),
                port,
                candidates,
            })
        };
        servers.filter(due).filter_map(question).collect()
    }

    /// The processes that may be clients of a server: first those that are, so that none is lost in a crowd, then the
    /// oldest.
    pub(super) fn may_be_clients(&self, server: &Entry) -> Vec<Candidate> {
        let key = server.process.key;
        let mut all: Vec<&Entry> = self.live().filter(|e| self.may_be_client(e, server)).collect();
        let is_other = |e: &Entry| e.client_of.is_none_or(|of| of.server != key);
        all.sort_by_key(|e| (is_other(e), e.process.key.start_ticks, e.process.key.pid));
        all.into_iter().take(MAX_CLIENTS).map(Entry::candidate).collect()
    }

    /// Whether a process is a Python of nobody's application, whose user may be a client of that server.
    fn may_be_client(&self, entry: &Entry, server: &Entry) -> bool {
        entry.own.runtime == Runtime::Python
            && entry.own.role == Role::Other
            && (entry.client_of.is_some() || entry.settled.app.is_none())
            && (entry.process.uid == server.process.uid || self.is_cluster_user(server))
    }

    /// Takes who is connected to a server.
    pub(super) fn take_clients(&mut self, server: ProcessKey, clients: Option<&[ProcessKey]>) {
        if let Some(look) = self.clients.0.get_mut(&server) {
            look.waiting = false;
        }
        let Some(clients) = clients else { return };
        let lives = |key: &ProcessKey| self.entries.get(key).is_some_and(|e| !e.process.exited);
        let free = |of: &ClientOf| of.left || of.server == server || !lives(&of.server);
        let joined: HashSet<ProcessKey> = (clients.iter())
            .filter(|key| self.entries.get(*key).is_some_and(|e| e.client_of.as_ref().is_none_or(free)))
            .copied()
            .collect();
        for (key, entry) in &mut self.entries {
            let was = entry.client_of;
            if joined.contains(key) {
                // One that comes back has been something else meanwhile.
                let late = was.map_or_else(|| age(*key) > STARTS_WITHIN, |was| was.late || was.left);
                entry.client_of = Some(ClientOf { server, late, left: false });
            } else if let Some(of) = &mut entry.client_of
                && of.server == server
                && !entry.process.exited
            {
                of.left = true;
            }
            self.dirty |= was != entry.client_of;
        }
    }
}
