//! The call tree of all stacks of a part or block, for one [`Detail`]: made once, then only summed up.
//!
//! In: frames, nodes and stacks; then sums by slot and stack. Out: a [`Flat`] tree of the nodes on the way to these
//! stacks, each slot's under the prefix frames of its group. A slot costs what its stacks have of nodes.

mod growing;

use super::order::Callees;
use super::{Flat, Symbol, hands_on, kind, told};
use crate::error::StoreError;
use crate::facts::{StackNode, Stacks};
use crate::sums::SlotSum;
use emberscope_model::{Detail, FrameKind};
use growing::Growing;
use std::cmp::Reverse;
use std::sync::Arc;

/// A symbol that is a prefix frame's.
const PREFIX: u32 = 1 << 31;

/// Nodes that are not those of the stacks: where frames become one, so do their nodes.
#[derive(Debug)]
struct Own {
    /// Parent and symbol, in preorder, callees by symbol.
    nodes: Vec<(u32, u32)>,
    /// The node of each of the stacks' nodes.
    of_node: Vec<u32>,
}

impl Own {
    /// Whether the nodes are in preorder, with distinct symbols going up under each parent.
    fn is_ordered(&self) -> bool {
        // From the root to the last node: its place, and the symbol of its last callee, plus one.
        let mut way: Vec<(u32, u32)> = vec![(0, 0)];
        (0..).zip(&self.nodes).skip(1).all(|(place, (parent, symbol))| {
            while way.last().is_some_and(|(at, _)| at != parent) {
                way.pop();
            }
            let Some((_, last)) = way.last_mut() else { return false };
            let symbol = *symbol + 1;
            let goes_up = symbol > *last;
            *last = symbol;
            way.push((place, 0));
            goes_up
        })
    }

    /// The same nodes in that order, those of one parent and symbol as one.
    fn ordered(self) -> Self {
        let Self { nodes: listed, of_node } = self;
        let callees = Callees::of(&listed);
        let symbol = |place: u32| listed.get(place as usize).map_or(0, |(_, symbol)| *symbol);
        let mut nodes: Vec<(u32, u32)> = Vec::with_capacity(listed.len());
        let mut place_of = vec![0_u32; listed.len()];
        // Nodes still to come, each some of the listed ones, which lie side by side in `members`: the first, and the parent.
        let mut members: Vec<u32> = vec![0];
        let mut pending: Vec<(usize, u32)> = vec![(0, 0)];
        let mut below: Vec<u32> = Vec::new();
        while let Some((first, parent)) = pending.pop() {
            let place = nodes.len() as u32;
            let same = members.get(first..).unwrap_or_default();
            nodes.push((parent, same.first().map_or(0, |member| symbol(*member))));
            below.clear();
            for member in same {
                if let Some(slot) = place_of.get_mut(*member as usize) {
                    *slot = place;
                }
                below.extend_from_slice(callees.below(*member));
            }
            if same.len() > 1 {
                below.sort_by_key(|callee| Reverse(symbol(*callee)));
            }
            members.truncate(first);
            // The last symbol first: what is pushed last comes next.
            for one in below.chunk_by(|a, b| symbol(*a) == symbol(*b)) {
                pending.push((members.len(), place));
                members.extend_from_slice(one);
            }
        }
        let of = |listed: u32| place_of.get(listed as usize).copied().unwrap_or_default();
        Self { nodes, of_node: of_node.into_iter().map(of).collect() }
    }
}

/// A tree without sums.
#[derive(Debug)]
pub(crate) struct Shape {
    detail: Detail,
    /// What each symbol tells frames apart by.
    kinds: Vec<FrameKind>,
    symbol_of_frame: Vec<u32>,
    /// None: the nodes are the stacks' own.
    own: Option<Own>,
}

impl Shape {
    /// The shape of all stacks.
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
        let listed = shape.listed(stacks);
        let folded = listed.nodes.len() < stacks.nodes.len();
        shape.own = match listed.is_ordered() {
            false => Some(listed.ordered()),
            true => folded.then_some(listed),
        };
        shape
    }

    /// Bytes of memory that the shape takes, estimated.
    pub fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.nodes.len() * 8 + own.of_node.len() * 4);
        own + self.symbol_of_frame.len() * 4 + self.kinds.len()
    }

    /// The detail that the shape is for.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    fn symbol(&self, frame: u32) -> u32 {
        self.symbol_of_frame.get(frame as usize).copied().unwrap_or_default()
    }

    /// Whether a node is the method that its caller hands on to.
    fn is_handed_on(&self, stacks: &Stacks, node: &StackNode) -> bool {
        let Some(caller) = stacks.nodes.get(node.parent as usize).filter(|_| node.parent != 0) else {
            return false;
        };
        self.symbol(caller.frame) == self.symbol(node.frame)
            && stacks
                .frames
                .get(caller.frame as usize)
                .zip(stacks.frames.get(node.frame as usize))
                .is_some_and(|(caller, callee)| hands_on(caller, callee, self.detail))
    }

    /// The stacks' nodes as they are listed, without those that are one with their caller: parent and symbol of each, and
    /// the node of each of the stacks'. Of a recursion through a bridge each round stays.
    fn listed(&self, stacks: &Stacks) -> Own {
        // Most of them stay: lists that grow would take twice as much.
        let mut nodes: Vec<(u32, u32)> = Vec::with_capacity(stacks.nodes.len());
        let mut of_node: Vec<u32> = Vec::with_capacity(stacks.nodes.len());
        nodes.push((0, 0));
        of_node.push(0);
        let mut one = vec![false; stacks.nodes.len()];
        for (at, node) in stacks.nodes.iter().enumerate().skip(1) {
            let parent = of_node.get(node.parent as usize).copied().unwrap_or_default();
            if one.get(node.parent as usize) == Some(&false) && self.is_handed_on(stacks, node) {
                if let Some(slot) = one.get_mut(at) {
                    *slot = true;
                }
                of_node.push(parent);
            } else {
                of_node.push(nodes.len() as u32);
                nodes.push((parent, self.symbol(node.frame)));
            }
        }
        Own { nodes, of_node }
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
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: the tree has more than `max_nodes` nodes, the root counted in.
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

#[cfg(test)]
mod tests;
