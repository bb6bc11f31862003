//! The store on disk: windows in a journal at once, in blocks later, answered for wherever they are.
//!
//! In: closed windows. A window goes into the open part (memory) and its journal (disk) in one call; a full
//! part is sealed and becomes a block on a thread of its own, after which it leaves memory and its journal
//! goes. Out: answers over open part, sealed parts and blocks, which all tell the same.
//!
//! A disk that fails costs durability and never sampling: what could not be written is held and written
//! later (`journaling`, `blocks`), counted and told (`health`). Limits: [`DiskStoreConfig`].

mod blocks;
mod clock;
mod health;
mod journaling;
mod start;
#[cfg(test)]
mod tests;

pub use health::{DiskUsage, SetAside};
pub use start::DiskStoreError;

use super::answer::AnswerLimits;
use super::block::Block;
use super::journal::Fsync;
use super::part::Part;
use super::read::{LedgerLines, Merge, Processes, Quantities, Series, Totals, View};
use super::{LabelledSeries, Store, StoreError, StoreUsage};
use crate::model::{
    Answer, LabelKey, LabelSet, LabelTotal, LedgerTotal, ProcessRecord, Query, Selection, Summary, TimeRange,
    WallTime, Window,
};
use blocks::Task;
use clock::Clock;
use health::Health;
use journaling::Journal;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// Files that a query may find unreadable before it gives up: each is set aside first.
const MAX_UNREADABLE: usize = 16;

/// How and how much is kept.
#[derive(Clone, Debug)]
pub struct DiskStoreConfig {
    /// Directory of the store: `journal`, `blocks` and `damaged` are made in it.
    pub dir: PathBuf,
    /// Length of a window.
    pub window_length: Duration,
    /// Memory for windows that are not in a block yet. A part that takes half of it is sealed; over it the
    /// oldest sealed parts leave memory though no block could be written.
    pub memory_bytes: usize,
    /// Memory for tables of blocks, beside what a query needs while it runs.
    pub cache_bytes: usize,
    /// A part holds the windows of one such stretch of wall-clock time.
    pub block_length: Duration,
    /// When the journal is flushed.
    pub fsync: Fsync,
    /// Blocks go when all their windows are older.
    pub retention_age: Duration,
    /// The oldest blocks go when all files together take more.
    pub retention_bytes: u64,
    /// How large an answer may be.
    pub answers: AnswerLimits,
}

impl DiskStoreConfig {
    /// The defaults for a directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            window_length: Duration::from_secs(10),
            memory_bytes: 20 << 20,
            cache_bytes: 12 << 20,
            block_length: Duration::from_secs(3600),
            fsync: Fsync::Window,
            retention_age: Duration::from_secs(14 * 86_400),
            retention_bytes: 10 << 30,
            answers: AnswerLimits::default(),
        }
    }
}

/// A [`Store`] on disk.
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
    /// One works on blocks at a time; held across I/O.
    working: Mutex<()>,
    /// One change of the open part and its journal at a time.
    journal: Mutex<Journal>,
    held: RwLock<Held>,
    open: RwLock<OpenPart>,
    tasks: Mutex<VecDeque<Task>>,
    wake: Condvar,
    health: Mutex<Health>,
    stopping: AtomicBool,
    /// Questions so far.
    asked: AtomicU64,
    clock: Clock,
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

    /// Shows `take` what overlaps the range, the newest first.
    fn each(
        &self,
        range: &TimeRange,
        mut take: impl FnMut(&dyn View) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
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
            take(&*part)?;
        }
        for block in &blocks {
            take(&block.view(asked)?)?;
            self.trim();
        }
        Ok(())
    }

    /// Asks again without what turns out to be unreadable.
    fn answer<T>(&self, ask: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..MAX_UNREADABLE {
            match ask() {
                Err(StoreError::Unreadable { path, says }) => self.set_aside(&path, &says),
                other => return other,
            }
        }
        ask()
    }

    /// Takes an unreadable block out of what is answered for, and moves it away.
    fn set_aside(&self, path: &Path, says: &str) {
        write(&self.held).blocks.retain(|block| block.dir() != path);
        let aside = start::move_aside(&self.config.dir, path);
        lock(&self.health).set_aside(path, aside.as_deref(), says);
    }

    /// Lets the tables of the blocks go that were asked longest ago, until the rest fits.
    fn trim(&self) {
        let mut blocks: Vec<Arc<Block>> = read(&self.held).blocks.clone();
        blocks.sort_by_key(|block| std::cmp::Reverse(block.used()));
        let mut bytes = 0;
        for block in blocks {
            let own = block.kept_bytes();
            bytes += own;
            if own > 0 && bytes > self.config.cache_bytes {
                block.let_go();
            }
        }
    }
}

impl Store for DiskStore {
    fn append(&self, window: Window) {
        self.shared.append(&window);
    }

    fn span(&self) -> Option<TimeRange> {
        let held = read(&self.shared.held);
        let open = read(&self.shared.open);
        let parts = held.sealed.iter().filter_map(|(_, part)| part.facts.span());
        let blocks = held.blocks.iter().map(|block| block.range());
        super::facts::span(parts.chain(blocks).chain(open.part.facts.span()))
    }

    fn window_length(&self) -> Duration {
        self.shared.config.window_length
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        let shared = &self.shared;
        shared.answer(|| {
            let mut merge = Merge::new(query, &shared.config.answers);
            shared.each(&query.range, |view| merge.add(view))?;
            Ok(merge.finish(shared.config.window_length))
        })
    }

    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        let shared = &self.shared;
        shared.answer(|| {
            let mut quantities = Quantities::new(query);
            shared.each(&query.range, |view| {
                quantities.add(view.facts());
                Ok(())
            })?;
            Ok(quantities.finish(shared.config.window_length))
        })
    }

    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        self.shared.answer(|| {
            let mut totals = Totals::new(query, &self.shared.config.answers);
            self.shared.each(&query.range, |view| totals.add(view))?;
            Ok(totals.finish())
        })
    }

    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let step = step.max(self.shared.config.window_length);
        self.shared.answer(|| {
            let mut series = Series::new(query, step, by, &self.shared.config.answers);
            self.shared.each(&query.range, |view| series.add(view))?;
            series.finish()
        })
    }

    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        self.shared.answer(|| {
            let mut lines = LedgerLines::new(range, selection, by, &self.shared.config.answers);
            self.shared.each(&range, |view| lines.add(view))?;
            Ok(lines.finish())
        })
    }

    fn processes(&self, range: TimeRange, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        let answer = self.shared.answer(|| {
            let mut processes = Processes::default();
            self.shared.each(&range, |view| {
                processes.add(view, &range);
                Ok(())
            })?;
            Ok(processes.finish(selection))
        });
        answer.unwrap_or_else(|error| {
            tracing::warn!(%error, "processes are not told");
            Vec::new()
        })
    }

    fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>) {
        self.shared.change(Task::Relabel { from: from.clone(), to: to.clone() });
    }

    fn forget(&self, labels: &LabelSet) {
        self.shared.change(Task::Forget { labels: labels.clone() });
    }

    fn usage(&self) -> StoreUsage {
        let held = read(&self.shared.held);
        let open = read(&self.shared.open);
        let parts = || held.sealed.iter().map(|(_, part)| &**part).chain([&open.part]);
        let cached: usize = held.blocks.iter().map(|block| block.kept_bytes()).sum();
        let of_blocks: u64 = held.blocks.iter().map(|block| block.windows()).sum();
        let health = lock(&self.shared.health);
        StoreUsage {
            windows: parts().map(|part| part.facts.windows.len()).sum::<usize>() + of_blocks as usize,
            bytes: parts().map(Part::bytes).sum::<usize>() + cached,
            dropped_for_bytes: health.dropped_windows_for_bytes,
            dropped_for_age: health.dropped_windows_for_age,
        }
    }

    fn disk(&self) -> Option<DiskUsage> {
        let (blocks, bytes) = {
            let held = read(&self.shared.held);
            (held.blocks.len(), held.blocks.iter().map(|block| block.bytes()).sum())
        };
        let (journal_bytes, pending_bytes) = self.shared.journal_bytes();
        let health = lock(&self.shared.health);
        Some(health.usage(blocks, bytes, journal_bytes, pending_bytes))
    }
}

impl DiskStore {
    /// Seals the open part and waits until all sealed parts are blocks, or one could not be written.
    pub fn settle(&self) {
        self.shared.seal();
        self.shared.work();
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

/// The wall clock's time for retention.
fn wall(shared: &Shared) -> WallTime {
    shared.clock.now()
}
