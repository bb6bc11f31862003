//! Methods by the samples in them and below them, without a call tree.
//!
//! In: stacks with their sums, part by part. Out: a row for each method. A stack adds to each of its methods once,
//! however often that calls itself, so rows of different parts are simply added up, and what is held grows with the
//! methods, not with the ways to them. Limit: methods.

use super::error::StoreError;
use super::flat::told;
use emberscope_model::{Answer, Detail, FastMap, Frame, FrameKind, MethodAnswer, MethodSum};
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Methods in the making.
#[derive(Debug)]
pub(super) struct Methods {
    detail: Detail,
    max: usize,
    places: FastMap<(Arc<str>, Arc<str>), u32>,
    rows: Vec<MethodSum>,
    /// For each row the stack that counted it last.
    counted_by: Vec<u64>,
    stacks: u64,
}

impl Methods {
    /// No methods yet, and never more than `max`.
    pub fn new(detail: Detail, max: usize) -> Self {
        let (places, rows, counted_by) = Default::default();
        Self { detail, max, places, rows, counted_by, stacks: 0 }
    }

    /// The row of a frame's method.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are as many methods as may be.
    pub fn place(&mut self, frame: &Arc<Frame>) -> Result<u32, StoreError> {
        let shown = told(frame, self.detail);
        let place = self.named(shown.name.clone(), shown.module.clone())?;
        self.ran_as(place, &[shown.kind]);
        Ok(place)
    }

    fn named(&mut self, name: Arc<str>, module: Arc<str>) -> Result<u32, StoreError> {
        match self.places.entry((name, module)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(_) if self.rows.len() >= self.max => {
                Err(StoreError::TooLarge { what: "methods (query-nodes)", limit: self.max })
            }
            Entry::Vacant(new) => {
                let (name, module) = new.key().clone();
                self.rows.push(MethodSum { name, module, ..MethodSum::default() });
                self.counted_by.push(0);
                Ok(*new.insert(self.rows.len() as u32 - 1))
            }
        }
    }

    fn ran_as(&mut self, place: u32, kinds: &[FrameKind]) {
        if let Some(row) = self.rows.get_mut(place as usize) {
            for kind in kinds {
                if !row.kinds.contains(kind) {
                    row.kinds.push(*kind);
                }
            }
        }
    }

    /// Adds samples of a stack: the rows of its frames, from its leaf to its root.
    pub fn add(&mut self, frames: impl Iterator<Item = u32>, count: u64, weight: u64) {
        self.stacks += 1;
        for (above_leaf, place) in frames.enumerate() {
            let Some(row) = self.rows.get_mut(place as usize) else { continue };
            if above_leaf == 0 {
                row.self_count = row.self_count.saturating_add(count);
                row.self_weight = row.self_weight.saturating_add(weight);
            }
            let Some(by) = self.counted_by.get_mut(place as usize).filter(|by| **by != self.stacks) else {
                continue;
            };
            *by = self.stacks;
            row.total_count = row.total_count.saturating_add(count);
            row.total_weight = row.total_weight.saturating_add(weight);
        }
    }

    /// Adds the rows of other parts.
    ///
    /// # Errors
    /// As [`Self::place`]; some of the rows are added then.
    pub fn join(&mut self, other: Self) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            *self = other;
            return Ok(());
        }
        for MethodSum { name, module, kinds, self_count, self_weight, total_count, total_weight } in
            other.rows
        {
            let place = self.named(name, module)?;
            self.ran_as(place, &kinds);
            let Some(row) = self.rows.get_mut(place as usize) else { continue };
            row.self_count = row.self_count.saturating_add(self_count);
            row.self_weight = row.self_weight.saturating_add(self_weight);
            row.total_count = row.total_count.saturating_add(total_count);
            row.total_weight = row.total_weight.saturating_add(total_weight);
        }
        Ok(())
    }

    /// The rows, by name and module.
    pub fn finish(self) -> Vec<MethodSum> {
        let mut rows = self.rows;
        rows.iter_mut().for_each(|row| row.kinds.sort_unstable());
        rows.sort_unstable_by(|a, b| (&a.name, &a.module).cmp(&(&b.name, &b.module)));
        rows
    }
}

/// The methods of a tree that tells kinds apart, where nothing better is known than the tree.
pub(super) fn of_tree(answer: Answer) -> MethodAnswer {
    let Answer { tree, range, windows, quality } = answer;
    let mut methods = Methods::new(Detail::default(), usize::MAX);
    for (leaf, node) in
        tree.nodes.iter().enumerate().filter(|(_, node)| node.self_count | node.self_weight > 0)
    {
        let (count, weight) = (node.self_count, node.self_weight);
        let (mut at, mut places) = (leaf, Vec::new());
        // The root is no method.
        while let Some(node) = tree.nodes.get(at).filter(|_| at != 0) {
            places.extend(methods.place(&node.frame));
            at = node.parent as usize;
        }
        methods.add(places.into_iter(), count, weight);
    }
    MethodAnswer { methods: methods.finish(), range, windows, quality }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, name: &str, module: &str) -> Arc<Frame> {
        Arc::new(Frame::new(kind, name, module))
    }

    fn add(methods: &mut Methods, leaf_up: &[&Arc<Frame>], count: u64) {
        let places: Vec<u32> = leaf_up.iter().map(|frame| methods.place(frame).unwrap()).collect();
        methods.add(places.into_iter(), count, count * 10);
    }

    #[test]
    fn a_stack_counts_a_method_once_in_whatever_way_it_ran() {
        let interpreted = frame(FrameKind::JavaInterpreted, "a.B.fib", "app.jar");
        let compiled = frame(FrameKind::JavaCompiled, "a.B.fib", "app.jar");
        let (one, two) = (frame(FrameKind::Native, "free", "libc"), frame(FrameKind::Native, "free", "libm"));
        let mut left = Methods::new(Detail::default(), 9);
        add(&mut left, &[&compiled, &interpreted, &compiled], 3);
        add(&mut left, &[&one, &compiled], 2);
        let mut right = Methods::new(Detail::default(), 9);
        add(&mut right, &[&two, &one], 5);
        add(&mut right, &[&interpreted], 7);
        left.join(right).unwrap();
        let rows = left.finish();
        let seen: Vec<_> = rows.iter().map(|m| (&*m.name, &*m.module, m.self_count, m.total_count)).collect();
        assert_eq!(
            seen,
            [("a.B.fib", "app.jar", 10, 12), ("free", "libc", 2, 7), ("free", "libm", 5, 5)],
            "one name in two modules is two methods"
        );
        assert_eq!(rows[0].kinds, [FrameKind::JavaCompiled, FrameKind::JavaInterpreted]);
        assert_eq!((rows[0].self_weight, rows[0].total_weight), (100, 120));
    }

    #[test]
    fn more_methods_than_may_be_are_refused() {
        let mut methods = Methods::new(Detail::default(), 1);
        add(&mut methods, &[&frame(FrameKind::Native, "a", "")], 1);
        add(&mut methods, &[&frame(FrameKind::JavaCompiled, "a", "")], 1);
        assert!(matches!(
            methods.place(&frame(FrameKind::Native, "b", "")),
            Err(StoreError::TooLarge { limit: 1, .. })
        ));
    }
}
