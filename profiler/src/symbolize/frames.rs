//! Frames that are equal share one allocation, within a bound.

use crate::model::{FastSet, Frame};
use std::sync::Arc;

/// Unused frames go each time that there are so many more.
const SWEPT: usize = 8_192;

/// Interns frames.
pub struct FrameTable {
    all: FastSet<Arc<Frame>>,
    limit: usize,
    sweep_at: usize,
    /// Times that it was full and unused frames were dropped.
    pub sweeps: u64,
}

impl FrameTable {
    /// Keeps about `limit` frames; those still used elsewhere do not go.
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(16);
        Self { all: FastSet::default(), limit, sweep_at: limit.min(SWEPT), sweeps: 0 }
    }
    /// The shared copy of `frame`.
    pub fn intern(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some(known) = self.all.get(&frame) {
            return Arc::clone(known);
        }
        if self.all.len() >= self.sweep_at {
            self.sweeps += u64::from(self.all.len() >= self.limit);
            self.all.retain(|f| Arc::strong_count(f) > 1);
            if self.all.len() >= self.limit {
                // All in use: sharing is given up for what comes, not memory.
                self.all.clear();
            }
            self.sweep_at = (self.all.len() + SWEPT).min(self.limit);
        }
        let frame = Arc::new(frame);
        self.all.insert(Arc::clone(&frame));
        frame
    }
    /// How many it holds.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FrameKind;

    #[test]
    fn shares_and_is_bounded() {
        let mut table = FrameTable::new(16);
        let a = table.intern(Frame::new(FrameKind::Native, "a", "m"));
        assert!(Arc::ptr_eq(&a, &table.intern(Frame::new(FrameKind::Native, "a", "m"))));
        assert!(!Arc::ptr_eq(&a, &table.intern(Frame::new(FrameKind::Kernel, "a", "m"))));
        for i in 0..100 {
            table.intern(Frame::new(FrameKind::Native, format!("f{i}"), ""));
            assert!(table.len() <= 16);
        }
        assert!(Arc::ptr_eq(&a, &table.intern(Frame::new(FrameKind::Native, "a", "m"))));
        assert!(table.sweeps > 0);
    }

    #[test]
    fn what_is_unused_goes_before_there_is_no_room() {
        let mut table = FrameTable::new(10 * SWEPT);
        let frame = |i: usize| Frame::new(FrameKind::Native, format!("f{i}"), "");
        let used: Vec<_> = (0..SWEPT / 2).map(|i| table.intern(frame(i))).collect();
        (SWEPT..2 * SWEPT).for_each(|i| drop(table.intern(frame(i))));
        assert!(table.len() < SWEPT + 1 && table.sweeps == 0, "{}", table.len());
        assert!(Arc::ptr_eq(&used[7], &table.intern(frame(7))));
    }
}
