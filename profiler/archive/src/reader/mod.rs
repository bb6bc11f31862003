//! Answers from an archive: what a question's time range needs is brought here and read as a daemon reads its own.
//!
//! In: an archive's URL and a directory of its own. Out: a [`Shelf`]. An application's hour that was brought together
//! (`compact`) is read instead of the blocks that it covers, where the answer does not tell tasks apart; open parts
//! are read from their pieces. Nothing is kept that the archive does not have: two of these on one archive answer
//! alike.
//!
//! Bad objects are set aside, counted and named; an archive that does not answer fails the question, not the server.
//! Limits: [`ReaderConfig`].

mod config;
mod find;
mod open;
mod usage;
mod volumes;

pub use config::ReaderConfig;
pub use usage::ReaderUsage;

use super::cache::Cache;
use super::catalog::{Catalog, start_of};
use super::index::Index;
use super::layout;
use super::remote::{Remote, RemoteError};
use emberscope_model::{Missing, TimeRange, WallTime, nobody_waits};
use emberscope_store::{Shelf, StoreError, StoreUsage, Touch, Volume};
pub(super) use find::Wanted;
use open::OpenVolumes;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use usage::Aside;
use volumes::Volumes;

/// Blocks whose files are brought at once, while those before are read.
const AHEAD: usize = 24;
/// Applications' hours whose lists of blocks are kept: 60 KB each for a thousand nodes,
const MAX_INDEXES: usize = 200;
/// and the blocks that they name in all: 100 bytes each.
const MAX_COVERED: usize = 400_000;

/// Reads an archive.
#[derive(Debug)]
pub struct Reader {
    pub(super) remote: Remote,
    pub(super) catalog: Catalog,
    pub(super) cache: Arc<Cache>,
    open: OpenVolumes,
    aside: Mutex<Aside>,
    indexes: Mutex<HashMap<String, Arc<Index>>>,
    pub(super) runtime: Runtime,
}

fn away(error: RemoteError) -> StoreError {
    StoreError::Away { says: error.to_string() }
}

impl Reader {
    /// Opens an archive. Whether it answers is seen by the first question, and by [`Reader::probe`].
    ///
    /// # Errors
    /// [`RemoteError::Url`]: the URL cannot be one of an archive. [`RemoteError::Failed`]: the cache's directory
    /// cannot be emptied and made, or there are no threads.
    pub fn open(config: ReaderConfig) -> Result<Self, RemoteError> {
        let remote = Remote::open(&config.url, false)?;
        let local = |error: io::Error| RemoteError::Failed {
            url: config.cache.display().to_string(),
            what: "be used as the cache's directory".to_owned(),
            says: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(8)
            .thread_name("archive")
            .enable_all()
            .build()
            .map_err(local)?;
        let handle = runtime.handle().clone();
        let memory = config.memory_bytes / 2;
        let cache =
            Cache::new(&config.cache, config.cache_bytes, memory, remote.clone(), handle).map_err(local)?;
        Ok(Self {
            catalog: Catalog::new(remote.clone(), config.refresh),
            open: OpenVolumes::new(memory),
            aside: Mutex::default(),
            indexes: Mutex::default(),
            remote,
            cache,
            runtime,
        })
    }

    /// Asks the archive for its list of hours: whether it can be read.
    ///
    /// # Errors
    /// The archive refuses, or does not answer. A list that was read once is enough: then there is none.
    pub fn probe(&self) -> Result<(), RemoteError> {
        self.runtime.block_on(self.catalog.hours()).map(|_| ())
    }

    /// Something in a block or an open part made the question panic: it is not asked again.
    fn panicked(&self, volume: &Volumes) -> StoreError {
        let says = "makes the reader panic";
        let key = match volume {
            Volumes::Block(cached) => cached.bringer.key().to_owned(),
            Volumes::Open(key, _) => key.clone(),
        };
        self.refuse(&key, says);
        StoreError::Unreadable { path: key.into(), says: says.to_owned() }
    }

    /// Sets an object aside: it is named, and passed over for a while.
    pub(super) fn refuse(&self, key: &str, says: &str) {
        let range = self.cache.known(key).and_then(|cached| cached.volume.range());
        self.cache.drop_block(key);
        usage::lock(&self.aside).add(key, range, says);
    }
}

impl Shelf for Reader {
    fn each(
        &self,
        touch: &Touch<'_>,
        take: &mut dyn FnMut(&Volume) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let wanted = self.runtime.block_on(self.wanted(touch))?;
        for some in wanted.chunks(AHEAD) {
            if nobody_waits() {
                return Err(StoreError::Unwanted);
            }
            for volume in self.runtime.block_on(self.bring(some, touch))? {
                // The question begins anew after a panic, with nothing of what this one added up; what is kept of a
                // block was whole when it was put there.
                let taken = AssertUnwindSafe(|| take(volume.volume()));
                match catch_unwind(taken) {
                    Ok(taken) => taken?,
                    Err(_) => return Err(self.panicked(&volume)),
                }
                self.cache.trim();
            }
            self.open.trim();
        }
        Ok(())
    }

    fn span(&self) -> Option<TimeRange> {
        let hours = self.runtime.block_on(self.catalog.hours()).ok()?;
        let open = self.runtime.block_on(self.catalog.open()).ok()?;
        let names = hours.iter().map(String::as_str).chain(open.keys().map(|(_, block)| layout::hour(block)));
        let (first, last) = names.fold((None, None), |(first, last): (Option<&str>, Option<&str>), hour| {
            (
                Some(first.map_or(hour, |first| first.min(hour))),
                Some(last.map_or(hour, |last| last.max(hour))),
            )
        });
        let end = start_of(last?)?.plus(Duration::from_secs(3600));
        Some(TimeRange { from: start_of(first?)?, until: end.min(WallTime::now()) })
    }

    fn set_aside(&self, dir: &Path, says: &str) -> Result<(), StoreError> {
        let key = match self.cache.of_dir(dir) {
            Some(cached) => {
                if let Some(says) = cached.bringer.take_away() {
                    return Err(StoreError::Away { says });
                }
                self.refuse(cached.bringer.key(), says);
                // What is not there any more may be there under another name.
                self.runtime.block_on(self.catalog.stale());
                cached.bringer.key().to_owned()
            }
            // It was set aside when it was met; `dir` is its key.
            None => dir.to_string_lossy().into_owned(),
        };
        usage::lock(&self.aside).strike(&key, says);
        Ok(())
    }

    fn missing(&self, touch: &Touch<'_>) -> Result<Missing, StoreError> {
        self.runtime.block_on(self.lacking(touch))
    }

    fn usage(&self) -> StoreUsage {
        let (_, _, memory) = self.cache.usage();
        StoreUsage { windows: 0, bytes: memory + self.open.bytes(), ..StoreUsage::default() }
    }
}
