//! A process seen first: what is read of it, and what stands for one that cannot be read, or not now.

use super::super::facts::ProcessFacts;
use super::super::identity::{Identity, PythonSide, Runtime, identify, with_parent};
use super::super::labels::{UNKNOWN_COMM, UNREAD_COMM};
use super::super::procfs::ReadError;
use super::Registry;
use super::entry::Entry;
use super::events::Fork;
use emberscope_model::{Pid, ProcessKey, Tenant};

impl Registry {
    /// Reads a process and its unknown ancestors.
    pub(super) fn read(&mut self, pid: Pid, ancestors: usize) -> ProcessKey {
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
        let above = parent.and_then(|p| self.entries.get(&p)).map(|e| &*e.settled);
        let settled = with_parent(&own, above);
        // Its application's name, its Python parent: what others must learn or tell.
        self.dirty |= settled.is_spark();
        let mut entry = Entry::new(&self.config, facts, own, settled, parent);
        entry.last_used = self.tick;
        if let Some(late) = &mut entry.late {
            let before = self.entries.get(&key).and_then(|old| old.late);
            *late = before.unwrap_or_default().again(self.tick);
        }
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
            // It never became another program. What a Python daemon forks is a worker, what a JVM forks is no JVM.
            Some(e) if e.settled.python == Some(PythonSide::Daemon) || e.settled.runtime == Runtime::Java => {
                let own = Identity { forked: true, ..Identity::clone(&e.settled) };
                (with_parent(&own, Some(&e.settled)), e.process.comm.to_string())
            }
            Some(e) => (Identity::clone(&e.settled), e.process.comm.to_string()),
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
}
