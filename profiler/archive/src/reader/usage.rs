//! How reading an archive goes, for the status and the metrics.
//!
//! In: the cache's and the lists' counters, objects that were set aside. Out: [`ReaderUsage`]. Limits: the last
//! [`MAX_LISTED`] objects set aside are named; [`MAX_ASIDE`] are passed over, after which all are tried again.

use super::super::catalog::start_of;
use super::super::heartbeat::{GONE, State, at};
use super::{Reader, layout};
use emberscope_model::{MissingPart, TimeRange, WallTime};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Names that the status shows.
const MAX_LISTED: usize = 20;
/// Objects that are passed over.
const MAX_ASIDE: usize = 20_000;
/// When what was bad is tried again: it may have been put anew.
const AGAIN: Duration = Duration::from_secs(600);

/// What is kept of an archive, and what failed since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReaderUsage {
    /// URL of the archive.
    pub url: String,
    /// Hours in which blocks begin.
    pub hours: usize,
    /// Seconds since the list of hours was read; None: never.
    pub list_age_seconds: Option<f64>,
    /// Lists that could not be read, since the start.
    pub list_failures: u64,
    /// What fails now; None while all goes well.
    pub failing: Option<String>,
    /// Blocks in the cache.
    pub cached_blocks: usize,
    /// Bytes of files in the cache.
    pub cached_bytes: u64,
    /// Bytes of memory of what was read of blocks and open parts.
    pub memory_bytes: usize,
    /// Files brought since the start.
    pub fetched: u64,
    /// Bytes of those files.
    pub fetched_bytes: u64,
    /// Blocks that went because others needed the room.
    pub evicted: u64,
    /// Objects that are bad, since the start.
    pub set_aside: u64,
    /// The last of those objects, and what is wrong with each.
    pub set_aside_names: Vec<(String, String)>,
    /// Nodes with a heartbeat in the last day, by how they are, in the order of [`State::ALL`].
    pub nodes: [u64; State::ALL.len()],
    /// Some of those that are not well: the node, how it is, its last heartbeat by the object store's clock.
    pub unwell: Vec<(String, State, WallTime)>,
}

/// An object that is passed over.
#[derive(Debug)]
struct Bad {
    since: Instant,
    part: MissingPart,
}

/// Objects that were set aside, by key ([`super::Wanted::key`]).
#[derive(Debug, Default)]
pub(super) struct Aside {
    keys: HashMap<String, Bad>,
    count: u64,
    names: VecDeque<(String, String)>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Names and counts.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hour that a key has in it ([`super::Wanted::key`]); all time where it has none.
fn hour_of(key: &str) -> TimeRange {
    let hour = key.rsplit('/').find_map(|part| start_of(layout::hour(part)));
    match hour {
        Some(from) => TimeRange { from, until: from.plus(Duration::from_secs(3600)) },
        None => TimeRange { from: WallTime(0), until: WallTime(u64::MAX) },
    }
}

impl Aside {
    /// Takes out what was set aside.
    pub fn keep<T>(&self, all: &mut Vec<T>, key: impl Fn(&T) -> String) {
        if !self.keys.is_empty() {
            all.retain(|one| !self.has(&key(one)));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// What is passed over now.
    pub fn get(&self, key: &str) -> Option<&MissingPart> {
        self.keys.get(key).filter(|bad| bad.since.elapsed() < AGAIN).map(|bad| &bad.part)
    }

    /// Passes over an object. Without a range it is that of the hour in its name.
    pub fn add(&mut self, key: &str, range: Option<TimeRange>, says: &str) {
        if self.keys.len() >= MAX_ASIDE {
            self.keys.clear();
        }
        let part = MissingPart::new(key, range.unwrap_or_else(|| hour_of(key)), says);
        let before = self.keys.insert(key.to_owned(), Bad { since: Instant::now(), part });
        if before.is_some_and(|bad| bad.since.elapsed() < AGAIN) {
            return;
        }
        tracing::warn!(object = key, says, "set aside: its windows are not in any answer");
        self.count += 1;
        if self.names.len() >= MAX_LISTED {
            self.names.pop_front();
        }
        self.names.push_back((key.to_owned(), says.to_owned()));
    }
}

impl Reader {
    /// What is kept and what failed. May wait for a list that is being read.
    pub fn reading(&self) -> ReaderUsage {
        let health = self.runtime.block_on(self.catalog.health());
        let (cached_blocks, cached_bytes, memory) = self.cache.usage();
        let (nodes, unwell) = self.runtime.block_on(self.nodes());
        let aside = lock(&self.aside);
        ReaderUsage {
            url: self.remote.url().to_owned(),
            hours: health.hours,
            list_age_seconds: health.age.map(|age| age.as_secs_f64()),
            list_failures: health.failures,
            failing: health.failing,
            cached_blocks,
            cached_bytes,
            memory_bytes: memory + self.open.bytes(),
            fetched: self.cache.fetched.load(Ordering::Relaxed),
            fetched_bytes: self.cache.fetched_bytes.load(Ordering::Relaxed),
            evicted: self.cache.evicted.load(Ordering::Relaxed),
            set_aside: aside.count,
            set_aside_names: aside.names.iter().cloned().collect(),
            nodes,
            unwell,
        }
    }

    async fn nodes(&self) -> ([u64; State::ALL.len()], Vec<(String, State, WallTime)>) {
        let (mut nodes, mut unwell) = ([0; State::ALL.len()], Vec::new());
        let now = WallTime::now();
        for beat in self.catalog.heartbeats().await.iter() {
            let (put, state) = (at(beat.put_ms), beat.state(now));
            if put.plus(GONE) < now {
                continue;
            }
            if let Some(count) = nodes.get_mut(state as usize) {
                *count += 1;
            }
            if state != State::Live && unwell.len() < MAX_LISTED {
                unwell.push((layout::unescaped(&beat.host), state, put));
            }
        }
        (nodes, unwell)
    }
}
