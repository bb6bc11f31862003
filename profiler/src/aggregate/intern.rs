//! One allocation for each distinct frame, stack and label set.
//!
//! In: values; out: shared `Arc`s, the same for equal values, so that the rooms after this one can
//! compare by pointer. Limits: entries of each kind, and bytes of all together; over them a frame
//! becomes `[unknown: table full]`, a stack one such frame, a label set the caller's overflow set, each
//! counted. [`Interner::sweep`] drops what nobody else holds. Not shared between threads: the pipeline
//! owns one.
//!
//! Stacks are compared by the addresses of their frames: those must come from [`Interner::frame`].

use super::stack_key::{StackEntry, StackKey};
use crate::model::{Frame, LabelSet, Stack, StackEnd, UnknownReason};
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// The two counters of an `Arc`, and its slot in the table with the table's empty part.
const ENTRY_BYTES: usize = 16 + 16;

/// Limits of an [`Interner`].
#[derive(Clone, Copy, Debug)]
pub struct InternLimits {
    /// Distinct frames.
    pub frames: usize,
    /// Distinct stacks.
    pub stacks: usize,
    /// Distinct label sets.
    pub label_sets: usize,
    /// Estimated bytes of all of them.
    pub bytes: usize,
}

/// A backstop above the store's own limit, which should drop old windows first: the interner only
/// knows how to drop detail. A big Spark node has some 30,000 frames and 20,000 stacks in an hour.
impl Default for InternLimits {
    fn default() -> Self {
        Self { frames: 200_000, stacks: 200_000, label_sets: 50_000, bytes: 48 << 20 }
    }
}

/// What an [`Interner`] holds, and what its limits cost since start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InternStats {
    /// Frames held.
    pub frames: usize,
    /// Stacks held.
    pub stacks: usize,
    /// Label sets held.
    pub label_sets: usize,
    /// Bytes, estimated.
    pub bytes: usize,
    /// Frames that became `[unknown: table full]`.
    pub refused_frames: u64,
    /// Stacks that became one such frame.
    pub refused_stacks: u64,
    /// Label sets that became the overflow set.
    pub refused_label_sets: u64,
}

/// The tables.
#[derive(Debug)]
pub struct Interner {
    limits: InternLimits,
    frames: HashSet<Arc<Frame>>,
    stacks: HashSet<StackEntry>,
    label_sets: HashSet<Arc<LabelSet>>,
    full_frame: Arc<Frame>,
    /// One for each [`StackEnd`], so that the quality of an answer still says how they ended.
    full_stacks: Vec<Arc<Stack>>,
    full_labels: Arc<LabelSet>,
    stats: InternStats,
}

impl Interner {
    /// Empty tables. `full_labels` stands for label sets over the limit.
    pub fn new(limits: InternLimits, full_labels: LabelSet) -> Self {
        let full_frame = Arc::new(Frame::unknown(UnknownReason::TableFull, ""));
        let full = |end: &StackEnd| Arc::new(Stack { frames: [full_frame.clone()].into(), end: *end });
        Self {
            limits,
            frames: HashSet::new(),
            stacks: HashSet::new(),
            label_sets: HashSet::new(),
            full_stacks: StackEnd::ALL.iter().map(full).collect(),
            full_frame,
            full_labels: Arc::new(full_labels),
            stats: InternStats::default(),
        }
    }

    /// The shared frame that equals this one.
    pub fn frame(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some(known) = self.frames.get(&frame) {
            return known.clone();
        }
        let bytes = frame_bytes(&frame);
        if self.frames.len() >= self.limits.frames || !self.fits(bytes) {
            self.stats.refused_frames += 1;
            return self.full_frame.clone();
        }
        self.stats.bytes += bytes;
        let frame = Arc::new(frame);
        self.frames.insert(frame.clone());
        frame
    }

    /// The shared stack of these frames (root first, from [`Self::frame`]).
    pub fn stack(&mut self, frames: &[Arc<Frame>], end: StackEnd) -> Arc<Stack> {
        if let Some(known) = self.stacks.get(&(frames, end) as &dyn StackKey) {
            return known.0.clone();
        }
        let bytes = stack_bytes(frames.len());
        if self.stacks.len() >= self.limits.stacks || !self.fits(bytes) {
            self.stats.refused_stacks += 1;
            return self.full_stack(end);
        }
        self.stats.bytes += bytes;
        let stack = Arc::new(Stack { frames: frames.into(), end });
        self.stacks.insert(StackEntry(stack.clone()));
        stack
    }

    /// The shared label set that equals this one.
    pub fn labels(&mut self, labels: LabelSet) -> Arc<LabelSet> {
        if let Some(known) = self.label_sets.get(&labels) {
            return known.clone();
        }
        let bytes = labels_bytes(&labels);
        if self.label_sets.len() >= self.limits.label_sets || !self.fits(bytes) {
            self.stats.refused_label_sets += 1;
            return self.full_labels.clone();
        }
        self.stats.bytes += bytes;
        let labels = Arc::new(labels);
        self.label_sets.insert(labels.clone());
        labels
    }

    /// The one-frame stack `[unknown: table full]`: also what rows over a window's limit fold to.
    pub fn full_stack(&self, end: StackEnd) -> Arc<Stack> {
        match self.full_stacks.get(end as usize) {
            Some(stack) => stack.clone(),
            None => Arc::new(Stack { frames: [self.full_frame.clone()].into(), end }),
        }
    }

    /// The label set that stands for those over the limit.
    pub fn full_labels(&self) -> Arc<LabelSet> {
        self.full_labels.clone()
    }

    /// Drops what nobody else holds; once a window is often enough.
    pub fn sweep(&mut self) {
        // Stacks first: they hold frames.
        let bytes = &mut self.stats.bytes;
        self.stacks.retain(|s| keep(&s.0, bytes, |s| stack_bytes(s.frames.len())));
        self.frames.retain(|f| keep(f, bytes, frame_bytes));
        self.label_sets.retain(|l| keep(l, bytes, labels_bytes));
        shrink(&mut self.stacks);
        shrink(&mut self.frames);
        shrink(&mut self.label_sets);
    }

    /// What it holds.
    pub fn stats(&self) -> InternStats {
        InternStats {
            frames: self.frames.len(),
            stacks: self.stacks.len(),
            label_sets: self.label_sets.len(),
            ..self.stats
        }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.stats.bytes.saturating_add(bytes) <= self.limits.bytes
    }
}

fn keep<T>(value: &Arc<T>, total: &mut usize, bytes: impl Fn(&T) -> usize) -> bool {
    if Arc::strong_count(value) > 1 {
        return true;
    }
    *total = total.saturating_sub(bytes(value));
    false
}

/// Gives a table's memory back when it is mostly empty.
fn shrink<T: Eq + Hash>(table: &mut HashSet<T>) {
    if table.capacity() > 1024 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2);
    }
}

fn frame_bytes(frame: &Frame) -> usize {
    // The module's text is shared by all frames of a mapping.
    ENTRY_BYTES
        + size_of::<Frame>()
        + 16
        + frame.name.len()
        + frame.signature.as_ref().map_or(0, |s| 16 + s.len())
}

fn stack_bytes(frames: usize) -> usize {
    ENTRY_BYTES + size_of::<Stack>() + frames * size_of::<Arc<Frame>>()
}

fn labels_bytes(labels: &LabelSet) -> usize {
    ENTRY_BYTES + size_of::<LabelSet>() + labels.iter().map(|(_, value)| 24 + 16 + value.len()).sum::<usize>()
}

#[cfg(test)]
mod tests;
