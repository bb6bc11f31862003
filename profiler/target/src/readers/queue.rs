//! Whose job is done next.
//!
//! In: jobs, each of a process and of the user who answers for it. Out: the one whose turn it is: of the user who kept readers
//! for the shortest time, as they keep them one at a time. A user has at most half of the readers, and of the places of a door,
//! that others leave.

use super::Class;
use crate::errand::half;
use emberscope_model::ProcessKey;
use emberscope_supervise::Beat;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads. Jobs mostly wait for a target's memory or for a JVM's answer.
pub(super) const THREADS: usize = 4;
/// Threads that wait for answers of processes, at most.
pub(super) const ASKING: usize = 2;
/// Jobs of a door that may wait: half of them are more processes of a runtime than a user has on a node.
pub(super) const MAX_WAITING: usize = 512;
/// Users whose use of the readers is remembered; beyond, those who used no more than others go, then all.
const MAX_USERS: usize = 4096;

pub(super) type Work = Box<dyn FnOnce(&Beat) + Send>;

pub(super) struct Job {
    pub key: ProcessKey,
    /// The user who answers for the process.
    pub user: u32,
    pub class: Class,
    pub work: Work,
}

#[derive(Default)]
pub(super) struct State {
    pub queue: VecDeque<Job>,
    /// Jobs that are done now: one of a process.
    busy: HashMap<ProcessKey, (u32, Class)>,
    /// How long each user kept readers, counted from `clock` when he first came.
    used: HashMap<u32, Duration>,
    /// What the user of the job that was begun last had used: who comes now begins there.
    clock: Duration,
    pub threads: usize,
    pub over: bool,
}

impl State {
    /// Adds a job.
    pub fn add(&mut self, job: Job) {
        let used = self.used.entry(job.user).or_default();
        *used = self.clock.max(*used);
        self.queue.push_back(job);
    }

    /// What a user used, as far as it counts.
    fn used(&self, user: u32) -> Duration {
        self.used.get(&user).copied().unwrap_or(self.clock)
    }

    /// The job whose turn it is: of those who used least the first.
    pub fn next(&mut self) -> Option<Job> {
        let mut seen = HashSet::new();
        let mut may = |job: &Job| {
            // What comes behind a job of the same process waits for it.
            seen.insert(job.key) && !self.busy.contains_key(&job.key) && self.has_reader(job)
        };
        let jobs = self.queue.iter().enumerate();
        let turns = jobs.filter(|(_, job)| may(job)).map(|(at, job)| (self.used(job.user), at));
        let (used, at) = turns.min()?;
        let job = self.queue.remove(at)?;
        self.clock = self.clock.max(used);
        self.busy.insert(job.key, (job.user, job.class));
        Some(job)
    }

    /// Whether there is a reader for this job: its user has at most half of what others leave, also of those that ask.
    fn has_reader(&self, job: &Job) -> bool {
        let count = |mine: bool, asks: bool| {
            let of = |(user, class): &&(u32, Class)| {
                (*user == job.user) == mine && (!asks || *class == Class::Asking)
            };
            self.busy.values().filter(of).count()
        };
        let within = |room: usize, asks: bool| {
            let (own, others) = (count(true, asks), count(false, asks));
            own + others < room && own < half(room, others)
        };
        within(THREADS, false) && (job.class != Class::Asking || within(ASKING, true))
    }

    /// A job of a process is done, and kept a reader for so long.
    pub fn done(&mut self, key: ProcessKey, took: Duration) {
        let Some((user, _)) = self.busy.remove(&key) else { return };
        if self.used.len() >= MAX_USERS {
            self.used.retain(|_, used| *used > self.clock);
            if self.used.len() >= MAX_USERS {
                self.used.clear();
            }
        }
        let used = self.used.entry(user).or_insert(self.clock);
        *used = used.saturating_add(took);
    }
}

/// Jobs of a door that are not done, by user.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<HashMap<u32, usize>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a place for a job of anybody's.
    pub fn have_room(&self) -> bool {
        self.lock().values().sum::<usize>() < MAX_WAITING
    }

    /// Takes a place for a job of this user's: he has at most half of those that others leave.
    pub fn take(&self, user: u32) -> bool {
        let mut waiting = self.lock();
        let all: usize = waiting.values().sum();
        let own = waiting.get(&user).copied().unwrap_or(0);
        let may = all < MAX_WAITING && own < half(MAX_WAITING, all - own);
        if may {
            waiting.insert(user, own + 1);
        }
        may
    }

    /// The job is done, or was not taken.
    pub fn give_back(&self, user: u32) {
        let mut waiting = self.lock();
        if let Some(own) = waiting.get_mut(&user) {
            *own -= 1;
            if *own == 0 {
                waiting.remove(&user);
            }
        }
    }
}
