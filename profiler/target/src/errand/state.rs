//! What is out, who is left alone, who has used how much: all under one lock, under which nothing waits.

use super::about::{About, Key};
use super::debts::Debts;
use super::limits::AHEAD;
use super::shares::half;
use super::{Limits, Turned, start_thread};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where callers wait as long as they like, waiting for a job that is no longer than this costs nothing: on a crowded machine
/// each job waits for a CPU.
pub(super) const FREE: Duration = Duration::from_millis(100);
/// How long somebody is left alone whose job was given up, the first time and at most.
pub(super) const BANS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Who is remembered of these; beyond, those whose time is over go, then all.
const MAX_BANS: usize = 4096;

pub(super) type Job = Box<dyn FnOnce() + Send>;
pub(super) type Queue = SyncSender<Job>;

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job that was given up and is not back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// What the job reads.
    pub about: About,
    /// For how long the job is out.
    pub since: Duration,
}

/// A process or file system that is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// What did not come back.
    pub about: About,
    /// For how long it is left alone yet.
    pub left: Duration,
}

/// Counts since the start; `stuck` and `alone` are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrandCounts {
    /// Jobs that were begun.
    pub begun: u64,
    /// Jobs that were not back when their caller went on.
    pub late: u64,
    /// Jobs that were given up, by [`super::What::slug`].
    pub given_up: BTreeMap<&'static str, u64>,
    /// Jobs that were not begun or panicked, by [`Turned::slug`].
    pub turned: BTreeMap<&'static str, u64>,
    /// Threads there are now, stuck ones included.
    pub threads: usize,
    /// Jobs that were given up and are not back yet.
    pub stuck: Vec<Stuck>,
    /// Who is left alone now.
    pub alone: Vec<Alone>,
}

impl ErrandCounts {
    /// The counts of two pools together.
    pub fn and(mut self, other: Self) -> Self {
        self.begun += other.begun;
        self.late += other.late;
        self.threads += other.threads;
        other.given_up.into_iter().for_each(|(what, n)| *self.given_up.entry(what).or_default() += n);
        other.turned.into_iter().for_each(|(why, n)| *self.turned.entry(why).or_default() += n);
        self.stuck.extend(other.stuck);
        self.alone.extend(other.alone);
        self
    }
}

/// What is found out of a process before a job of it is begun, where that matters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// When it began: another process may have the pid of one that is left alone.
    pub start: Option<u64>,
    /// Its cgroup: its user took much.
    pub group: Option<u64>,
}

struct Out {
    about: About,
    since: Instant,
    given_up: bool,
}

struct Ban {
    about: About,
    /// When the process began, by which it is told from a later one with its pid.
    start: Option<u64>,
    until: Instant,
    pause: Duration,
}

pub(super) struct State {
    pub limits: Limits,
    idle: Vec<(u64, Queue)>,
    out: HashMap<u64, Out>,
    bans: HashMap<Key, Ban>,
    pub debts: Debts,
    next: u64,
    /// When the waiting for late jobs is paid for.
    waited: Option<Instant>,
    counts: ErrandCounts,
}

impl State {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            idle: Vec::new(),
            out: HashMap::new(),
            bans: HashMap::new(),
            debts: Debts::default(),
            next: 0,
            waited: None,
            counts: ErrandCounts::default(),
        }
    }

    /// Whether who is read was left alone before; whether its user took much.
    pub fn matters(&self, about: &About, now: Instant) -> (bool, bool) {
        (self.bans.contains_key(&about.key), self.debts.are_high(&self.limits, about, now))
    }

    /// Begins a job: the number of its thread and what that thread takes jobs from. It is out from now on.
    ///
    /// # Errors
    /// [`Turned::Banned`]: who is read is left alone. [`Turned::Slow`], [`Turned::UserBusy`], [`Turned::Busy`]: too
    /// many jobs for the same, for its user, or in all are out. [`Turned::Budget`]: too much time was taken.
    /// [`Turned::NoThread`]: none can be started.
    pub fn begin(&mut self, about: &About, seen: Seen, now: Instant) -> Result<(u64, Queue), Turned> {
        self.give_up(now);
        self.may_begin(about, seen, now)?;
        let (number, queue) = match self.idle.pop() {
            Some(idle) => idle,
            None => {
                self.next += 1;
                (self.next, start_thread(self.limits.thread)?)
            }
        };
        self.counts.begun += 1;
        self.out.insert(number, Out { about: about.clone(), since: now, given_up: false });
        Ok((number, queue))
    }

    fn may_begin(&mut self, about: &About, seen: Seen, now: Instant) -> Result<(), Turned> {
        let Seen { start, group } = seen;
        if let Some(ban) = self.bans.get(&about.key) {
            let another = matches!(about.key, Key::Process(_)) && start.is_some() && ban.start != start;
            if another {
                self.bans.remove(&about.key);
            } else if ban.until > now {
                return Err(Turned::Banned);
            }
        }
        let same = || self.out.values().filter(|out| out.about.key == about.key);
        if same().count() >= self.limits.of_key || same().any(|out| now - out.since >= self.limits.slow_after)
        {
            return Err(Turned::Slow);
        }
        self.has_thread(about.payer)?;
        if self.debts.are_too_high(&self.limits, about, group, now) { Err(Turned::Budget) } else { Ok(()) }
    }

    /// Whether there is a thread for one more job of this user's: what is stuck costs him, and others only when more is stuck
    /// than is replaced.
    fn has_thread(&self, payer: u32) -> Result<(), Turned> {
        let Limits { threads, stuck, .. } = self.limits;
        let count = |mine: bool, given_up: bool| {
            let of = |out: &&Out| (out.about.payer == payer) == mine && out.given_up == given_up;
            self.out.values().filter(of).count()
        };
        let (working, others) = (count(true, false), count(false, false));
        let (my_stuck, others_stuck) = (count(true, true), count(false, true));
        let left = threads.saturating_sub((my_stuck + others_stuck).saturating_sub(stuck));
        // What is out now may be stuck later.
        if working >= half(left, others) || working + my_stuck >= half(stuck, others_stuck) {
            return Err(Turned::UserBusy);
        }
        if working + others >= left { Err(Turned::Busy) } else { Ok(()) }
    }

    /// A thread is back: it takes the next job, unless there are enough by now. `used`: CPU time, and whose cgroup's.
    pub fn back(&mut self, number: u64, queue: Queue, (used, group): (Duration, Option<u64>)) {
        let now = Instant::now();
        if let Some(out) = self.out.remove(&number) {
            self.debts.work(&self.limits, &out.about, group, used, now);
            if out.given_up
                && matches!(out.about.key, Key::Device(..))
                && let Some(ban) = self.bans.get_mut(&out.about.key)
            {
                // Its server answers again; should it not, the next time is longer.
                ban.until = now;
            }
        }
        if self.idle.len() < self.limits.of_key {
            self.idle.push((number, queue));
        }
    }

    /// A thread that takes no job.
    pub fn lost(&mut self, number: u64) -> Turned {
        self.out.remove(&number);
        self.turn(Turned::NoThread)
    }

    /// Counts a job that was not begun, by its reason.
    pub fn turn(&mut self, turned: Turned) -> Turned {
        *self.counts.turned.entry(turned.slug()).or_default() += 1;
        turned
    }

    /// The caller waited for so long, beyond the CPU time of the job; `late`: and went on without it.
    pub fn waited(
        &mut self,
        about: &About,
        group: Option<u64>,
        (waited, late): (Duration, bool),
        now: Instant,
    ) {
        self.counts.late += u64::from(late);
        if self.limits.waiting >= 1.0 {
            if waited > FREE {
                self.debts.wait(&self.limits, about, group, waited, now);
            }
        } else if late {
            let from = self.waited.map_or(now, |paid| paid.max(now));
            self.waited = Some(from + waited.div_f64(self.limits.waiting));
            self.debts.wait(&self.limits, about, None, waited, now);
        }
    }

    /// How long a caller may wait for a job of this user's now: of what is left for all half of what the others leave.
    pub fn may_wait(&self, about: &About, now: Instant) -> Duration {
        if self.limits.waiting >= 1.0 {
            return Duration::MAX;
        }
        let owed = self.waited.map_or(Duration::ZERO, |paid| paid.saturating_duration_since(now));
        let owed = owed.mul_f64(self.limits.waiting);
        let own = self.debts.waits(&self.limits, about, now).min(owed);
        (AHEAD.saturating_sub(owed - own) / 2).saturating_sub(own)
    }

    /// Gives up the jobs that are out for too long.
    fn give_up(&mut self, now: Instant) {
        let after = self.limits.stuck_after;
        for out in self.out.values_mut().filter(|out| !out.given_up && now - out.since >= after) {
            out.given_up = true;
            let about = &out.about;
            *self.counts.given_up.entry(about.what.slug()).or_default() += 1;
            let before = self.bans.get(&about.key).map(|ban| ban.pause * 2);
            let pause = before.unwrap_or(BANS.0).min(BANS.1);
            let (pid, uid, what, path) = (about.pid(), about.uid, about.what.slug(), about.path.as_deref());
            tracing::warn!(pid, uid, what, path = ?path, ?pause, "a read does not come back: it is left alone for a time");
            let start = about.start();
            let ban = Ban { about: about.clone(), start, until: now + pause, pause };
            self.bans.insert(about.key.clone(), ban);
        }
        if self.bans.len() > MAX_BANS {
            self.bans.retain(|_, ban| ban.until > now);
            if self.bans.len() > MAX_BANS {
                self.bans.clear();
            }
        }
        // Whoever behaved for as long as he is left alone at most begins anew.
        self.bans.retain(|_, ban| ban.until + BANS.1 > now);
    }

    pub fn counts(&mut self, now: Instant) -> ErrandCounts {
        self.give_up(now);
        let stuck = self.out.values().filter(|out| out.given_up);
        let mut stuck: Vec<_> =
            stuck.map(|out| Stuck { about: out.about.clone(), since: now - out.since }).collect();
        stuck.sort_by_key(|one| std::cmp::Reverse(one.since));
        let alone = self.bans.values().filter(|ban| ban.until > now);
        let mut alone: Vec<_> =
            alone.map(|ban| Alone { about: ban.about.clone(), left: ban.until - now }).collect();
        alone.sort_by_key(|one| std::cmp::Reverse(one.left));
        let threads = self.idle.len() + self.out.len();
        ErrandCounts { stuck, alone, threads, ..self.counts.clone() }
    }

    #[cfg(test)]
    pub fn end_ban(&mut self, key: &Key) -> Duration {
        let ban = self.bans.get_mut(key).expect("a ban");
        ban.until = Instant::now();
        ban.pause
    }
}
