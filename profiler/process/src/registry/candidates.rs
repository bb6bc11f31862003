//! Which processes may be the driver that executors name: the registry's side of looking for the one that listens there.

use super::Registry;
use super::entry::Entry;
use crate::discovery::{Candidate, MAX_CANDIDATES};
use crate::identity::Runtime;
use emberscope_model::{Deploy, Role};

impl Registry {
    /// Processes that run, and run what they were read as.
    pub(super) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|e| !e.process.exited && !e.stale)
    }

    /// JVMs that may be a driver: those of the executors' own user, `uid`, first; drivers, then programs of whoever
    /// made a SparkContext without spark-submit. On Kubernetes, and in YARN's containers, drivers say so themselves.
    pub(super) fn candidates(&self, uid: u32) -> Vec<Candidate> {
        let mut candidates: Vec<((bool, bool), Candidate)> = self
            .live()
            .filter(|e| e.own.runtime == Runtime::Java && e.own.app.is_none() && !self.is_fork(e))
            .filter(|e| matches!(e.own.role, Role::Driver | Role::Other) && e.own.deploy != Deploy::Local)
            .map(|e| ((e.process.uid != uid, e.own.role != Role::Driver), e.candidate()))
            .collect();
        candidates.sort_by_key(|(rank, candidate)| (*rank, candidate.key));
        candidates.truncate(MAX_CANDIDATES);
        candidates.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// Whether a process is a JVM's fork before its exec: the sockets that it holds are its parent's.
    fn is_fork(&self, entry: &Entry) -> bool {
        let parent = entry.parent.and_then(|parent| self.entries.get(&parent));
        parent.is_some_and(|parent| entry.own.is_fork_of(&parent.own))
    }
}
