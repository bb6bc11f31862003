//! All processes of the node, by (pid, start time).
//!
//! In: a scan of /proc, exec, fork and exit events, pids of samples. Out: labels for a pid, and relabels
//! once something became known late. /proc is read at first sight, on exec, and at the tick; never for a
//! sample of a process that is known. A process that was gone before it could be read is a [`Process`]
//! with start time 0, not an error. Bounded by [`Limits`]; what they turn away is in [`Counters`].

mod asks;
mod claims;
mod config;
mod entry;
mod events;
mod places;
mod reads;
mod settle;

pub use claims::Conflict;
pub use config::{Limits, RegistryConfig};
pub use entry::{Counters, Process};

use super::discovery::{Discovery, Places};
use super::facts::{self, ProcessFacts};
use super::identity::{Identity, PythonSide, Runtime, identify, with_parent};
use super::labels::{UNKNOWN_COMM, UNREAD_COMM};
use super::procfs::{ProcRoot, ReadError};
use super::users::Users;
use asks::Asks;
use claims::Claims;
use emberscope_model::{Excess, FastMap, LabelSet, Pid, ProcessKey, Refusals, Role, RuntimeId, Tenant};
use entry::Entry;
use events::{Fork, Forks, Pending};
use reads::ReadBudget;
use std::sync::Arc;

/// How far up the parents are read for a process seen first: worker, daemon, executor, Worker and some
/// shells between.
const MAX_ANCESTORS: usize = 8;

/// The labels of a process became known late, or better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relabel {
    /// Of which process.
    pub key: ProcessKey,
    /// What its samples were labelled so far.
    pub from: Arc<LabelSet>,
    /// What they should be.
    pub to: Arc<LabelSet>,
}

/// The registry. Used by one thread; what may block is done by another.
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
    /// An empty one, with its discovery thread.
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

    /// All that are kept, those that exited within the last minute too.
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

    /// Reads a process and its unknown ancestors.
    fn read(&mut self, pid: Pid, ancestors: usize) -> ProcessKey {
        if !self.may_read(pid) {
            return self.put_off(pid);
        }
        self.counters.reads += 1;
        match ProcessFacts::read(&self.root, &mut self.users, pid) {
            Ok(facts) => self.learn(&facts, ancestors),
            Err(error) => self.gone(pid, error),
        }
    }

    /// Takes in what was read.
    fn learn(&mut self, facts: &ProcessFacts, ancestors: usize) -> ProcessKey {
        let key = facts.key();
        self.counters.late += u64::from(facts.late);
        let fork = self.forks.take(facts.pid);
        // An orphan's parent is init; who forked it is known from the event.
        let parent_pid = if facts.ppid <= 1 { fork.map_or(facts.ppid, |f| f.parent) } else { facts.ppid };
        let known = self.entries.get(&key).and_then(|e| e.parent);
        let parent = match parent_pid {
            // Read again as an orphan: its parent stays who it was.
            0 | 1 if known.is_some() => known,
            0 => None,
            p if ancestors == 0 || p == facts.pid => self.by_pid.get(&p).copied(),
            p => Some(self.current(p, ancestors - 1)),
        };
        let own = identify(facts);
        let above = parent.and_then(|p| self.entries.get(&p)).map(|e| &e.settled);
        let settled = with_parent(&own, above);
        // Its application's name, its Python parent: what others must learn or tell.
        self.dirty |= settled.is_spark();
        let mut entry = Entry::new(&self.config, facts, own, settled, parent);
        entry.last_used = self.tick;
        if let Some(old) = self.entries.get(&key) {
            entry.told = old.told.clone();
            if old.own.program != entry.own.program {
                // Another program under the same key: what was told of the former is void.
                entry.told = None;
            }
        }
        self.insert(key, entry);
        key
    }

    /// A process that cannot be read: what is known of it stays, else it is its parent's fork, else
    /// nobody we know.
    fn gone(&mut self, pid: Pid, error: ReadError) -> ProcessKey {
        if let Some(key) = self.by_pid.get(&pid).copied()
            && let Some(entry) = self.entries.get_mut(&key)
        {
            entry.stale = false;
            entry.checked_at = Some(self.tick);
            entry.exit();
            return key;
        }
        self.counters.gone += u64::from(error == ReadError::Gone);
        self.counters.unreadable += u64::from(error != ReadError::Gone);
        let fork = self.forks.take(pid);
        self.stand_in(pid, fork, UNKNOWN_COMM)
    }

    /// A process that is not read now, for its user's processes were read too often of late: if it is sampled again it
    /// is tried again at the next tick.
    fn put_off(&mut self, pid: Pid) -> ProcessKey {
        if let Some(key) = self.by_pid.get(&pid).copied()
            && let Some(entry) = self.entries.get_mut(&key)
            && !entry.stale
        {
            entry.checked_at = Some(self.tick);
            return key;
        }
        self.stand_in(pid, self.forks.get(pid), UNREAD_COMM)
    }

    /// What stands for a process that was not read: its parent's fork if the event tells that, else `comm`.
    fn stand_in(&mut self, pid: Pid, fork: Option<Fork>, comm: &str) -> ProcessKey {
        let tenant = self.payer(pid);
        let parent = fork.filter(|f| !f.execed).and_then(|f| self.by_pid.get(&f.parent)).copied();
        let above = parent.and_then(|p| self.entries.get(&p));
        let (identity, comm) = match above {
            // It never became another program. What a Python daemon forks is a worker.
            Some(e) if e.settled.python == Some(PythonSide::Daemon) => {
                (with_parent(&e.settled, Some(&e.settled)), e.process.comm.to_string())
            }
            Some(e) => (e.settled.clone(), e.process.comm.to_string()),
            None if pid == 0 => (Identity::other("swapper", ""), "swapper".to_owned()),
            None => (Identity::other(comm, ""), comm.to_owned()),
        };
        let mut entry = Entry::gone(&self.config, pid, identity, &comm);
        entry.process.tenant = Tenant { spark: entry.process.tenant.spark, ..tenant };
        entry.parent = parent;
        entry.last_used = self.tick;
        entry.checked_at = Some(self.tick);
        let key = entry.process.key;
        self.insert(key, entry);
        key
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
