//! The nodes of a shape on the way to some stacks, as a tree of their own.

use super::super::{Flat, FlatNode, Symbol, check, join, told};
use super::{PREFIX, Shape};
use crate::error::StoreError;
use crate::facts::Stacks;
use crate::sums::SlotSum;
use std::sync::Arc;

/// The place of a symbol that the tree does not have.
const NOWHERE: u32 = u32::MAX;

/// A [`Flat`] tree in the making.
pub(super) struct Growing<'a> {
    shape: &'a Shape,
    stacks: &'a Stacks,
    max_nodes: usize,
    flat: Flat,
    /// For each node the slot that had it last, plus one, and its depth there.
    seen: Vec<(u32, u32)>,
    slots: u32,
    /// Frames of the stacks that were added.
    used: Vec<bool>,
    /// Which of the stacks' nodes were passed, where these are not the tree's.
    passed: Vec<bool>,
}

impl<'a> Growing<'a> {
    pub fn new(shape: &'a Shape, stacks: &'a Stacks, max_nodes: usize) -> Self {
        let nodes = shape.own.as_ref().map_or(stacks.nodes.len(), |own| own.nodes.len());
        Self {
            shape,
            stacks,
            max_nodes,
            flat: Flat::default(),
            seen: vec![(0, 0); nodes],
            slots: 0,
            used: vec![false; stacks.frames.len()],
            passed: vec![false; if shape.own.is_some() { stacks.nodes.len() } else { 0 }],
        }
    }

    /// Adds a node behind the last one: `depth` is 1 under the root.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: the tree has as many nodes as it may.
    pub fn push(&mut self, depth: u32, symbol: u32) -> Result<(), StoreError> {
        check(self.flat.nodes.len(), self.max_nodes)?;
        self.flat.nodes.push(FlatNode { depth, symbol, count: 0, weight: 0 });
        Ok(())
    }

    fn uses(&mut self, frame: u32) {
        if let Some(used) = self.used.get_mut(frame as usize) {
            *used = true;
        }
    }

    /// Adds a slot's stacks below `base` prefix frames.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn slot(&mut self, sums: &[SlotSum], base: u32) -> Result<(), StoreError> {
        self.slots += 1;
        let leaf = |(_, stack, count, weight): &SlotSum| {
            let line = self.stacks.stacks.get(*stack as usize)?;
            let node = match &self.shape.own {
                Some(own) => own.of_node.get(line.node as usize).copied()?,
                None => line.node,
            };
            Some((node, line.node, *count, *weight))
        };
        let mut leaves: Vec<(u32, u32, u64, u64)> = sums.iter().filter_map(leaf).collect();
        // Most often they are.
        leaves.sort_by_key(|(leaf, ..)| *leaf);
        let mut way: Vec<(u32, u32)> = Vec::new();
        for (leaf, node, count, weight) in leaves {
            // Up to what this slot has, then down again.
            let (mut at, mut depth) = (leaf, base);
            way.clear();
            while at != 0 {
                match self.seen.get(at as usize) {
                    Some((slot, deep)) if *slot == self.slots => {
                        depth = *deep;
                        break;
                    }
                    None => break,
                    _ => {}
                }
                let (parent, symbol) = self.shape.node(self.stacks, at);
                way.push((at, symbol));
                at = parent;
            }
            for (at, symbol) in way.iter().rev() {
                depth += 1;
                self.push(depth, *symbol)?;
                if let Some(seen) = self.seen.get_mut(*at as usize) {
                    *seen = (self.slots, depth);
                }
            }
            self.pass(node, &way);
            // Leaves go up, so the last node is this one's; before the first there is only the root.
            let (known_count, known_weight) = match self.flat.nodes.last_mut() {
                Some(last) => (&mut last.count, &mut last.weight),
                None => (&mut self.flat.root.0, &mut self.flat.root.1),
            };
            *known_count = known_count.saturating_add(count);
            *known_weight = known_weight.saturating_add(weight);
        }
        Ok(())
    }

    /// Remembers the frames of a stack.
    fn pass(&mut self, node: u32, way: &[(u32, u32)]) {
        let frame = |stacks: &Stacks, at: u32| stacks.nodes.get(at as usize).copied();
        if self.shape.own.is_none() {
            for (at, _) in way {
                if let Some(node) = frame(self.stacks, *at) {
                    self.uses(node.frame);
                }
            }
            return;
        }
        let mut at = node;
        while at != 0
            && let Some(passed) = self.passed.get_mut(at as usize).filter(|passed| !**passed)
            && let Some(node) = frame(self.stacks, at)
        {
            *passed = true;
            self.uses(node.frame);
            at = node.parent;
        }
    }

    pub fn finish(self, texts: Vec<Arc<str>>) -> Flat {
        let Self { shape, stacks, mut flat, used, .. } = self;
        // The symbols that are in it, as their frames here show them.
        let mut shown: Vec<Option<Symbol>> = vec![None; shape.kinds.len()];
        for (place, frame) in
            stacks.frames.iter().enumerate().filter(|(place, _)| used.get(*place) == Some(&true))
        {
            let symbol = shape.symbol(place as u32) as usize;
            let (Some(slot), Some(kind)) = (shown.get_mut(symbol), shape.kinds.get(symbol)) else { continue };
            let frame = told(frame, shape.detail);
            match slot {
                Some(known) => known.also(&frame),
                None => *slot = Some(Symbol { kind: *kind, shown: frame }),
            }
        }
        let mut place_of = vec![NOWHERE; shown.len()];
        let mut symbols = Vec::with_capacity(shown.len());
        for (symbol, place) in shown.into_iter().zip(&mut place_of) {
            if let Some(symbol) = symbol {
                *place = symbols.len() as u32;
                symbols.push(symbol);
            }
        }
        let mut labels: Vec<(usize, Symbol)> = texts.into_iter().map(Symbol::label).enumerate().collect();
        labels.sort_by(|(_, a), (_, b)| a.order(b));
        let mut label_of = vec![0; labels.len()];
        let mut distinct: Vec<Symbol> = Vec::new();
        for (text, label) in labels {
            if distinct.last().is_none_or(|last| last.order(&label).is_ne()) {
                distinct.push(label);
            }
            if let Some(slot) = label_of.get_mut(text) {
                *slot = distinct.len() - 1;
            }
        }
        let (symbols, of_symbol, of_label) = join(symbols, distinct);
        for node in &mut flat.nodes {
            let place = match node.symbol & PREFIX {
                0 => place_of.get(node.symbol as usize).and_then(|place| of_symbol.get(*place as usize)),
                _ => label_of.get((node.symbol & !PREFIX) as usize).and_then(|place| of_label.get(*place)),
            };
            node.symbol = place.copied().unwrap_or_default();
        }
        Flat { symbols, ..flat }
    }
}
