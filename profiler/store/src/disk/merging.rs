//! The blocks of an hour that is over become one, which has their names (frames, stacks, label sets) once.
//!
//! In: neighbours of one hour, the oldest first. Out: a block with their windows, rows, ledger and processes as they
//! were, and their names in its manifest: from its rename on they are waste, whoever opens the store. A query that
//! still reads one of them begins anew. One merge at each look, and no block is merged twice, so each sample is
//! written twice in all.
//!
//! Memory: the new block in the making, which takes no more blocks once it is three quarters of `memory_bytes` large;
//! beside it one of the old ones, and [`ROWS_AT_ONCE`]. What fails is tried again after [`LATER`].

use super::super::block::{self, Origin};
use super::super::files::BlockFacts;
use super::super::merger::MergeError;
use super::super::part::Keep;
use super::blocks::Chain;
use super::health::Failing;
use super::*;
use emberscope_model::Selection;
use std::collections::HashSet;
use std::time::Instant;

/// Rows of a block that are sorted by window and label set at once: some 10 MB.
const ROWS_AT_ONCE: u64 = 128 << 10;
/// After a failure: a disk that fails is not to be read through every 30 s.
const LATER: Duration = Duration::from_secs(600);
/// A merged block is at most one in so many bytes that are kept: retention takes whole blocks.
const SHARE: u64 = 8;

/// What is known of merging from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Merging {
    /// Blocks that alone are as large as a merged one may be, by part.
    large: HashSet<u64>,
    not_before: Option<Instant>,
}

/// How a merge went.
enum Merged {
    /// The block, and those that it took the place of.
    Done(Arc<Block>, Vec<Arc<Block>>),
    /// The first one is large enough.
    Large(u64),
    /// The store stops.
    Stopped,
}

impl Shared {
    /// Merges the oldest blocks that are to be.
    pub(super) fn merge_blocks(&self) {
        let run = self.to_merge();
        if run.is_empty() {
            return;
        }
        let begun = Instant::now();
        match self.merge(&run) {
            Ok(Merged::Done(new, old)) => {
                let bytes = old.iter().map(|block| block.bytes()).sum::<u64>();
                tracing::info!(
                    block = %new.dir().display(),
                    blocks = old.len(),
                    before = bytes,
                    bytes = new.bytes(),
                    ms = begun.elapsed().as_millis() as u64,
                    "merged blocks of an hour"
                );
                self.replace(new, &old);
            }
            Ok(Merged::Large(part)) => {
                lock(&self.merging).large.insert(part);
            }
            Ok(Merged::Stopped) => {}
            Err(MergeError::Store(StoreError::Unreadable { path, says })) => self.move_away(&path, &says),
            Err(error) => {
                lock(&self.health).failed(Failing::Merge, &format!("{:#}", Chain(&error)));
                lock(&self.merging).not_before = Some(Instant::now() + LATER);
            }
        }
    }

    /// Neighbours of one hour that is over, in order of time; none: there are none, or something fails just now.
    fn to_merge(&self) -> Vec<Arc<Block>> {
        let merging = lock(&self.merging);
        let waits = merging.not_before.is_some_and(|time| Instant::now() < time);
        if waits || lock(&self.health).fails_beside(Failing::Merge) {
            return Vec::new();
        }
        let length = self.config.block_length;
        let hour = |range: TimeRange| range.from.floor(length);
        let over = self.clock.now().minus(self.config.merge_after);
        let stays = |block: &Block| {
            block.import().is_some() || !block.merged().is_empty() || merging.large.contains(&block.part())
        };
        let held = read(&self.held);
        let open = read(&self.open).part.facts.span().map(hour);
        let sealed = held.sealed.iter().filter_map(|(_, part)| part.facts.span().map(hour));
        let growing: HashSet<WallTime> = sealed.chain(open).collect();
        let goes_on = |a: &Arc<Block>, b: &Arc<Block>| {
            !stays(a)
                && !stays(b)
                && hour(a.range()) == hour(b.range())
                && a.window_length() == b.window_length()
                && a.range().until <= b.range().from
        };
        let runs = held.blocks.chunk_by(goes_on).map(|run| {
            let mut left = self.config.retention_bytes / SHARE;
            let fits = run.iter().take_while(|block| {
                let next = left.checked_sub(block.bytes());
                left = next.unwrap_or_default();
                next.is_some()
            });
            fits.cloned().collect::<Vec<_>>()
        });
        let is_over = |run: &Vec<Arc<Block>>| {
            let hours = run.first().map(|block| hour(block.range())).filter(|_| run.len() > 1);
            hours.is_some_and(|hour| !growing.contains(&hour) && hour.plus(length) <= over)
        };
        let oldest = runs.filter(is_over).min_by_key(|run| run.first().map(|block| block.range().until));
        oldest.unwrap_or_default()
    }

    fn merge(&self, run: &[Arc<Block>]) -> Result<Merged, MergeError> {
        let keep = Keep { grain: None, tasks: true, rows_at_once: ROWS_AT_ONCE };
        let (mut part, mut old, mut origin) = (Part::default(), Vec::new(), Origin::default());
        for block in run {
            if self.stopping.load(Ordering::Relaxed) {
                return Ok(Merged::Stopped);
            }
            let facts = BlockFacts::read(block.dir());
            let facts = facts.map_err(|error| block.unreadable_now(&error.to_string()))?;
            part.gather(&block.view(0)?, &Selection::all(), keep)?;
            block.let_go();
            origin.window_ns = facts.window_ns;
            origin.merged.insert(facts.name.clone(), facts.crc32());
            old.push(block.clone());
            if part.bytes() >= self.config.memory_bytes / 4 * 3 {
                break;
            }
        }
        let Some(last) = old.last().filter(|_| old.len() > 1) else {
            return Ok(Merged::Large(run.first().map_or(0, |block| block.part())));
        };
        let sync = self.config.fsync == Fsync::Window;
        let written = block::write(&part, last.part(), &self.block_dir(), sync, origin)?;
        // Blocks have windows, and so has what they became.
        Ok(written.map_or(Merged::Stopped, |(dir, manifest)| {
            Merged::Done(Arc::new(Block::new(dir, manifest)), old)
        }))
    }

    /// Answers from the new block, then removes the old ones.
    pub(super) fn replace(&self, new: Arc<Block>, old: &[Arc<Block>]) {
        let mut held = write(&self.held);
        held.blocks.retain(|known| !old.iter().any(|block| block.part() == known.part()));
        held.blocks.push(new);
        held.blocks.sort_by_key(|block| block.part());
        drop(held);
        let mut removed = Ok(());
        for block in old {
            block.retire();
            removed = removed.and(start::remove(block.dir()));
        }
        let mut health = lock(&self.health);
        match removed {
            Ok(()) => health.went_well(Failing::Remove),
            // The next start removes them: the new one has their names.
            Err(error) => health.failed(Failing::Remove, &error.to_string()),
        }
        health.went_well(Failing::Merge);
    }
}
