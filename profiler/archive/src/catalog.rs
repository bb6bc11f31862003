//! What an archive holds, by lists that are read again every few seconds.
//!
//! In: the archive. Out: the hours there are, the blocks of an hour, the pieces of open parts, an application's hours
//! that are one block already. Each list is one request (or one a thousand names). A list that cannot be read is
//! answered as it was, and told; without one the question fails. What a list is without (`by_host`, names that are none of an
//! archive's) is told too.
//!
//! Limits: [`MAX_NAMES`] names a list, [`MAX_LISTS`] lists.

mod by_host;
mod hours;
mod names;

use super::heartbeat::Heartbeat;
use super::layout::{self, BlockName, ROOT};
use super::remote::{Remote, RemoteError};
use by_host::{ByHost, by_host};
use emberscope_model::{MissingPart, TimeRange, WallTime};
pub(super) use hours::{ALL_TIME, hour_of, hours_of, start_of, start_of_block};
use names::{NO_TIME, OpenParts, blocks_of, hours_within, parts_of, told};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names of a list: an hour of some ten thousand nodes.
const MAX_NAMES: usize = 200_000;
/// Lists that are kept; over it all are read again.
const MAX_LISTS: usize = 2000;
/// Lists of hours that are over change seldom: they are read again after that many times the usual.
const OLD: u32 = 6;
/// Parts left out of lists that the status names.
const MAX_TOLD: usize = 20;

/// An application's hour that was brought together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gathered {
    pub hour: String,
    /// `COUNT-CRC`: how many blocks it covers, and which.
    pub generation: String,
}

#[derive(Debug)]
struct Listed<T> {
    list: Arc<T>,
    read: Instant,
}

#[derive(Debug, Default)]
struct Lists {
    hours: Option<Listed<Vec<String>>>,
    blocks: HashMap<String, Listed<Vec<BlockName>>>,
    open: Option<Listed<OpenParts>>,
    apps: HashMap<String, Listed<Vec<Gathered>>>,
    heartbeats: Option<Listed<Vec<Heartbeat>>>,
    /// What each list was read without, by the name below which it lies.
    left_out: BTreeMap<String, Vec<MissingPart>>,
    /// Times that a list began to be without something.
    incomplete: u64,
    /// What failed last; None while all goes well.
    failing: Option<String>,
    failures: u64,
}

/// The lists that were read last. One question at a time reads them again; the others wait for it.
#[derive(Debug)]
pub(super) struct Catalog {
    remote: Remote,
    every: Duration,
    lists: tokio::sync::Mutex<Lists>,
}

/// Whether the lists can be read, for the status and the metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct CatalogHealth {
    /// The error of the last list, None while all goes well.
    pub failing: Option<String>,
    /// Lists that could not be read since the start.
    pub failures: u64,
    /// Time since the list of hours was read; None: never.
    pub age: Option<Duration>,
    /// Hours in that list.
    pub hours: usize,
    /// Some of what the lists were read without, and why.
    pub left_out: Vec<(String, String)>,
    /// Lists that were read without something, since the start.
    pub incomplete: u64,
}

fn fresh<T>(listed: Option<&Listed<T>>, age: Duration) -> Option<Arc<T>> {
    listed.filter(|listed| listed.read.elapsed() < age).map(|listed| listed.list.clone())
}

impl Lists {
    /// Keeps what a list that was read just now is without.
    fn tell(&mut self, below: &str, parts: Vec<MissingPart>) {
        let Some(first) = parts.first() else {
            self.left_out.remove(below);
            return;
        };
        if !self.left_out.contains_key(below) {
            let MissingPart { name, says, .. } = first;
            tracing::warn!(list = below, part = %name, %says, "left out of a list of the archive");
            self.incomplete += 1;
        }
        self.left_out.insert(below.to_owned(), parts);
    }

    /// Takes a list that was read, or the old one where it was not.
    fn take<T>(
        &mut self,
        read: Result<T, RemoteError>,
        old: Option<Arc<T>>,
    ) -> Result<Listed<T>, RemoteError> {
        match read {
            Ok(list) => {
                if self.failing.take().is_some() {
                    tracing::info!("the archive answers again");
                }
                Ok(Listed { list: Arc::new(list), read: Instant::now() })
            }
            Err(error) => {
                self.failures += 1;
                if self.failing.is_none() {
                    tracing::warn!(%error, "the archive's lists cannot be read: answers are from what is known");
                }
                self.failing = Some(error.to_string());
                old.map(|list| Listed { list, read: Instant::now() }).ok_or(error)
            }
        }
    }
}

impl Catalog {
    pub fn new(remote: Remote, every: Duration) -> Self {
        Self { remote, every, lists: tokio::sync::Mutex::default() }
    }

    /// Reads all lists again before the next answer.
    pub async fn stale(&self) {
        let mut lists = self.lists.lock().await;
        (lists.hours, lists.open, lists.heartbeats) = (None, None, None);
        lists.blocks.clear();
        lists.apps.clear();
    }

    pub async fn health(&self) -> CatalogHealth {
        let lists = self.lists.lock().await;
        CatalogHealth {
            failing: lists.failing.clone(),
            failures: lists.failures,
            age: lists.hours.as_ref().map(|listed| listed.read.elapsed()),
            hours: lists.hours.as_ref().map_or(0, |listed| listed.list.len()),
            left_out: (lists.left_out.values().flatten().take(MAX_TOLD))
                .map(|part| (part.name.clone(), part.says.clone()))
                .collect(),
            incomplete: lists.incomplete,
        }
    }

    /// What answers over a range lack, since the lists that were read for them are without it.
    pub async fn left_out(&self, range: &TimeRange) -> Vec<MissingPart> {
        let lists = self.lists.lock().await;
        let old = lists.hours.as_ref().and_then(|listed| hours_within(&listed.list, range).1);
        let parts = lists.left_out.values().flatten();
        parts.filter(|part| part.range.overlaps(range)).cloned().chain(old).collect()
    }

    /// The hours in which blocks begin, the oldest first.
    ///
    /// # Errors
    /// The list cannot be read, and it never could: an old list is answered instead of an error.
    pub async fn hours(&self) -> Result<Arc<Vec<String>>, RemoteError> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.hours.as_ref(), self.every) {
            return Ok(list);
        }
        let below = format!("{ROOT}/index");
        let read = self.remote.dirs(&below).await.map(|names| {
            let (hours, foreign): (Vec<_>, Vec<_>) =
                names.into_iter().partition(|name| start_of(name).is_some());
            lists.tell(&below, told(&below, &[], NO_TIME, &foreign));
            hours
        });
        let old = lists.hours.as_ref().map(|listed| listed.list.clone());
        let listed = lists.take(read, old)?;
        Ok(lists.hours.insert(listed).list.clone())
    }

    /// Those hours that may share an instant with a range; of very many (a year's) the newest.
    ///
    /// # Errors
    /// As for [`Self::hours`].
    pub async fn hours_in(&self, range: &TimeRange) -> Result<Vec<String>, RemoteError> {
        let hours = self.hours().await?;
        Ok(hours_within(&hours, range).0)
    }

    /// The blocks that begin in an hour: of two manifests of one the newer.
    ///
    /// # Errors
    /// The hour's list cannot be read, and no old one is kept.
    pub async fn blocks(&self, hour: &str) -> Result<Arc<Vec<BlockName>>, RemoteError> {
        let now = hour_of(WallTime::now().minus(Duration::from_secs(900)));
        let age = if hour < now.as_str() { self.every * OLD } else { self.every };
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.blocks.get(hour), age) {
            return Ok(list);
        }
        if lists.blocks.len() >= MAX_LISTS {
            lists.blocks.clear();
        }
        let below = layout::index_hour(hour);
        let read = by_host(&self.remote, &below, MAX_NAMES).await.map(|ByHost { objects, left_out }| {
            let (blocks, foreign) = blocks_of(objects);
            let range = start_of(hour)
                .map_or(ALL_TIME, |from| TimeRange { from, until: from.plus(Duration::from_secs(3600)) });
            lists.tell(&below, told(&below, &left_out, range, &foreign));
            blocks
        });
        let old = lists.blocks.get(hour).map(|listed| listed.list.clone());
        let listed = lists.take(read, old)?;
        let list = listed.list.clone();
        lists.blocks.insert(hour.to_owned(), listed);
        Ok(list)
    }

    /// What is open: parts that are no block yet, and some whose block was put just now.
    ///
    /// # Errors
    /// The list of pieces cannot be read, and no old one is kept.
    pub async fn open(&self) -> Result<Arc<OpenParts>, RemoteError> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.open.as_ref(), self.every) {
            return Ok(list);
        }
        let below = format!("{ROOT}/open");
        let read = by_host(&self.remote, &below, MAX_NAMES).await.map(|ByHost { objects, left_out }| {
            let (parts, foreign) = parts_of(objects);
            lists.tell(&below, told(&below, &left_out, ALL_TIME, &foreign));
            parts
        });
        let old = lists.open.as_ref().map(|listed| listed.list.clone());
        let listed = lists.take(read, old)?;
        Ok(lists.open.insert(listed).list.clone())
    }

    /// The last heartbeat of each node, in the order of nodes. Where the list cannot be read, as it was read last: no question
    /// fails for it.
    pub async fn heartbeats(&self) -> Arc<Vec<Heartbeat>> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.heartbeats.as_ref(), self.every * OLD) {
            return list;
        }
        let below = format!("{ROOT}/heartbeats");
        let list = match by_host(&self.remote, &below, MAX_NAMES).await {
            Ok(listed) => {
                lists.tell(&below, told(&below, &listed.left_out, NO_TIME, &[]));
                Arc::new(Heartbeat::last_of(&listed.objects))
            }
            Err(_) => lists.heartbeats.as_ref().map(|listed| listed.list.clone()).unwrap_or_default(),
        };
        lists.heartbeats.insert(Listed { list, read: Instant::now() }).list.clone()
    }

    /// An application's hours that are one block: of each hour the one that covers most.
    ///
    /// # Errors
    /// The application's list cannot be read, or has more than [`MAX_NAMES`] names, and no old one is kept.
    pub async fn gathered(&self, app: &str) -> Result<Arc<Vec<Gathered>>, RemoteError> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.apps.get(app), self.every * OLD) {
            return Ok(list);
        }
        if lists.apps.len() >= MAX_LISTS {
            lists.apps.clear();
        }
        let read = self.remote.list(&layout::gathered_of(app), MAX_NAMES).await.map(|objects| {
            let mut all: Vec<Gathered> = objects
                .iter()
                .filter_map(|object| layout::gathered_name(&object.name))
                .map(|(hour, generation)| Gathered { hour, generation })
                .collect();
            all.sort_by(|a, b| (&a.hour, &b.generation).cmp(&(&b.hour, &a.generation)));
            all.dedup_by(|next, kept| next.hour == kept.hour);
            all
        });
        let old = lists.apps.get(app).map(|listed| listed.list.clone());
        let listed = lists.take(read, old)?;
        let list = listed.list.clone();
        lists.apps.insert(app.to_owned(), listed);
        Ok(list)
    }
}
