//! What the kernel's events change, and the once-a-second look at what they may have missed.

use super::{MAX_ANCESTORS, Registry, Relabel};
use crate::procfs::ReadError;
use crate::stat::read_stat;
use emberscope_model::{Excess, Pid, ProcessKey, RawTask, TaskEvent, Tenant, shrink};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Forks remembered, in each of two generations. A fork is forgotten when its child is read; the rest are
/// children that ended without a sample.
const MAX_FORKS: usize = 8192;
/// Ticks after which the older generation goes.
const FORK_TICKS: u64 = 60;
/// Execs and exits that wait for the next tick.
const MAX_PENDING: usize = 8192;
/// Ticks in which all processes are checked once, and checks a tick at least.
const ROUND_TICKS: usize = 10;
const LEAST_CHECKS: usize = 16;
/// How long after its exec a `java` is asked whether it has mapped libjvm.
const JVM_STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Who forked a process that was not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    pub parent: Pid,
    /// The child runs another program than its parent by now.
    pub execed: bool,
}

/// Forks whose child was not read yet, in two generations.
#[derive(Debug, Default)]
pub(super) struct Forks {
    young: HashMap<Pid, Fork>,
    old: HashMap<Pid, Fork>,
}

impl Forks {
    fn note(&mut self, child: Pid, parent: Pid) {
        if self.young.len() >= MAX_FORKS {
            self.rotate();
        }
        self.old.remove(&child);
        self.young.insert(child, Fork { parent, execed: false });
    }
    fn exec(&mut self, child: Pid) {
        if let Some(fork) = self.young.get_mut(&child).or_else(|| self.old.get_mut(&child)) {
            fork.execed = true;
        }
    }
    fn rotate(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }
    pub fn get(&self, child: Pid) -> Option<Fork> {
        self.young.get(&child).or_else(|| self.old.get(&child)).copied()
    }
    pub fn take(&mut self, child: Pid) -> Option<Fork> {
        self.young.remove(&child).or_else(|| self.old.remove(&child))
    }
}

/// What waits for the tick.
#[derive(Debug, Default)]
pub(super) struct Pending {
    execs: VecDeque<Pid>,
    exits: Vec<ProcessKey>,
    /// Processes that mapped code since the last tick: it may be a runtime's.
    mapped: Vec<Pid>,
    /// Programs read because of an exec since the last tick: of who is not Spark's, and of Spark's.
    reads: [usize; 2],
    /// Where the round of checks goes on.
    round: Vec<ProcessKey>,
    /// Processes of which events were lost: read again as soon as they are sampled, checked before the round goes on.
    pub(super) suspects: VecDeque<ProcessKey>,
}

impl Registry {
    /// Takes in an exec, fork or exit.
    pub fn on_task(&mut self, event: &RawTask) {
        let pid = event.pid;
        match event.event {
            TaskEvent::Fork { parent_pid, .. } if parent_pid != pid => {
                // Whoever had the pid before is gone, unless a scan was faster than this event.
                if let Some(key) = self.by_pid.get(&pid).copied() {
                    if !self.check(key) {
                        return;
                    }
                    self.by_pid.remove(&pid);
                }
                self.forks.note(pid, parent_pid);
            }
            TaskEvent::Fork { .. } => {}
            TaskEvent::Exec => self.on_exec(pid),
            // A thread; a main thread may end before the others, so /proc is asked at the tick.
            TaskEvent::Exit if event.tid == pid => {
                if let Some(key) = self.by_pid.get(&pid)
                    && self.pending.exits.len() < MAX_PENDING
                {
                    self.pending.exits.push(*key);
                }
            }
            TaskEvent::Exit => {}
        }
    }

    /// Code was mapped: when the process is no JVM yet it may have become one, or another runtime's.
    pub fn on_mmap(&mut self, pid: Pid) {
        let known = self.by_pid.get(&pid).and_then(|k| self.entries.get(k));
        if known.is_some_and(|e| !e.process.is_jvm() && !e.process.exited)
            && self.pending.mapped.last() != Some(&pid)
            && self.pending.mapped.len() < MAX_PENDING
        {
            self.pending.mapped.push(pid);
        }
    }

    /// Events of a user's processes were lost: each of them may be another program by now, or gone and its pid another's.
    /// They are looked at with the next ticks, and all but Spark's are read again when they are sampled, at the user's own
    /// cost.
    pub fn events_lost(&mut self, uid: u32) {
        let of_user =
            self.entries.iter_mut().filter(|(_, e)| e.process.tenant.uid == uid && !e.process.exited);
        for (key, entry) in of_user {
            entry.stale |= !entry.process.tenant.spark;
            if !std::mem::replace(&mut entry.suspect, true) {
                self.pending.suspects.push_back(*key);
            }
        }
    }

    fn on_exec(&mut self, pid: Pid) {
        self.forks.exec(pid);
        if let Some(entry) = self.by_pid.get(&pid).and_then(|k| self.entries.get_mut(k)) {
            entry.stale = true;
        }
        // What Spark's processes start does not wait behind a compile farm: a Python daemon forks its workers at once.
        let sparks = usize::from(self.tenant(pid).spark);
        if let Some(reads) = self.pending.reads.get_mut(sparks)
            && *reads < self.config.limits.exec_reads
        {
            *reads += 1;
            self.current(pid, MAX_ANCESTORS);
        } else if self.pending.execs.len() < MAX_PENDING {
            self.counters.execs_deferred += 1;
            self.pending.execs.push_back(pid);
        } else {
            self.counters.execs_dropped += 1;
        }
    }

    /// Once a second: late knowledge, exits, and what events may have missed.
    pub fn tick(&mut self) -> Vec<Relabel> {
        self.tick += 1;
        if self.tick.is_multiple_of(FORK_TICKS) {
            self.forks.rotate();
        }
        self.read_deferred();
        self.read_late();
        self.check_exits();
        self.look_for_runtimes();
        self.expire();
        self.take_answers();
        let relabels = if std::mem::take(&mut self.dirty) { self.settle_all() } else { Vec::new() };
        self.ask();
        self.look_for_clients();
        self.publish_places();
        self.counters.relabels += relabels.len() as u64;
        relabels
    }

    fn read_deferred(&mut self) {
        self.pending.reads = [0; 2];
        for _ in 0..self.config.limits.exec_reads {
            let Some(pid) = self.pending.execs.pop_front() else { break };
            self.current(pid, MAX_ANCESTORS);
        }
    }

    /// Checks the processes whose end was told, and a part of all others: exit events may be lost.
    fn check_exits(&mut self) {
        for key in std::mem::take(&mut self.pending.exits) {
            if !self.check(key) {
                // Its main thread ended and others live on: asked again.
                self.pending.exits.push(key);
            }
        }
        for _ in 0..self.config.limits.checks {
            let Some(key) = self.pending.suspects.pop_front() else { break };
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.suspect = false;
            }
            self.check(key);
        }
        if self.pending.round.is_empty() {
            self.pending.round = self.entries.keys().copied().collect();
        }
        let share = (self.entries.len() / ROUND_TICKS).max(LEAST_CHECKS).min(self.config.limits.checks);
        for _ in 0..share {
            let Some(key) = self.pending.round.pop() else { break };
            self.check(key);
        }
    }

    /// Whether a process has ended (zombies have), or is not known any more. One that goes by another
    /// name than when it was read is read again: its exec came while it was read, or the event was lost.
    fn check(&mut self, key: ProcessKey) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return true };
        if entry.process.exited || key.pid == 0 {
            return true;
        }
        let ended = match read_stat(&self.root, key.pid) {
            Ok(stat) => {
                entry.stale |= *stat.comm != *entry.process.comm;
                stat.start_ticks != key.start_ticks || stat.ended()
            }
            Err(error) => error == ReadError::Gone,
        };
        if ended {
            entry.exit();
        }
        ended
    }

    /// Looks whether a `java`, or who mapped code since the last look, runs a runtime now.
    pub fn look_for_runtimes(&mut self) {
        let mut keys: Vec<ProcessKey> = std::mem::take(&mut self.pending.mapped)
            .iter()
            .filter_map(|pid| self.by_pid.get(pid).copied())
            .collect();
        let starting =
            self.entries.iter().filter(|(_, e)| e.may_become_jvm() && e.seen.elapsed() < JVM_STARTS_WITHIN);
        keys.extend(starting.map(|(key, _)| *key));
        keys.sort_unstable();
        keys.dedup();
        self.looks += 1;
        for key in self.fair_looks(keys) {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.looked = self.looks;
            }
            self.recheck_runtime(key);
        }
    }

    /// As many as may be looked at, of each tenant those that were not for longest: one who starts hundreds of
    /// `java` that never become a JVM keeps nobody else's from being found.
    fn fair_looks(&self, mut keys: Vec<ProcessKey>) -> Vec<ProcessKey> {
        let limit = self.config.limits.checks;
        if keys.len() > limit {
            let of = |key: &ProcessKey| {
                self.entries.get(key).map_or((0, Tenant::default()), |e| (e.looked, e.process.tenant))
            };
            let mut excess = Excess::over(limit, keys.iter().map(|key| (of(key).1, 1)));
            keys.sort_by_key(|key| std::cmp::Reverse(of(key).0));
            keys.retain(|key| !excess.take(&of(key).1, 1));
        }
        keys
    }

    fn expire(&mut self) {
        let (now, grace): (Instant, Duration) = (Instant::now(), self.config.limits.exit_grace);
        let old = |at: Instant| now.duration_since(at) >= grace;
        let keys: Vec<ProcessKey> = self
            .entries
            .iter()
            .filter(|(_, e)| e.process.exited && e.exited_at.is_some_and(old))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.forget(key);
        }
        shrink(&mut self.entries);
        shrink(&mut self.by_pid);
    }
}
