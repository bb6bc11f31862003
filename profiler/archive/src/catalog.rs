//! What an archive holds, by lists that are read again every few seconds.
//!
//! In: the archive. Out: the hours there are, the blocks of an hour, the pieces of open parts, an application's hours
//! that are one block already. Each list is one request (or one a thousand names). A list that cannot be read is
//! answered as it was, and told; without one the question fails.
//!
//! Limits: [`MAX_NAMES`] names a list, [`MAX_LISTS`] lists.

use super::heartbeat::Heartbeat;
use super::layout::{self, BlockName, Piece, ROOT, chain};
use super::remote::{Remote, RemoteError};
use emberscope_model::{TimeRange, WallTime};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names of a list: an hour of some ten thousand nodes.
const MAX_NAMES: usize = 200_000;
/// Lists that are kept; over it all are read again.
const MAX_LISTS: usize = 2000;
/// Hours that a question may touch: a year.
const MAX_HOURS: usize = 366 * 24;
/// Lists of hours that are over change seldom: they are read again after that many times the usual.
const OLD: u32 = 6;

/// Open parts: by node and block the pieces, in a row.
pub(super) type OpenParts = BTreeMap<(String, String), Vec<Piece>>;

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
}

/// The hour of an instant, as names have it.
pub(super) fn hour_of(time: WallTime) -> String {
    let second = i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second).map(|t| t.strftime("%Y%m%dT%H").to_string()).unwrap_or_default()
}

/// The hours of a range's first instant and its last.
pub(super) fn hours_of(range: &TimeRange) -> (String, String) {
    (hour_of(range.from), hour_of(range.until.minus(Duration::from_nanos(1))))
}

/// The first instant of an hour, by its name; None: it is no name of an hour.
pub(super) fn start_of(hour: &str) -> Option<WallTime> {
    let text =
        format!("{}-{}-{}T{}:00:00Z", hour.get(..4)?, hour.get(4..6)?, hour.get(6..8)?, hour.get(9..11)?);
    let second = text.parse::<jiff::Timestamp>().ok()?.as_second();
    Some(WallTime(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?))
}

/// The first instant of a block, by its name (`20261122T080000Z-..`); None: it is no block's.
pub(super) fn start_of_block(block: &str) -> Option<WallTime> {
    let second = |at: usize| block.get(at..at + 2)?.parse::<u64>().ok();
    let (minutes, seconds) = (second(11)?, second(13)?);
    Some(start_of(block)?.plus(Duration::from_secs(minutes * 60 + seconds)))
}

fn fresh<T>(listed: Option<&Listed<T>>, age: Duration) -> Option<Arc<T>> {
    listed.filter(|listed| listed.read.elapsed() < age).map(|listed| listed.list.clone())
}

impl Lists {
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
        }
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
        let read = self.remote.dirs(&format!("{ROOT}/index")).await;
        let old = lists.hours.as_ref().map(|listed| listed.list.clone());
        let listed = lists.take(read, old)?;
        Ok(lists.hours.insert(listed).list.clone())
    }

    /// Those hours that may share an instant with a range; of more than [`MAX_HOURS`] the newest.
    ///
    /// # Errors
    /// As for [`Self::hours`].
    pub async fn hours_in(&self, range: &TimeRange) -> Result<Vec<String>, RemoteError> {
        let (first, last) = hours_of(range);
        let mut hours = self.hours().await?.to_vec();
        hours.retain(|hour| *hour >= first && *hour <= last);
        let more = hours.len().saturating_sub(MAX_HOURS);
        hours.drain(..more);
        Ok(hours)
    }

    /// The blocks that begin in an hour: of two manifests of one the newer.
    ///
    /// # Errors
    /// The hour's list cannot be read, or has more than [`MAX_NAMES`] names, and no old one is kept.
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
        let read = self.remote.list(&layout::index_hour(hour), MAX_NAMES).await.map(|mut objects| {
            objects.sort_by_key(|object| std::cmp::Reverse(object.put_ms));
            let mut names: Vec<BlockName> =
                objects.iter().filter_map(|object| BlockName::of(&object.name)).collect();
            names.sort_by(|a, b| (&a.host, &a.block).cmp(&(&b.host, &b.block)));
            names.dedup_by(|next, kept| (&next.host, &next.block) == (&kept.host, &kept.block));
            names
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
    /// The list of pieces cannot be read, or has more than [`MAX_NAMES`] names, and no old one is kept.
    pub async fn open(&self) -> Result<Arc<OpenParts>, RemoteError> {
        let mut lists = self.lists.lock().await;
        if let Some(list) = fresh(lists.open.as_ref(), self.every) {
            return Ok(list);
        }
        let read = self.remote.list(&format!("{ROOT}/open"), MAX_NAMES).await.map(|objects| {
            let mut parts = OpenParts::new();
            for piece in objects.iter().filter_map(|object| Piece::of(&object.name)) {
                parts.entry((piece.host.clone(), piece.block.clone())).or_default().push(piece);
            }
            parts.into_iter().map(|(part, pieces)| (part, chain(pieces))).collect()
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
        let list = match self.remote.list(&format!("{ROOT}/heartbeats"), MAX_NAMES).await {
            Ok(objects) => Arc::new(Heartbeat::last_of(&objects)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_its_beginning() {
        let time = WallTime(1_700_000_000 * 1_000_000_000);
        assert_eq!(hour_of(time), "20231114T22");
        assert_eq!(start_of("20231114T22"), Some(time.floor(Duration::from_secs(3600))));
        assert_eq!(start_of("x"), None);
        let block = |name| start_of_block(name).map(|start| start.0 / 1_000_000_000);
        assert_eq!(block("20231114T221320Z-000000000007"), Some(1_700_000_000));
        assert_eq!(block("20231114T22"), None);
        assert_eq!(start_of("2023111é122"), None);
    }
}
