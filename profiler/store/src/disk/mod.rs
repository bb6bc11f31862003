//! The store on disk: windows in a journal at once, in blocks later, answered for wherever they are.
//!
//! In: closed windows. A window goes into the open part (memory) and its journal (disk) in one call; a full
//! part is sealed and becomes a block on a thread of its own, after which it leaves memory and its journal
//! goes. Out: answers over open part, sealed parts and blocks, which all tell the same.
//!
//! A disk that fails costs durability and never sampling: what could not be written is held and written
//! later (`journaling`, `blocks`), counted and told (`health`). Limits: [`DiskStoreConfig`].

mod answers;
mod blocks;
mod cache;
mod clock;
mod config;
mod error;
mod health;
mod journaling;
mod merging;
mod rolling;
mod room;
mod start;
#[cfg(test)]
mod tests;

pub use blocks::Chain;
pub use config::{DiskStoreConfig, KeepFree, RollUp, WhenFull};
pub use error::DiskStoreError;
pub use health::{DiskUsage, SetAside};

use super::asking::{Add, Parts};
use super::block::{Block, ImportFacts};
use super::error::StoreError;
use super::journal::Fsync;
use super::limits::AnswerLimits;
use super::part::Part;
use super::read::Budget;
use super::touch::Touch;
use super::view::View;
use blocks::Task;
use clock::Clock;
use emberscope_model::{LabelSet, Missing, TimeRange, WallTime, Wanted, Window};
use health::Health;
use journaling::Journal;
use merging::Merging;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// A [`Store`](crate::Store) on disk.
#[derive(Debug)]
pub struct DiskStore {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The part that windows go into.
#[derive(Debug)]
struct OpenPart {
    number: u64,
    part: Part,
}

/// What is held beside the open part, the oldest first.
#[derive(Debug, Default)]
struct Held {
    sealed: VecDeque<(u64, Arc<Part>)>,
    blocks: Vec<Arc<Block>>,
}

/// What the store and its threads share. Locks are taken in the order of the fields, and a
/// query waits for none that is held across I/O.
#[derive(Debug)]
struct Shared {
    config: DiskStoreConfig,
    /// Held by the one who works on blocks, across I/O.
    working: Mutex<()>,
    merging: Mutex<Merging>,
    /// The journal of the open part; held while both change.
    journal: Mutex<Journal>,
    held: RwLock<Held>,
    open: RwLock<OpenPart>,
    tasks: Mutex<VecDeque<Task>>,
    wake: Condvar,
    health: Mutex<Health>,
    stopping: AtomicBool,
    /// How many questions were asked since the start.
    asked: AtomicU64,
    clock: Clock,
    /// When blocks were last removed from a full disk, and their bytes.
    removed: Mutex<Option<(std::time::Instant, u64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole after every statement that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn journal_dir(&self) -> PathBuf {
        self.config.dir.join(start::JOURNAL)
    }
    fn block_dir(&self) -> PathBuf {
        self.config.dir.join(start::BLOCKS)
    }

    /// Shows `take` what overlaps the range, in any order, several blocks at once.
    fn each_at_once(
        &self,
        range: &TimeRange,
        take: impl Fn(&dyn View) -> Result<(), StoreError> + Sync,
    ) -> Result<(), StoreError> {
        let budget = Budget::new(&self.config.answers);
        let blocks = self.parts(range, &budget, &mut |view| take(view))?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let (next, went) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while let Some(block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let taken = budget.read(|| take(&block.view(asked)?));
                went.fetch_or(self.trim(), Ordering::Relaxed);
                if taken.is_err() {
                    // The others end with the block that they are at.
                    next.store(blocks.len(), Ordering::Relaxed);
                    return taken;
                }
            }
            Ok(())
        };
        let more = self.config.answers.threads.min(blocks.len()).saturating_sub(1);
        let wanted = Wanted::of_this_thread();
        let done = std::thread::scope(|scope| {
            let spawn = || {
                let wanted = wanted.clone();
                let run = move || {
                    emberscope_supervise::rights::keep_only("query");
                    match wanted {
                        Some(wanted) => wanted.run(work),
                        None => work(),
                    }
                };
                std::thread::Builder::new().name("query".to_owned()).spawn_scoped(scope, run)
            };
            // Where no thread can be had, this one does it all.
            let threads: Vec<_> = (0..more).filter_map(|_| spawn().ok()).collect();
            let own = work();
            let others = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(StoreError::Unwanted)));
            others.fold(own, Result::and)
        });
        self.weigh(went.into_inner());
        done
    }

    /// Shows `take` what is in memory, and tells which blocks there are beside it, the newest first.
    fn parts(
        &self,
        range: &TimeRange,
        budget: &Budget<'_>,
        take: &mut dyn FnMut(&dyn View) -> Result<(), StoreError>,
    ) -> Result<Vec<Arc<Block>>, StoreError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let overlaps = |span: Option<TimeRange>| span.is_some_and(|span| span.overlaps(range));
        let held = read(&self.held);
        let open = read(&self.open);
        let sealed: Vec<Arc<Part>> = (held.sealed.iter().rev())
            .filter(|(_, part)| overlaps(part.facts.span()))
            .map(|(_, part)| part.clone())
            .collect();
        let blocks: Vec<Arc<Block>> =
            held.blocks.iter().rev().filter(|block| overlaps(Some(block.range()))).cloned().collect();
        drop(held);
        if overlaps(open.part.facts.span()) {
            take(&open.part)?;
        }
        drop(open);
        for part in sealed {
            budget.check()?;
            take(&*part)?;
        }
        Ok(blocks)
    }

    /// Takes an unreadable block out of what is answered for, and moves it away.
    fn move_away(&self, path: &Path, says: &str) {
        let mut held = write(&self.held);
        let Some(at) = held.blocks.iter().position(|block| block.dir() == path) else {
            // It went by itself while the query read it.
            return;
        };
        let range = held.blocks.remove(at).range();
        drop(held);
        let aside = start::move_aside(&self.config.dir, path);
        lock(&self.health).set_aside(path, aside.as_deref(), says, Some(range));
    }

    fn missing_in(&self, range: &TimeRange) -> Missing {
        lock(&self.health).missing.within(range)
    }
}

impl Parts for Shared {
    fn length(&self) -> Duration {
        self.config.window_length
    }

    fn limits(&self) -> &AnswerLimits {
        &self.config.answers
    }

    fn each(&self, touch: &Touch<'_>, add: &mut Add<'_>) -> Result<(), StoreError> {
        let budget = Budget::new(&self.config.answers);
        let blocks = self.parts(&touch.range, &budget, add)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut went = false;
        for block in &blocks {
            budget.read(|| add(&block.view(asked)?))?;
            went |= self.trim();
        }
        self.weigh(went);
        Ok(())
    }

    fn set_aside(&self, path: &Path, says: &str) -> Result<(), StoreError> {
        self.move_away(path, says);
        Ok(())
    }

    fn missing(&self, touch: &Touch<'_>) -> Result<Missing, StoreError> {
        Ok(self.missing_in(&touch.range))
    }
}

impl DiskStore {
    /// Seals the open part and waits until all sealed parts are blocks, or one could not be written.
    pub fn settle(&self) {
        self.shared.seal();
        self.shared.work();
    }

    /// The number of the part after all there are, once all windows are in blocks; None: some could not be written.
    pub fn next_part(&self) -> Option<u64> {
        self.settle();
        let held = read(&self.shared.held);
        let open = read(&self.shared.open);
        let settled = held.sealed.is_empty() && open.part.facts.windows.is_empty();
        let newest = held.blocks.iter().map(|block| block.part()).max().unwrap_or_default();
        settled.then(|| open.number.max(newest + 1))
    }

    /// The import of a file with this digest, where any of its blocks is still kept.
    pub fn imported(&self, digest: &str) -> Option<ImportFacts> {
        let held = read(&self.shared.held);
        let mut imports = held.blocks.iter().filter_map(|block| block.import());
        imports.find(|import| import.digest == digest).cloned()
    }
}

impl Drop for DiskStore {
    /// What is in the journal is asked to be on the disk; a block that is being written is finished.
    fn drop(&mut self) {
        // Under the lock that they look at it with: none goes to sleep meanwhile.
        let tasks = lock(&self.shared.tasks);
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.wake.notify_all();
        drop(tasks);
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
        self.shared.flush();
    }
}
