//! All processes of the node, by (pid, start time).
//!
//! In: a scan of /proc, exec, fork and exit events, pids of samples. Out: labels for a pid, and relabels
//! once something became known late. /proc is read at first sight, on exec, and at the tick; never for a
//! sample of a process that is known. A process that was gone before it could be read is a [`Process`]
//! with start time 0, not an error. Bounded by [`Limits`]; what they turn away is in [`Counters`].

mod asks;
mod candidates;
mod claims;
mod clients;
mod config;
mod entry;
mod events;
mod late;
mod learn;
mod places;
mod reads;
mod settle;
mod turn;

pub use claims::Conflict;
pub use config::{Limits, RegistryConfig};
pub use entry::{Counters, Process};

use super::discovery::{Discovery, Places};
use super::facts;
use super::identity::{Identity, Runtime};
use super::labels::UNKNOWN_COMM;
use super::procfs::ProcRoot;
use super::users::Users;
use asks::Asks;
use claims::Claims;
use clients::Clients;
use emberscope_model::{Excess, FastMap, LabelSet, Pid, ProcessKey, Refusals, Role, RuntimeId};
use entry::Entry;
use events::{Forks, Pending};
use reads::ReadBudget;
use std::sync::Arc;

/// How far up the parents are read for a process seen first: worker, daemon, executor, Worker and some
/// shells between.
const MAX_ANCESTORS: usize = 8;

/// The labels of a process became known late, or better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relabel {
    /// The process whose labels changed.
    pub key: ProcessKey,
    /// What its samples were labelled so far.
    pub from: Arc<LabelSet>,
    /// What they should be labelled.
    pub to: Arc<LabelSet>,
}

/// All processes of the node. Used by one thread; what may block is done by another.
#[derive(Debug)]
pub struct Registry {
    config: RegistryConfig,
    root: ProcRoot,
    users: Users,
    entries: FastMap<ProcessKey, Entry>,
    by_pid: FastMap<Pid, ProcessKey>,
    forks: Forks,
    pending: Pending,
    asks: Asks,
    claims: Claims,
    clients: Clients,
    discovery: Discovery,
    places: Places,
    /// Something changed that may change others' labels.
    dirty: bool,
    tick: u64,
    /// Looks for new processes of runtimes so far.
    looks: u64,
    /// The first scan, which reads whatever there is.
    scanning: bool,
    budget: ReadBudget,
    /// Processes thrown out, and reads refused, by whose they were.
    evicted: Refusals,
    unread: Refusals,
    counters: Counters,
    nobody: Process,
}

impl Registry {
    /// An empty registry, with its discovery thread.
    pub fn new(config: RegistryConfig) -> Self {
        let root = ProcRoot::new(&config.proc_root).looking_for(&config.marks);
        let nobody = Entry::gone(&config, 0, Identity::other(UNKNOWN_COMM, ""), UNKNOWN_COMM).process;
        Self {
            users: Users::new(&config.passwd),
            discovery: Discovery::start(root.clone()),
            root,
            entries: FastMap::default(),
            by_pid: FastMap::default(),
            forks: Forks::default(),
            pending: Pending::default(),
            asks: Asks::default(),
            claims: Claims::default(),
            clients: Clients::default(),
            places: Places::default(),
            dirty: false,
            tick: 0,
            looks: 0,
            scanning: false,
            budget: ReadBudget::default(),
            evicted: Refusals::default(),
            unread: Refusals::default(),
            counters: Counters::default(),
            nobody,
            config,
        }
    }

    /// Reads every process that there is. Returns how many are known afterwards.
    pub fn scan(&mut self) -> usize {
        self.scanning = true;
        for pid in self.root.pids().into_iter().take(self.config.limits.processes) {
            self.current(pid, MAX_ANCESTORS);
        }
        self.scanning = false;
        self.settle_all();
        self.entries.len()
    }

    /// The process that has this pid now, or had it last. Reads /proc only at first sight and after
    /// an exec.
    pub fn get(&mut self, pid: Pid) -> &Process {
        let key = self.current(pid, MAX_ANCESTORS);
        match self.entries.get_mut(&key) {
            Some(entry) => {
                entry.last_used = self.tick;
                &entry.process
            }
            None => &self.nobody,
        }
    }

    /// What a pid stands for, without reading anything; None when it was never asked for.
    pub fn known(&self, pid: Pid) -> Option<ProcessKey> {
        self.by_pid.get(&pid).copied()
    }

    /// An incarnation that is still kept.
    pub fn by_key(&self, key: ProcessKey) -> Option<&Process> {
        self.entries.get(&key).map(|e| &e.process)
    }

    /// The process that made another.
    pub fn parent(&self, key: ProcessKey) -> Option<&Process> {
        self.by_key(self.entries.get(&key)?.parent?)
    }

    /// Every process that is kept, those that exited within the last minute too.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.entries.values().map(|e| &e.process)
    }

    /// What was done and what was turned away, since the start.
    pub fn counters(&self) -> Counters {
        let exited = self.entries.values().filter(|e| e.process.exited).count();
        Counters { processes: self.entries.len(), exited, ..self.counters }
    }

    /// What was refused for want of room or of reads, and of whom, by table.
    pub fn refusals(&self) -> [(&'static str, &Refusals); 2] {
        [("processes", &self.evicted), ("process_reads", &self.unread)]
    }

    /// The key that a pid stands for, reading the process if it is new.
    fn current(&mut self, pid: Pid, ancestors: usize) -> ProcessKey {
        if let Some(key) = self.by_pid.get(&pid).copied() {
            let state = self.entries.get(&key).map(|e| (e.stale, e.process.exited, e.checked_at));
            match state {
                Some((false, false, _)) => return key,
                // Its pid may be another's by now; looked at once a tick.
                Some((false, true, checked_at)) if checked_at == Some(self.tick) => return key,
                Some(_) | None => {}
            }
        }
        self.read(pid, ancestors)
    }

    fn insert(&mut self, key: ProcessKey, entry: Entry) {
        if !self.entries.contains_key(&key) && self.entries.len() >= self.config.limits.processes.max(1) {
            self.evict();
        }
        if let Some(before) = self.by_pid.insert(key.pid, key)
            && before != key
            && let Some(old) = self.entries.get_mut(&before)
        {
            old.exit();
        }
        self.entries.insert(key, entry);
    }

    /// Makes room: a sixteenth of the entries, of the tenants that hold more than their share ([`Excess`]); of these
    /// first exited ones, then neighbours, then Spark's, and of each those that no sample asked for the longest.
    fn evict(&mut self) {
        let rank = |e: &Entry| match (e.process.exited, e.settled.role) {
            (true, _) => 0,
            (false, Role::Other) => 1,
            (false, _) => 2,
        };
        let all = self.entries.iter();
        let mut order: Vec<_> = all.map(|(key, e)| (rank(e), e.last_used, *key, e.process.tenant)).collect();
        order.sort_unstable();
        let room = (order.len() / 16).max(1);
        // What they hold too much is at least that room.
        let over = Excess::of(order.len() - room, order, |(.., tenant)| (*tenant, 1));
        for (rank, _, key, tenant) in over.take(room) {
            if rank > 0 {
                self.counters.evicted += 1;
                self.evicted.add(tenant);
            }
            self.forget(key);
        }
    }

    fn forget(&mut self, key: ProcessKey) {
        self.entries.remove(&key);
        if self.by_pid.get(&key.pid) == Some(&key) {
            self.by_pid.remove(&key.pid);
        }
    }

    /// Whether a runtime's file is mapped by now.
    fn recheck_runtime(&mut self, key: ProcessKey) {
        let known = self.entries.get(&key).map_or(RuntimeId::NATIVE, |entry| entry.process.runtime);
        let runtime = facts::runtime_of(&self.root, key.pid, known);
        if let Some(entry) = self.entries.get_mut(&key)
            && runtime != RuntimeId::NATIVE
        {
            // A launcher of its own turned out to be a JVM: its words mean something now.
            entry.stale |= runtime == RuntimeId::HOTSPOT && entry.own.runtime == Runtime::Other;
            entry.process.runtime = runtime;
        }
    }
}

#[cfg(test)]
mod tests;
