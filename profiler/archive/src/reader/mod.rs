//! Answers from an archive: what a question's time range needs is brought here and read as a daemon reads its own.
//!
//! In: an archive's URL and a directory of its own. Out: a [`Shelf`]. An application's hour that was brought together
//! (`compact`) is read instead of the blocks that it covers, where the answer does not tell tasks apart; open parts
//! are read from their pieces. Nothing is kept that the archive does not have: two of these on one archive answer
//! alike.
//!
//! Bad objects are set aside, counted and named; an archive that does not answer fails the question, not the server.
//! Limits: [`ReaderConfig`].

mod find;
mod open;
mod usage;

pub use usage::ReaderUsage;

use super::cache::{self, BringError, Cache, Cached};
use super::catalog::{Catalog, start_of};
use super::index::{Index, IndexError};
use super::layout::{self, BlockName};
use super::remote::{Remote, RemoteError};
use emberscope_model::{Missing, TimeRange, WallTime, nobody_waits};
use emberscope_store::{BlockFacts, Shelf, StoreError, StoreUsage, Touch, Volume};
pub(super) use find::Wanted;
use futures_util::{StreamExt, stream};
use open::OpenVolumes;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use usage::Aside;

/// Blocks whose files are brought at once, while those before are read.
const AHEAD: usize = 24;
/// Manifests that are read at once.
const AT_ONCE: usize = 32;
/// A manifest has 2 KB; one that names what it took the place of has some more.
const MAX_MANIFEST: u64 = 1 << 20;

/// Applications' hours whose lists of blocks are kept: 60 KB each for a thousand nodes,
const MAX_INDEXES: usize = 200;
/// and the blocks that they name in all: 100 bytes each.
const MAX_COVERED: usize = 400_000;

/// Where from, and how much is kept here.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// The archive.
    pub url: String,
    /// A directory of its own.
    pub cache: PathBuf,
    /// Bytes of files in it.
    pub cache_bytes: u64,
    /// Memory for what was read of them, and for open parts, beside what a question needs while it runs.
    pub memory_bytes: usize,
    /// How often the archive's lists are read again.
    pub refresh: Duration,
}

impl ReaderConfig {
    /// The defaults for an archive and a directory.
    pub fn new(url: impl Into<String>, cache: impl Into<PathBuf>) -> Self {
        let (cache_bytes, memory_bytes, refresh) = (4 << 30, 128 << 20, Duration::from_secs(10));
        Self { url: url.into(), cache: cache.into(), cache_bytes, memory_bytes, refresh }
    }
}

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
    /// Opens an archive. Only what can be wrong at once is an error: the URL, the directory, threads. Whether the archive
    /// answers is seen by the first question, and by [`Reader::probe`].
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
    pub fn probe(&self) -> Result<(), RemoteError> {
        self.runtime.block_on(self.catalog.hours()).map(|_| ())
    }

    /// Opens a block: from the cache, or by its manifest. None: it went meanwhile, or is bad and was set aside.
    pub(super) async fn block(&self, wanted: &Wanted) -> Result<Option<Cached>, StoreError> {
        let key = wanted.key();
        if let Some(cached) = self.cache.known(&key) {
            return Ok(Some(cached));
        }
        let (manifest, name, below) = match wanted {
            Wanted::Block(BlockName { host, block, crc32 }) => {
                let index = layout::index(host, block, *crc32);
                let read = match self.remote.get(&index, MAX_MANIFEST).await {
                    // That large it is no manifest.
                    Err(RemoteError::Failed { says, .. }) if says.starts_with("it has more than") => {
                        usage::lock(&self.aside).add(&key, None, &format!("its manifest: {says}"));
                        return Ok(None);
                    }
                    read => read,
                };
                let below = format!("{}/{block}", layout::blocks(host));
                (read.map_err(away)?.map(|bytes| bytes.to_vec()), block.clone(), below)
            }
            Wanted::Gathered { app, hour } => {
                let index = layout::gathered(app, &hour.hour, &hour.generation);
                let manifest = match self.index(&index).await {
                    Ok(index) => index.map(|index| index.manifest.clone().into_bytes()),
                    Err(IndexError::Remote(error)) => return Err(away(error)),
                    Err(IndexError::Bad(_)) => None,
                };
                let below = layout::gathered_files(app, &hour.hour, &hour.generation);
                (manifest, format!("{}-{}", hour.hour, hour.generation), below)
            }
            Wanted::Open { .. } => return Ok(None),
        };
        let Some(manifest) = manifest else {
            // The list is old: what it named was put anew under another name. The question begins again.
            self.catalog.stale().await;
            usage::lock(&self.aside).add(&key, None, "is listed and not there");
            return Err(StoreError::Unreadable {
                path: key.into(),
                says: "is not there any more".to_owned(),
            });
        };
        let bad = |says: String| {
            usage::lock(&self.aside).add(&key, None, &says);
            match wanted {
                // Asked again: the blocks that it covers may be there.
                Wanted::Gathered { .. } => Err(StoreError::Unreadable { path: key.as_str().into(), says }),
                _ => Ok(None),
            }
        };
        match BlockFacts::of(&name, manifest) {
            Err(error) => bad(error.to_string()),
            Ok(facts) if matches!(wanted, Wanted::Block(name) if name.crc32 != facts.crc32()) => {
                bad("its manifest is not as it was written".to_owned())
            }
            Ok(facts) => match self.cache.add(&key, below, facts) {
                Ok(cached) => Ok(Some(cached)),
                Err(BringError::Bad(says)) => bad(says),
                Err(error) => Err(StoreError::Away { says: error.to_string() }),
            },
        }
    }

    /// The blocks and open parts of some names, with the files that are surely read.
    async fn bring(&self, some: &[Wanted], touch: &Touch<'_>) -> Result<Vec<Volumes>, StoreError> {
        let opened = stream::iter(some.iter().map(|wanted| async move {
            match wanted {
                Wanted::Open { host, block } => {
                    let pieces = self.catalog.open().await.map_err(away)?;
                    let pieces = pieces.get(&(host.clone(), block.clone())).cloned().unwrap_or_default();
                    let volume = self.open.bring(&self.remote, &wanted.key(), &pieces).await;
                    let volume = match volume {
                        Err(BringError::Bad(says)) => {
                            usage::lock(&self.aside).add(&wanted.key(), None, &says);
                            None
                        }
                        other => Some(other.map_err(|error| StoreError::Away { says: error.to_string() })?),
                    };
                    Ok(volume.map(|volume| Volumes::Open(wanted.key(), volume)))
                }
                _ => Ok(self.block(wanted).await?.map(Volumes::Block)),
            }
        }));
        let opened: Vec<Result<Option<Volumes>, StoreError>> = opened.buffered(AT_ONCE).collect().await;
        let mut volumes = opened.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        volumes.retain(|volume| volume.volume().range().is_some_and(|range| range.overlaps(&touch.range)));
        let blocks: Vec<Cached> = volumes.iter().filter_map(Volumes::block).cloned().collect();
        let bad = cache::bring(&blocks, touch.needs).await?;
        for (bringer, says) in &bad {
            self.refuse(bringer.key(), says);
        }
        match bad.into_iter().next() {
            None => Ok(volumes),
            // Asked again, with the lists of now: its labels may have been written anew.
            Some((bringer, says)) => {
                self.catalog.stale().await;
                Err(StoreError::Unreadable { path: bringer.key().into(), says })
            }
        }
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

    /// Sets a block aside: it is named, and passed over for a while.
    pub(super) fn refuse(&self, key: &str, says: &str) {
        let range = self.cache.known(key).and_then(|cached| cached.volume.range());
        self.cache.drop_block(key);
        usage::lock(&self.aside).add(key, range, says);
    }
}

/// What a question holds while it reads.
#[derive(Clone, Debug)]
enum Volumes {
    Block(Cached),
    Open(String, Arc<Volume>),
}

impl Volumes {
    fn volume(&self) -> &Volume {
        match self {
            Self::Block(cached) => &cached.volume,
            Self::Open(_, volume) => volume,
        }
    }
    fn block(&self) -> Option<&Cached> {
        match self {
            Self::Block(cached) => Some(cached),
            Self::Open(..) => None,
        }
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
        }
        self.open.trim();
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
        let Some(cached) = self.cache.of_dir(dir) else { return Ok(()) };
        if let Some(says) = cached.bringer.take_away() {
            return Err(StoreError::Away { says });
        }
        self.refuse(cached.bringer.key(), says);
        // What is not there any more may be there under another name.
        self.runtime.block_on(self.catalog.stale());
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
