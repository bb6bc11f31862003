//! Heartbeats: since when each thread has been busy with one thing, and when windows were last up to date.
//!
//! In: a mark when a thread begins with something and when it waits again, one atomic store each. Out: [`Health`]. Times
//! are of CLOCK_MONOTONIC (`Instant`), so that a step of the wall clock makes nothing late.

use super::faults;
use super::panics::{Panicked, attempt};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// From a window's end to its place in the store: a second of grace, three of waiting for names, and what a busy node
/// makes of it. Over it the daemon is unhealthy.
const WINDOW_LIMIT: Duration = Duration::from_secs(30);

/// What it means that a thread is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Nothing is sampled: the daemon is to be started anew.
    Vital,
    /// Something is missing (names, answers, copies); a restart would cost more than it mends.
    Degraded,
}

#[derive(Debug)]
struct Inner {
    thread: &'static str,
    limit: Duration,
    weight: Weight,
    /// Milliseconds since the registry was made, shifted left by one; the lowest bit says that it is busy.
    mark: AtomicU64,
    started: Instant,
}

impl Inner {
    fn put(&self, busy: bool) {
        self.mark.store(millis(self.started) << 1 | u64::from(busy), Relaxed);
    }

    fn busy_for(&self) -> Option<Duration> {
        let mark = self.mark.load(Relaxed);
        (mark & 1 == 1).then(|| Duration::from_millis(millis(self.started).saturating_sub(mark >> 1)))
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX >> 1)
}

/// A thread's own mark; the thread is no longer listed once this is dropped.
#[derive(Debug)]
pub struct Beat(Arc<Inner>);

impl Beat {
    /// The thread begins with something, or with the next thing.
    pub fn busy(&self) {
        self.0.put(true);
    }

    /// The thread waits for something to do.
    pub fn idle(&self) {
        self.0.put(false);
    }

    /// Does one thing, and survives its panic.
    ///
    /// # Errors
    /// [`Panicked`]: the job panicked. Whoever waits for it is told so; the thread goes on.
    pub fn work<T>(&self, job: impl FnOnce() -> T) -> Result<T, Panicked> {
        self.busy();
        let done = attempt(|| {
            faults::point(self.0.thread);
            job()
        });
        self.idle();
        done
    }
}

/// What a thread does now, and for how long it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// Its name, one of [`super::THREADS`].
    pub thread: &'static str,
    /// How long it has been busy with one thing; None: it waits for something to do.
    pub busy_for: Option<Duration>,
    /// After how long that is too long.
    pub limit: Duration,
    /// What it means when the thread is stuck.
    pub weight: Weight,
}

impl ThreadState {
    /// Whether the thread has been busy with one thing for too long.
    pub fn is_stuck(&self) -> bool {
        self.busy_for.is_some_and(|busy| busy > self.limit)
    }

    fn says(&self) -> String {
        let seconds = self.busy_for.unwrap_or_default().as_secs();
        format!("the thread {} has been stuck for {seconds} s", self.thread)
    }
}

/// How all of the process's threads do, and how late windows are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Each thread that beats, in the order in which they joined.
    pub threads: Vec<ThreadState>,
    /// Time since a window was stored; None: none was yet.
    pub last_window: Option<Duration>,
    /// Time since no window waited to be closed, named or stored; None: nothing samples here.
    pub current: Option<Duration>,
}

impl Health {
    /// Whether sampling goes on.
    ///
    /// # Errors
    /// A vital thread is stuck, or a window that is over was not stored for `WINDOW_LIMIT`: a sentence that says
    /// what, and since when.
    pub fn check(&self) -> Result<(), String> {
        let stuck = self.threads.iter().filter(|state| state.weight == Weight::Vital && state.is_stuck());
        let mut says: Vec<String> = stuck.map(ThreadState::says).collect();
        if let Some(late) = self.current.filter(|late| *late > WINDOW_LIMIT) {
            says.push(format!("no window was stored for {} s though one is over", late.as_secs()));
        }
        if says.is_empty() { Ok(()) } else { Err(format!("Sampling does not go on: {}.", says.join("; "))) }
    }

    /// What is missing while sampling goes on: a sentence for each thread that is stuck.
    pub fn degraded(&self) -> Vec<String> {
        let stuck = self.threads.iter().filter(|state| state.weight == Weight::Degraded && state.is_stuck());
        stuck.map(ThreadState::says).collect()
    }
}

/// All threads that beat.
#[derive(Debug)]
pub struct Beats {
    /// Those that ended are let go of at the next look. The list is as long as there are threads.
    threads: Mutex<Vec<Weak<Inner>>>,
    started: Instant,
    /// As in a thread's mark; 0: never.
    stored: AtomicU64,
    current: AtomicU64,
}

impl Default for Beats {
    fn default() -> Self {
        let (threads, started) = (Mutex::default(), Instant::now());
        Self { threads, started, stored: AtomicU64::new(0), current: AtomicU64::new(0) }
    }
}

impl Beats {
    /// A thread joins, idle. Stuck after `limit` with one thing.
    pub fn join(&self, thread: &'static str, limit: Duration, weight: Weight) -> Beat {
        let inner = Inner { thread, limit, weight, mark: AtomicU64::new(0), started: self.started };
        let inner = Arc::new(inner);
        inner.put(false);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| thread.strong_count() > 0);
        threads.push(Arc::downgrade(&inner));
        Beat(inner)
    }

    /// All windows that are over are stored; one was just now, or not.
    pub fn windows_are_current(&self, stored: bool) {
        let now = millis(self.started) << 1 | 1;
        self.current.store(now, Relaxed);
        if stored {
            self.stored.store(now, Relaxed);
        }
    }

    /// How all threads do now.
    pub fn health(&self) -> Health {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let state = |inner: Arc<Inner>| ThreadState {
            thread: inner.thread,
            busy_for: inner.busy_for(),
            limit: inner.limit,
            weight: inner.weight,
        };
        let since = |mark: &AtomicU64| match mark.load(Relaxed) {
            0 => None,
            mark => Some(Duration::from_millis(millis(self.started).saturating_sub(mark >> 1))),
        };
        Health {
            threads: threads.iter().filter_map(Weak::upgrade).map(state).collect(),
            last_window: since(&self.stored),
            current: since(&self.current),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    impl Beats {
        fn older(&mut self, by: Duration) {
            self.started = self.started.checked_sub(by).unwrap();
        }
    }

    fn state(weight: Weight, busy_for: Option<Duration>) -> ThreadState {
        ThreadState { thread: "sampler", busy_for, limit: SECOND * 15, weight }
    }

    #[test]
    fn a_stuck_thread_is_told_by_name_and_only_a_vital_one_is_unhealthy() {
        let busy = Some(SECOND * 16);
        let health = |weight, busy| Health { threads: vec![state(weight, busy)], ..Health::default() };
        let says = health(Weight::Vital, busy).check().unwrap_err();
        assert_eq!(says, "Sampling does not go on: the thread sampler has been stuck for 16 s.");
        assert_eq!(health(Weight::Degraded, busy).check(), Ok(()));
        assert_eq!(health(Weight::Degraded, busy).degraded().len(), 1);
        for fine in [None, Some(SECOND * 15)] {
            assert_eq!(health(Weight::Vital, fine).check(), Ok(()));
            assert!(health(Weight::Degraded, fine).degraded().is_empty());
        }
    }

    #[test]
    fn a_thread_is_busy_from_its_mark_and_gone_with_its_beat() {
        let beats = Beats::default();
        let beat = beats.join("push", SECOND, Weight::Degraded);
        let busy = || beats.health().threads.first().map(|state| state.busy_for.is_some());
        assert_eq!(busy(), Some(false));
        beat.busy();
        assert_eq!(busy(), Some(true));
        assert_eq!(beat.work(|| 7).ok(), Some(7));
        assert_eq!(busy(), Some(false), "it waits after its work");
        assert!(beat.work(|| panic!("no")).is_err());
        assert_eq!(busy(), Some(false), "after work that failed, too");
        drop(beat);
        assert_eq!(busy(), None);
    }

    #[test]
    fn windows_that_wait_for_too_long_are_unhealthy_and_an_idle_node_is_not() {
        let mut beats = Beats::default();
        assert_eq!(beats.health().check(), Ok(()), "nothing samples here");
        beats.windows_are_current(true);
        assert!(beats.health().last_window.is_some());
        // The marks stay where they were; the clock's zero moves.
        beats.older(WINDOW_LIMIT + SECOND);
        let says = beats.health().check().unwrap_err();
        assert!(says.contains("no window was stored for 31 s"), "{says}");
        beats.windows_are_current(false);
        assert_eq!(beats.health().check(), Ok(()), "nothing waits, and nothing was sampled");
        assert!(beats.health().last_window.is_some_and(|age| age > WINDOW_LIMIT));
    }
}
