//! The call tree of all stacks of a part or block, for one [`Detail`]: made once, then only summed up.
//!
//! In: frames, nodes and stacks; then sums by slot and stack. Out: a [`Flat`] tree of the nodes on the way to these
//! stacks, each slot's under the prefix frames of its group. A slot costs what its stacks have of nodes.

use super::{Flat, FlatNode, Symbol, check, join, kind, preorder, told};
use crate::error::StoreError;
use crate::facts::Stacks;
use crate::pointer::PairMap;
use crate::sums::SlotSum;
use emberscope_model::{Detail, FrameKind};
use std::sync::Arc;

/// A symbol that is a prefix frame's.
const PREFIX: u32 = 1 << 31;
/// Not in the list.
const NOWHERE: u32 = u32::MAX;

/// Nodes that are not those of the stacks: where frames become one, so do their nodes.
#[derive(Debug)]
struct Own {
    /// Parent and symbol, in preorder, callees by symbol.
    nodes: Vec<(u32, u32)>,
    /// The node of each of the stacks' nodes.
    of_node: Vec<u32>,
}

/// A tree without sums.
#[derive(Debug)]
pub(crate) struct Shape {
    detail: Detail,
    /// What each symbol tells frames apart by.
    kinds: Vec<FrameKind>,
    symbol_of_frame: Vec<u32>,
    /// None: they are the stacks' own.
    own: Option<Own>,
}

impl Shape {
    /// Of all stacks.
    pub fn of(stacks: &Stacks, detail: Detail) -> Self {
        let symbols = stacks.frames.iter().map(|frame| {
            let shown = told(frame, detail);
            Symbol { kind: kind(&shown, detail), shown }
        });
        let mut symbols: Vec<(u32, Symbol)> = (0..).zip(symbols).collect();
        symbols.sort_by(|(_, a), (_, b)| a.order(b));
        let mut symbol_of_frame = vec![0; symbols.len()];
        let mut kinds = Vec::new();
        for same in symbols.chunk_by(|(_, a), (_, b)| a.order(b).is_eq()) {
            for (frame, _) in same {
                if let Some(slot) = symbol_of_frame.get_mut(*frame as usize) {
                    *slot = kinds.len() as u32;
                }
            }
            kinds.extend(same.first().map(|(_, symbol)| symbol.kind));
        }
        let mut shape = Self { detail, kinds, symbol_of_frame, own: None };
        if !shape.is_ordered(stacks) {
            shape.own = Some(shape.order(stacks));
        }
        shape
    }

    /// Bytes that it takes, estimated.
    pub fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.nodes.len() * 8 + own.of_node.len() * 4);
        own + self.symbol_of_frame.len() * 4 + self.kinds.len()
    }

    /// What it is for.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    fn symbol(&self, frame: u32) -> u32 {
        self.symbol_of_frame.get(frame as usize).copied().unwrap_or_default()
    }

    /// Whether the stacks' nodes are in preorder, with distinct symbols going up under each parent.
    fn is_ordered(&self, stacks: &Stacks) -> bool {
        // From the root to the last node: its place, and the symbol of its last callee, plus one.
        let mut way: Vec<(u32, u32)> = vec![(0, 0)];
        (0..).zip(&stacks.nodes).skip(1).all(|(place, node)| {
            while way.last().is_some_and(|(at, _)| *at != node.parent) {
                way.pop();
            }
            let Some((_, last)) = way.last_mut() else { return false };
            let symbol = self.symbol(node.frame) + 1;
            let goes_up = symbol > *last;
            *last = symbol;
            way.push((place, 0));
            goes_up
        })
    }

    fn order(&self, stacks: &Stacks) -> Own {
        let mut nodes: Vec<(u32, u32)> = vec![(0, 0)];
        let mut of_node: Vec<u32> = vec![0];
        let mut known: PairMap<(u32, u32), u32> = PairMap::default();
        for node in stacks.nodes.iter().skip(1) {
            let parent = of_node.get(node.parent as usize).copied().unwrap_or_default();
            let key = (parent, self.symbol(node.frame));
            let place = *known.entry(key).or_insert_with(|| {
                nodes.push(key);
                nodes.len() as u32 - 1
            });
            of_node.push(place);
        }
        drop(known);
        let order = preorder(&nodes).order;
        let mut place_of = vec![0_u32; nodes.len()];
        for (new, old) in order.iter().enumerate() {
            if let Some(place) = place_of.get_mut(*old as usize) {
                *place = new as u32;
            }
        }
        let place = |old: u32| place_of.get(old as usize).copied().unwrap_or_default();
        let moved = order.iter().filter_map(|old| nodes.get(*old as usize));
        Own {
            nodes: moved.map(|(parent, symbol)| (place(*parent), *symbol)).collect(),
            of_node: of_node.into_iter().map(place).collect(),
        }
    }

    /// Parent and symbol of a node.
    fn node(&self, stacks: &Stacks, at: u32) -> (u32, u32) {
        let node = match &self.own {
            Some(own) => own.nodes.get(at as usize).copied(),
            None => stacks.nodes.get(at as usize).map(|node| (node.parent, self.symbol(node.frame))),
        };
        node.unwrap_or_default()
    }

    /// The tree of some sums. `prefixes` are the prefix frames of each slot, no two of them equal.
    pub fn grow(
        &self,
        stacks: &Stacks,
        sums: &[SlotSum],
        prefixes: &[Vec<Arc<str>>],
        max_nodes: usize,
    ) -> Result<Flat, StoreError> {
        let mut growing = Growing::new(self, stacks, max_nodes);
        let mut slots: Vec<&[SlotSum]> = sums.chunk_by(|a, b| a.0 == b.0).collect();
        let prefix = |slot: &[SlotSum]| prefixes.get(slot.first()?.0 as usize);
        slots.sort_by(|a, b| prefix(a).cmp(&prefix(b)));
        let mut before: &[Arc<str>] = &[];
        let mut texts: Vec<Arc<str>> = Vec::new();
        for slot in slots {
            let prefix = prefix(slot).map_or(&[] as &[_], |prefix| prefix);
            let same = before.iter().zip(prefix).take_while(|(a, b)| a == b).count();
            for (depth, text) in prefix.iter().enumerate().skip(same) {
                texts.push(text.clone());
                growing.push(depth as u32 + 1, PREFIX | (texts.len() as u32 - 1))?;
            }
            before = prefix;
            growing.slot(slot, prefix.len() as u32)?;
        }
        Ok(growing.finish(texts))
    }
}

/// A [`Flat`] tree in the making.
struct Growing<'a> {
    shape: &'a Shape,
    stacks: &'a Stacks,
    max_nodes: usize,
    flat: Flat,
    /// For each node the slot that had it last, plus one, and its depth there.
    seen: Vec<(u32, u32)>,
    slots: u32,
    /// Frames of the stacks that were added.
    used: Vec<bool>,
    /// Of the stacks' nodes, where they are not those of the tree.
    passed: Vec<bool>,
}

impl<'a> Growing<'a> {
    fn new(shape: &'a Shape, stacks: &'a Stacks, max_nodes: usize) -> Self {
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

    fn push(&mut self, depth: u32, symbol: u32) -> Result<(), StoreError> {
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
    fn slot(&mut self, sums: &[SlotSum], base: u32) -> Result<(), StoreError> {
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

    fn finish(self, texts: Vec<Arc<str>>) -> Flat {
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
