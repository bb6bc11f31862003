//! What is out, who is left alone, who has used how much: all under one lock, under which nothing waits.

use super::about::{About, Key};
use super::{AHEAD, Limits, Turned, start_thread};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long somebody is left alone whose job was given up, the first time and at most.
pub(super) const BANS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Who is remembered of these; beyond, those whose time is over go, then all.
const MAX_BANS: usize = 4096;
/// Users and processes whose CPU time is remembered; beyond, those who owe nothing go, then all.
const MAX_PAYERS: usize = 8192;

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

/// Who pays for the CPU time of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Payer {
    User(u32),
    Process(PathBuf),
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
    /// When the CPU time that the jobs of each took is paid for.
    paid: HashMap<Payer, Instant>,
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
            paid: HashMap::new(),
            next: 0,
            waited: None,
            counts: ErrandCounts::default(),
        }
    }

    /// Whether who is read was left alone before.
    pub fn is_known(&self, about: &About) -> bool {
        self.bans.contains_key(&about.key)
    }

    /// Begins a job: the number of its thread and what that thread takes jobs from. It is out from now on.
    ///
    /// # Errors
    /// [`Turned::Banned`]: who is read is left alone. [`Turned::Slow`], [`Turned::UserBusy`], [`Turned::Busy`]: too
    /// many jobs for the same, for its user, or in all are out. [`Turned::Budget`]: too much CPU time was taken.
    /// [`Turned::NoThread`]: none can be started.
    pub fn begin(&mut self, about: &About, start: Option<u64>, now: Instant) -> Result<(u64, Queue), Turned> {
        self.give_up(now);
        self.may_begin(about, start, now)?;
        let (number, queue) = match self.idle.pop() {
            Some(idle) => idle,
            None if self.out.len() >= self.limits.threads => return Err(Turned::Busy),
            None => {
                self.next += 1;
                (self.next, start_thread(self.limits.thread)?)
            }
        };
        self.counts.begun += 1;
        self.out.insert(number, Out { about: about.clone(), since: now, given_up: false });
        Ok((number, queue))
    }

    fn may_begin(&mut self, about: &About, start: Option<u64>, now: Instant) -> Result<(), Turned> {
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
        if self.out.values().filter(|out| out.about.uid == about.uid).count() >= self.limits.of_user {
            return Err(Turned::UserBusy);
        }
        let owes = |(payer, share, ahead): (Payer, f64, Duration)| {
            self.paid.get(&payer).is_some_and(|paid| *paid > now + ahead.div_f64(share))
        };
        if self.payers(about).into_iter().any(owes) { Err(Turned::Budget) } else { Ok(()) }
    }

    /// Who pays for a job, which share of a core he has, and what he may take ahead.
    fn payers(&self, about: &About) -> [(Payer, f64, Duration); 2] {
        let Limits { user_share, user_ahead, process_share, process_ahead, .. } = self.limits;
        [
            (Payer::User(about.uid), user_share, user_ahead),
            (Payer::Process(about.dir.clone()), process_share, process_ahead),
        ]
    }

    pub fn pay(&mut self, about: &About, used: Duration, now: Instant) {
        if self.paid.len() + 2 > MAX_PAYERS {
            self.paid.retain(|_, paid| *paid > now);
            if self.paid.len() + 2 > MAX_PAYERS {
                self.paid.clear();
            }
        }
        for (payer, share, _) in self.payers(about) {
            let paid = self.paid.entry(payer).or_insert(now);
            *paid = (*paid).max(now) + used.div_f64(share);
        }
    }

    /// A thread is back: it takes the next job, unless there are enough by now.
    pub fn back(&mut self, number: u64, queue: Queue, used: Duration) {
        let now = Instant::now();
        if let Some(out) = self.out.remove(&number) {
            self.pay(&out.about, used, now);
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

    /// The caller went on after so long.
    pub fn late(&mut self, waited: Duration, now: Instant) {
        self.counts.late += 1;
        let from = self.waited.map_or(now, |paid| paid.max(now));
        self.waited = Some(from + waited.div_f64(self.limits.waiting));
    }

    /// How long a caller may wait now.
    pub fn may_wait(&self, now: Instant) -> Duration {
        if self.limits.waiting >= 1.0 {
            return Duration::MAX;
        }
        let owed = self.waited.map_or(Duration::ZERO, |paid| paid.saturating_duration_since(now));
        AHEAD.saturating_sub(owed.mul_f64(self.limits.waiting))
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
