//! Frames that are equal share one allocation, within a bound.

use crate::model::Frame;
use std::collections::HashSet;
use std::sync::Arc;

/// Interns frames.
pub struct FrameTable {
    all: HashSet<Arc<Frame>>,
    limit: usize,
    /// Times that it was full and unused frames were dropped.
    pub sweeps: u64,
}

impl FrameTable {
    /// Keeps about `limit` frames; those still used elsewhere do not go.
    pub fn new(limit: usize) -> Self {
        Self { all: HashSet::new(), limit: limit.max(16), sweeps: 0 }
    }
    /// The shared copy of `frame`.
    pub fn intern(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some(known) = self.all.get(&frame) {
            return Arc::clone(known);
        }
        if self.all.len() >= self.limit {
            self.sweeps += 1;
            self.all.retain(|f| Arc::strong_count(f) > 1);
            if self.all.len() >= self.limit {
                // All in use: sharing is given up for what comes, not memory.
                self.all.clear();
            }
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
    }
}
