//! One allocation for each distinct stack.
//!
//! In: shared frames, the same `Arc` for equal frames (the symbolizer's). Out: shared stacks, the same
//! `Arc` for equal ones, so that the rooms after this one can compare by pointer. Limits: stacks, and
//! bytes of all together; over them a stack becomes one frame `[unknown: table full]`, counted.
//! [`Interner::sweep`] drops what nobody else holds. Not shared between threads: the pipeline owns one.

use super::stack_key::{StackEntry, StackKey};
use emberscope_model::{FastSet, Frame, Stack, StackEnd, UnknownReason, shrink};
use std::sync::Arc;

/// The two counters of an `Arc`, and its slot in the table with the table's empty part.
const ENTRY_BYTES: usize = 16 + 16;

/// Limits of an [`Interner`].
#[derive(Clone, Copy, Debug)]
pub struct InternLimits {
    /// How many distinct stacks may be held.
    pub stacks: usize,
    /// How many bytes they may take, estimated, without their frames.
    pub bytes: usize,
}

/// A backstop above the store's own limit, which should drop old windows first: the interner only
/// knows how to drop detail. A big Spark node has some 20,000 stacks in an hour.
impl Default for InternLimits {
    fn default() -> Self {
        Self { stacks: 200_000, bytes: 24 << 20 }
    }
}

/// What an [`Interner`] holds, and what its limits cost since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InternStats {
    /// How many stacks are held.
    pub stacks: usize,
    /// Bytes that they take, estimated, without their frames.
    pub bytes: usize,
    /// Stacks that became one frame.
    pub refused_stacks: u64,
}

/// The stacks that are in use, each once.
#[derive(Debug)]
pub struct Interner {
    limits: InternLimits,
    stacks: FastSet<StackEntry>,
    /// A stack of one frame for each [`StackEnd`], so that the quality of an answer still says how walks ended.
    full_stacks: Vec<Arc<Stack>>,
    stats: InternStats,
}

impl Interner {
    /// An empty table.
    pub fn new(limits: InternLimits) -> Self {
        let frame = Arc::new(Frame::unknown(UnknownReason::TableFull, ""));
        let full = |end: &StackEnd| Arc::new(Stack { frames: [frame.clone()].into(), end: *end });
        Self {
            limits,
            stacks: FastSet::default(),
            full_stacks: StackEnd::ALL.iter().map(full).collect(),
            stats: InternStats::default(),
        }
    }

    /// The shared stack of these frames (root first; equal frames are one `Arc`).
    pub fn stack(&mut self, frames: &[Arc<Frame>], end: StackEnd) -> Arc<Stack> {
        if let Some(known) = self.stacks.get(&(frames, end) as &dyn StackKey) {
            return known.0.clone();
        }
        let bytes = stack_bytes(frames.len());
        let fits = self.stats.bytes.saturating_add(bytes) <= self.limits.bytes;
        if (self.stacks.len() >= self.limits.stacks || !fits)
            && let Some(full) = self.full_stacks.get(end as usize)
        {
            self.stats.refused_stacks += 1;
            return full.clone();
        }
        self.stats.bytes += bytes;
        let stack = Arc::new(Stack { frames: frames.into(), end });
        self.stacks.insert(StackEntry(stack.clone()));
        stack
    }

    /// Drops what nobody else holds; once a window is often enough.
    pub fn sweep(&mut self) {
        let bytes = &mut self.stats.bytes;
        self.stacks.retain(|entry| {
            let held = Arc::strong_count(&entry.0) > 1;
            *bytes = if held { *bytes } else { bytes.saturating_sub(stack_bytes(entry.0.frames.len())) };
            held
        });
        shrink(&mut self.stacks);
    }

    /// What the table holds, and what its limits cost.
    pub fn stats(&self) -> InternStats {
        InternStats { stacks: self.stacks.len(), ..self.stats }
    }
}

fn stack_bytes(frames: usize) -> usize {
    ENTRY_BYTES + size_of::<Stack>() + frames * size_of::<Arc<Frame>>()
}

#[cfg(test)]
mod tests;
