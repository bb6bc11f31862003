//! Sealed parts become blocks and late labels reach what is written, on one thread; old blocks go there too (`room`).
//!
//! A part leaves memory, and its journal the disk, only when its block is whole. Where a block cannot be
//! written it is tried again every [`AGAIN`]; sealed parts that then take more than the memory they may
//! leave it, the oldest first, and are counted. Their journals stay for the next start.

use super::super::block::{self, BlockError, Origin};
use super::super::journal;
use super::health::Failing;
use super::*;
use emberscope_supervise::{Beat, attempt};
use std::fs;
use std::time::Instant;

/// How often a block that could not be written is tried again, and old ones are looked for.
const AGAIN: Duration = Duration::from_secs(30);
/// Changes of labels that wait for a block to be written; over it the oldest are not made.
const MAX_TASKS: usize = 1000;

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A part was sealed.
    Seal,
    /// Labels of a process became known late.
    Relabel { from: LabelSet, to: Arc<LabelSet> },
    /// A process is not to be kept.
    Forget { labels: LabelSet },
}

impl Task {
    /// Does it to the open part. Out: the record.
    pub fn apply(&self, part: &mut Part) -> Option<Vec<u8>> {
        match self {
            Self::Seal => None,
            Self::Relabel { from, to } => part.relabel(from, to),
            Self::Forget { labels } => part.forget(labels),
        }
    }
}

impl Shared {
    /// Does all there is to do, or all that the disk lets.
    pub(super) fn work(&self) {
        let _one = lock(&self.working);
        self.make_room_for_journal();
        loop {
            self.write_blocks();
            // Sealed parts do not change: as blocks they can.
            let waits = !read(&self.held).sealed.is_empty();
            let mut tasks = lock(&self.tasks);
            if waits {
                let more = tasks.len().saturating_sub(MAX_TASKS);
                tasks.drain(..more);
                break;
            }
            let Some(task) = tasks.pop_front() else { break };
            drop(tasks);
            self.change_blocks(&task);
        }
        self.retain();
        self.keep_free();
        // Both want room for the old and the new.
        if self.is_short().is_ok() {
            self.merge_blocks();
            self.roll_up();
        }
    }

    fn write_blocks(&self) {
        loop {
            let oldest = read(&self.held).sealed.front().cloned();
            let Some((number, part)) = oldest else { return };
            let sync = self.config.fsync == Fsync::Window;
            let dir = self.block_dir();
            let room = self.is_short();
            let room =
                room.map_err(|source| BlockError::Io { what: "write a block in", path: dir.clone(), source });
            let written =
                attempt(|| room.and_then(|()| block::write(&part, number, &dir, sync, Origin::default())));
            let written = written.map_err(|panicked| panicked.to_string());
            match written.and_then(|written| written.map_err(|error| format!("{:#}", Chain(&error)))) {
                Ok(written) => {
                    let block = written.map(|(dir, manifest)| Arc::new(Block::new(dir, manifest)));
                    let mut held = write(&self.held);
                    held.sealed.retain(|(known, _)| *known != number);
                    held.blocks.extend(block);
                    held.blocks.sort_by_key(|block| block.part());
                    drop(held);
                    lock(&self.health).went_well(Failing::Block);
                    if self.journal_bytes().1 == 0 {
                        // What the journal could not take is in the block now.
                        lock(&self.health).went_well(Failing::Journal);
                    }
                    self.remove_journal(number);
                }
                Err(says) => {
                    lock(&self.health).failed(Failing::Block, &says);
                    if self.make_room(Failing::Block) {
                        continue;
                    }
                    self.drop_parts();
                    return;
                }
            }
        }
    }

    fn remove_journal(&self, number: u64) {
        let path = journal::path_of(&self.journal_dir(), number);
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        match fs::remove_file(&path) {
            Ok(()) => {
                let mut journal = lock(&self.journal);
                journal.sealed_bytes = journal.sealed_bytes.saturating_sub(bytes);
                drop(journal);
                lock(&self.health).went_well(Failing::Remove);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // The next start finds the block and removes it.
            Err(error) => lock(&self.health).failed(Failing::Remove, &error.to_string()),
        }
    }

    /// Lets the oldest sealed parts go while all parts take more memory than they may.
    fn drop_parts(&self) {
        loop {
            let mut held = write(&self.held);
            let sealed: usize = held.sealed.iter().map(|(_, part)| part.bytes()).sum();
            let bytes = sealed + read(&self.open).part.bytes();
            if bytes <= self.config.memory_bytes {
                return;
            }
            let Some((_, part)) = held.sealed.pop_front() else { return };
            drop(held);
            lock(&self.health).dropped_windows_for_bytes += part.facts.windows.len() as u64;
        }
    }

    /// Late labels, in the newest blocks: back to the first that does not have the process.
    fn change_blocks(&self, task: &Task) {
        let sync = self.config.fsync == Fsync::Window;
        let blocks = read(&self.held).blocks.clone();
        // An import has no process of this node, and its number says nothing of its time.
        for block in blocks.iter().rev().filter(|block| block.import().is_none()) {
            let changed = match task {
                Task::Seal => return,
                Task::Relabel { from, to } => block.change(sync, |labels| labels.relabel(from, to)),
                Task::Forget { labels: of } => block.change(sync, |labels| labels.forget(of)),
            };
            match changed {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    lock(&self.health).failed(Failing::Block, &format!("{:#}", Chain(&error)));
                    return;
                }
            }
        }
    }
}

/// An error with its causes, in one line.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Works until the store goes.
pub(super) fn run(shared: &Shared, beat: &Beat) {
    let (mut again, mut known) = (Instant::now(), 0);
    loop {
        let tasks = lock(&shared.tasks);
        if shared.stopping.load(Ordering::Relaxed) {
            return;
        }
        if tasks.len() == known && Instant::now() < again {
            let (tasks, _) = (shared.wake.wait_timeout(tasks, Duration::from_secs(1)))
                .unwrap_or_else(PoisonError::into_inner);
            drop(tasks);
            continue;
        }
        drop(tasks);
        // What it was at is done by the next round: parts are held until their blocks are there.
        let _ = beat.work(|| shared.work());
        again = Instant::now() + AGAIN;
        // What waits for a disk that fails is no reason to try at once.
        known = lock(&shared.tasks).len();
    }
}
