//! How reading an archive goes, for the status and the metrics.
//!
//! In: the cache's and the lists' counters, objects that were set aside. Out: [`ReaderUsage`]. Limits: the last
//! [`MAX_LISTED`] objects set aside are named; [`MAX_ASIDE`] are passed over, after which all are tried again. A question has
//! sixteen tries: a node whose objects cost some of them is passed over, for the hour ([`MAX_OF_HOUR`]) or as a whole
//! ([`MAX_OF_NODE`]).

use super::super::catalog::{ALL_TIME, start_of};
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
/// Objects of a node's hour that cost a question a try each, until all of that node's hour is passed over.
const MAX_OF_HOUR: usize = 2;
/// Such objects of a node, until all of that node is passed over.
const MAX_OF_NODE: usize = 6;

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
    /// Objects that are bad and lists that were read without something, since the start.
    pub set_aside: u64,
    /// The last of those objects, what lists are without now, and what is wrong with each.
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
    /// Whether a question began anew because of it.
    struck: bool,
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
        None => ALL_TIME,
    }
}

/// What else a node has in an object's hour, and all that the node has: keys, with which their objects' keys begin, and how
/// many bad ones each may have. None: the object is of no one node.
fn groups(key: &str) -> Option<[(String, usize); 2]> {
    let mut parts = key.splitn(3, '/');
    let (kind, host, name) = (parts.next()?, parts.next()?, parts.next()?);
    let hour = format!("{kind}/{host}/{}", layout::hour(name));
    let node = format!("{kind}/{host}/");
    matches!(kind, "nodes" | "open").then(|| [(hour, MAX_OF_HOUR), (node, MAX_OF_NODE)])
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

    /// What is passed over now and has this object: all of its node, all of its node's hour, or the object alone.
    pub fn get(&self, key: &str) -> Option<&MissingPart> {
        let alone = |key: &str| self.keys.get(key).filter(|bad| bad.since.elapsed() < AGAIN);
        let wider = groups(key).and_then(|[(hour, _), (node, _)]| alone(&node).or_else(|| alone(&hour)));
        wider.or_else(|| alone(key)).map(|bad| &bad.part)
    }

    /// Passes over an object. Without a range it is that of the hour in its name.
    pub fn add(&mut self, key: &str, range: Option<TimeRange>, says: &str) {
        if self.keys.len() >= MAX_ASIDE {
            self.keys.clear();
        }
        let part = MissingPart::new(key, range.unwrap_or_else(|| hour_of(key)), says);
        let before = self.keys.insert(key.to_owned(), Bad { since: Instant::now(), part, struck: false });
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

    /// A question begins anew because of an object that is passed over now. After some of these their node's hour is, or all
    /// of their node: no node takes all the tries that a question has.
    pub fn strike(&mut self, key: &str, says: &str) {
        if let Some(bad) = self.keys.get_mut(key) {
            bad.struck = true;
        }
        let Some([(hour, of_hour), (node, of_node)]) = groups(key) else { return };
        for (group, most, range) in [(hour, of_hour, None), (node, of_node, Some(ALL_TIME))] {
            let struck = self.keys.iter().filter(|(key, bad)| {
                bad.struck && bad.since.elapsed() < AGAIN && key.starts_with(group.as_str())
            });
            if struck.count() >= most {
                self.add(
                    &group,
                    range,
                    &format!("passed over: {most} objects of it are bad, the last: {says}"),
                );
            }
        }
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
            set_aside: aside.count + health.incomplete,
            set_aside_names: aside.names.iter().cloned().chain(health.left_out).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(node: &str, hour: usize, number: usize) -> String {
        format!("nodes/{node}/20231114T{hour:02}0000Z-{number:012}.00000000")
    }

    fn bad(aside: &mut Aside, key: &str) {
        assert!(!aside.has(key), "{key} is not tried");
        aside.add(key, None, "bad");
        aside.strike(key, "bad");
    }

    #[test]
    fn a_nodes_hour_takes_two_tries_and_a_node_six() {
        let mut aside = Aside::default();
        bad(&mut aside, &key("b", 9, 1));
        assert!(!aside.has(&key("b", 9, 3)));
        bad(&mut aside, &key("b", 9, 2));
        let part = aside.get(&key("b", 9, 3)).unwrap();
        assert_eq!(
            (part.name.as_str(), Some(part.range.from)),
            ("nodes/b/20231114T09", start_of("20231114T09"))
        );
        assert_eq!(aside.get(&key("b", 9, 1)).unwrap().name, part.name);
        (10..14).for_each(|hour| bad(&mut aside, &key("b", hour, 1)));
        let part = aside.get(&key("b", 20, 1)).unwrap();
        assert_eq!((part.name.as_str(), part.range), ("nodes/b/", ALL_TIME));
        for other in [key("bb", 9, 3), key("a", 9, 3), "open/b/20231114T200000Z-000000000001".to_owned()] {
            assert!(!aside.has(&other), "{other}");
        }
    }

    #[test]
    fn what_costs_no_try_is_passed_over_alone() {
        let mut aside = Aside::default();
        (0..100).for_each(|number| aside.add(&key("b", 9, number), None, "bad"));
        assert!(aside.has(&key("b", 9, 99)) && !aside.has(&key("b", 9, 100)));
    }
}
