//! Blocks of an archive on this machine: a directory of bounded size, filled file by file as answers need them.
//!
//! In: a block's manifest and where its files are in the archive. Out: [`Volume`]s whose files come when they are
//! read, each checked by length and CRC-32 and then renamed into place. Over the limit the blocks go that were asked
//! longest ago, but for those that a question holds. The directory is this program's alone and begins empty.
//!
//! Limits: bytes of files, and of memory for what was read of them.

mod bringer;

pub(super) use bringer::{BringError, Bringer, bring};

use super::remote::Remote;
use emberscope_store::{BlockFacts, Volume};
use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Bytes of a block that is held whatever the cache's limit: one of a node has some megabytes.
const MAX_BLOCK: u64 = 1 << 30;

/// The blocks that are here, and how much room they may take. Shared by all questions.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    limit: u64,
    memory: usize,
    remote: Remote,
    handle: Handle,
    held: Mutex<Held>,
    /// Files fetched since the start, and their bytes.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counts and a table that are whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

impl Cache {
    /// An empty one. What an earlier program left in `dir/blocks` is removed.
    ///
    /// # Errors
    /// `dir/blocks` cannot be removed or made: the file system's error as it is.
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

    /// A block by its key (`Wanted::key`), where it is in the cache. It then counts as asked for last.
    pub fn known(&self, key: &str) -> Option<Cached> {
        let mut held = lock(&self.held);
        held.asked += 1;
        let asked = held.asked;
        let entry = held.entries.get_mut(key)?;
        entry.asked = asked;
        Some(Cached { volume: entry.volume.clone(), bringer: entry.bringer.clone() })
    }

    /// A block whose manifest was read just now; `below` is where its files are.
    ///
    /// # Errors
    /// `BringError::Bad`: the block has more bytes than the cache may hold and than [`MAX_BLOCK`], or its manifest
    /// makes no sense. `BringError::Disk`: its directory cannot be made. The cache is then as it was.
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

    /// The block whose files are in this directory, where the directory is the cache's.
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
