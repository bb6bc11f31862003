//! Blocks of an archive on this machine: a directory of bounded size, filled file by file as answers need them.
//!
//! In: a block's manifest and where its files are in the archive. Out: [`Volume`]s whose files come when they are
//! read, each checked by length and CRC-32 and then renamed into place. Over the limit the blocks go that were asked
//! longest ago, but for those that a question holds. The directory is this program's alone and begins empty.
//!
//! Limits: bytes of files, and of memory for what was read of them.

use super::remote::{Remote, RemoteError};
use emberscope_store::{BlockFacts, Fetch, Needs, StoreError, Volume};
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::runtime::Handle;

/// Files that are fetched at once: an object store answers many as soon as one.
const AT_ONCE: usize = 32;

/// Bytes of a block that is held whatever the cache's limit: one of a node has some megabytes.
const MAX_BLOCK: u64 = 1 << 30;

/// The cache.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    limit: u64,
    memory: usize,
    remote: Remote,
    handle: Handle,
    held: Mutex<Held>,
    /// Files fetched, and their bytes.
    pub fetched: AtomicU64,
    pub fetched_bytes: AtomicU64,
    /// Blocks that went because others needed the room.
    pub evicted: AtomicU64,
    temporary: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    entries: HashMap<String, Entry>,
    bytes: u64,
    asked: u64,
}

#[derive(Debug)]
struct Entry {
    volume: Arc<Volume>,
    bringer: Arc<Bringer>,
    bytes: u64,
    asked: u64,
}

/// A block that a question holds.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    pub volume: Arc<Volume>,
    pub bringer: Arc<Bringer>,
}

/// Brings the files of one block.
#[derive(Debug)]
pub(super) struct Bringer {
    cache: Weak<Cache>,
    key: String,
    dir: PathBuf,
    /// Where the files are in the archive.
    below: String,
    facts: BlockFacts,
    /// The archive did not answer: nothing is wrong with the block.
    away: Mutex<Option<String>>,
}

/// Why a file was not brought.
#[derive(Debug, thiserror::Error)]
pub(super) enum BringError {
    /// The archive does not answer.
    #[error("{0}")]
    Away(RemoteError),
    /// The file is not there, or not as the manifest says.
    #[error("{0}")]
    Bad(String),
    /// This machine's disk.
    #[error("the cache cannot be written: {0}")]
    Disk(io::Error),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counts and a table that are whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

impl Cache {
    /// An empty one. What an earlier program left in `dir/blocks` is removed.
    pub fn new(
        dir: &Path,
        limit: u64,
        memory: usize,
        remote: Remote,
        handle: Handle,
    ) -> io::Result<Arc<Self>> {
        let dir = dir.join("blocks");
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => make(&dir)?,
        }
        let zero = || AtomicU64::new(0);
        let (fetched, fetched_bytes, evicted, temporary) = (zero(), zero(), zero(), zero());
        let held = Mutex::default();
        Ok(Arc::new(Self {
            dir,
            limit,
            memory,
            remote,
            handle,
            held,
            fetched,
            fetched_bytes,
            evicted,
            temporary,
        }))
    }

    /// A block by its place in the cache, where it is known.
    pub fn known(&self, key: &str) -> Option<Cached> {
        let mut held = lock(&self.held);
        held.asked += 1;
        let asked = held.asked;
        let entry = held.entries.get_mut(key)?;
        entry.asked = asked;
        Some(Cached { volume: entry.volume.clone(), bringer: entry.bringer.clone() })
    }

    /// A block whose manifest was read just now; `below` is where its files are.
    pub fn add(self: &Arc<Self>, key: &str, below: String, facts: BlockFacts) -> Result<Cached, BringError> {
        if facts.bytes() > self.limit.max(MAX_BLOCK) {
            return Err(BringError::Bad(format!(
                "its files have {} bytes, more than the cache",
                facts.bytes()
            )));
        }
        let dir = self.dir.join(key);
        make(&dir).map_err(BringError::Disk)?;
        let bringer = Arc::new(Bringer {
            cache: Arc::downgrade(self),
            key: key.to_owned(),
            dir: dir.clone(),
            below,
            facts,
            away: Mutex::default(),
        });
        let volume = Volume::block(dir, &bringer.facts, bringer.clone());
        let volume = Arc::new(volume.map_err(|error| BringError::Bad(error.to_string()))?);
        let mut held = lock(&self.held);
        held.asked += 1;
        let asked = held.asked;
        let cached = Cached { volume: volume.clone(), bringer: bringer.clone() };
        // Two questions may have read the manifest at once: the first one's stays.
        let entry = held.entries.entry(key.to_owned()).or_insert(Entry { volume, bringer, bytes: 0, asked });
        let cached = match Arc::ptr_eq(&entry.volume, &cached.volume) {
            true => cached,
            false => Cached { volume: entry.volume.clone(), bringer: entry.bringer.clone() },
        };
        Ok(cached)
    }

    /// The block of a directory.
    pub fn of_dir(&self, dir: &Path) -> Option<Cached> {
        let key = dir.strip_prefix(&self.dir).ok()?.to_str()?.to_owned();
        self.known(&key)
    }

    /// Forgets a block and its files.
    pub fn drop_block(&self, key: &str) {
        let mut held = lock(&self.held);
        if let Some(entry) = held.entries.remove(key) {
            held.bytes = held.bytes.saturating_sub(entry.bytes);
        }
        drop(held);
        let _ = fs::remove_dir_all(self.dir.join(key));
    }

    /// Blocks held, bytes of their files, bytes of memory.
    pub fn usage(&self) -> (usize, u64, usize) {
        let held = lock(&self.held);
        let memory = held.entries.values().map(|entry| entry.volume.kept_bytes()).sum();
        (held.entries.len(), held.bytes, memory)
    }

    /// Lets what was read of the blocks go that were asked longest ago, until the rest fits in memory.
    pub fn trim(&self) {
        let mut volumes: Vec<(u64, Arc<Volume>)> =
            lock(&self.held).entries.values().map(|entry| (entry.asked, entry.volume.clone())).collect();
        volumes.sort_by_key(|(asked, _)| std::cmp::Reverse(*asked));
        let mut bytes = 0;
        for (_, volume) in volumes {
            let own = volume.kept_bytes();
            bytes += own;
            if own > 0 && bytes > self.memory {
                volume.let_go();
            }
        }
    }

    fn took(&self, key: &str, bytes: u64) {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut held = lock(&self.held);
        if let Some(entry) = held.entries.get_mut(key) {
            entry.bytes += bytes;
            held.bytes += bytes;
        }
        let mut gone = Vec::new();
        while held.bytes > self.limit {
            let free = |entry: &Entry| Arc::strong_count(&entry.volume) == 1;
            let others =
                held.entries.iter().filter(|(known, entry)| *known != key && entry.bytes > 0 && free(entry));
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.asked).map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some(entry) = held.entries.remove(&oldest) {
                held.bytes = held.bytes.saturating_sub(entry.bytes);
            }
            // Before the lock goes: whoever asks for it now begins anew.
            let aside = self.dir.join(format!(".gone-{}", self.temporary.fetch_add(1, Ordering::Relaxed)));
            if fs::rename(self.dir.join(&oldest), &aside).is_ok() {
                gone.push(aside);
            }
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        drop(held);
        for aside in gone {
            let _ = fs::remove_dir_all(aside);
        }
    }
}

impl Bringer {
    /// Where the block is in the cache.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The archive's failure that the last reader met, if that is what it was.
    pub fn take_away(&self) -> Option<String> {
        lock(&self.away).take()
    }

    /// Files that a question surely reads and that are not here yet.
    fn missing(&self, needs: Needs) -> Vec<String> {
        let wanted = self.facts.files.iter().filter(|(file, ..)| needs.file(file));
        wanted.filter(|(file, ..)| !self.dir.join(file).exists()).map(|(file, ..)| file.clone()).collect()
    }

    async fn bring(&self, file: &str) -> Result<(), BringError> {
        let path = self.dir.join(file);
        if path.exists() {
            return Ok(());
        }
        let Some(cache) = self.cache.upgrade() else { return Ok(()) };
        let known = self.facts.files.iter().find(|(known, ..)| known == file);
        let Some((_, bytes, crc32)) = known else {
            return Err(BringError::Bad(format!("{file} is not named")));
        };
        let number = cache.temporary.fetch_add(1, Ordering::Relaxed);
        let aside = self.dir.join(format!(".{number}-{file}"));
        let name = format!("{}/{file}", self.below);
        let taken = cache.remote.download(&name, &aside, *bytes).await;
        let result = match taken {
            Ok(Some(sum)) if sum == (*bytes, *crc32) => match fs::rename(&aside, &path) {
                Ok(()) => {
                    cache.took(&self.key, *bytes);
                    return Ok(());
                }
                Err(error) => Err(BringError::Disk(error)),
            },
            Ok(Some(_)) => Err(BringError::Bad(format!("{name} is not as it was written"))),
            Ok(None) => Err(BringError::Bad(format!("{name} is not there"))),
            Err(super::remote::DownloadError::Remote(error)) => Err(BringError::Away(error)),
            Err(super::remote::DownloadError::Disk(error)) => Err(BringError::Disk(error)),
        };
        let _ = fs::remove_file(&aside);
        result
    }
}

impl Fetch for Bringer {
    fn fetch(&self, file: &str) -> io::Result<()> {
        if self.dir.join(file).exists() {
            return Ok(());
        }
        let Some(cache) = self.cache.upgrade() else { return Err(io::ErrorKind::NotFound.into()) };
        // Only threads that may block read blocks.
        cache.handle.block_on(self.bring(file)).map_err(|error| {
            if !matches!(error, BringError::Bad(_)) {
                *lock(&self.away) = Some(error.to_string());
            }
            io::Error::other(error.to_string())
        })
    }
}

/// Brings what a question surely reads of some blocks, many files at once. Out: those that are bad.
pub(super) async fn bring(
    blocks: &[Cached],
    needs: Needs,
) -> Result<Vec<(Arc<Bringer>, String)>, StoreError> {
    let files = blocks.iter().flat_map(|block| {
        let bringer = block.bringer.clone();
        bringer.missing(needs).into_iter().map(move |file| (bringer.clone(), file))
    });
    let files: Vec<(Arc<Bringer>, String)> = files.collect();
    let mut brought = stream::iter(files.into_iter().map(|(bringer, file)| async move {
        let done = bringer.bring(&file).await;
        (bringer, done)
    }))
    .buffer_unordered(AT_ONCE);
    let mut bad = Vec::new();
    while let Some((bringer, done)) = brought.next().await {
        match done {
            Ok(()) => {}
            Err(BringError::Bad(says)) => bad.push((bringer, says)),
            Err(error) => return Err(StoreError::Away { says: error.to_string() }),
        }
    }
    Ok(bad)
}
