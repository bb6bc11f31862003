//! One call tree from many stacks.
//!
//! In: stacks with counts, each under the prefix frames of its group. Out: a [`Flat`] tree in preorder,
//! children sorted by name and then kind, so that the same samples give the same tree whatever the
//! order they came in. Frames are one when kind and name are equal, and as the query's [`Detail`] says; where
//! they differ in module, signature or line the node shows the least of them. Limit: nodes.

use crate::error::StoreError;
use crate::flat::{Flat, FlatNode, Symbol, check, hands_on, kind, preorder, told};
use crate::pointer::{PairMap, PointerMap};
use emberscope_model::{Detail, FastMap, Frame, FrameKind, NodeId};
use std::marker::PhantomData;
use std::sync::Arc;

/// Number of a distinct (kind, name).
type SymbolId = u32;

/// A tree in the making. The frames given to it must outlive it (`'a`): it knows them by address.
pub(super) struct TreeBuilder<'a> {
    nodes: Vec<Growing>,
    children: PairMap<(NodeId, SymbolId), NodeId>,
    symbols: Symbols<'a>,
    max_nodes: usize,
}

struct Growing {
    parent: NodeId,
    symbol: SymbolId,
    count: u64,
    weight: u64,
}

#[derive(Default)]
struct Symbols<'a> {
    by_address: PointerMap<SymbolId>,
    by_name: FastMap<(FrameKind, Arc<str>), SymbolId>,
    all: Vec<Symbol>,
    detail: Detail,
    outlives: PhantomData<&'a Frame>,
}

impl<'a> Symbols<'a> {
    fn of_frame(&mut self, frame: &'a Arc<Frame>) -> SymbolId {
        let address = Arc::as_ptr(frame) as usize;
        if let Some(&symbol) = self.by_address.get(&address) {
            return symbol;
        }
        let symbol = self.of_name(&told(frame, self.detail));
        self.by_address.insert(address, symbol);
        symbol
    }

    fn of_name(&mut self, frame: &Arc<Frame>) -> SymbolId {
        let next = self.all.len() as SymbolId;
        let kind = kind(frame, self.detail);
        let symbol = *self.by_name.entry((kind, frame.name.clone())).or_insert(next);
        match self.all.get_mut(symbol as usize) {
            None => self.all.push(Symbol { kind, shown: frame.clone() }),
            Some(known) => known.also(frame),
        }
        symbol
    }
}

impl<'a> TreeBuilder<'a> {
    /// Only a root.
    pub(super) fn new(max_nodes: usize, detail: Detail) -> Self {
        let mut symbols = Symbols { detail, ..Symbols::default() };
        let symbol = symbols.of_name(&Symbol::label("total").shown);
        let root = Growing { parent: 0, symbol, count: 0, weight: 0 };
        Self { nodes: vec![root], children: PairMap::default(), symbols, max_nodes }
    }

    /// The node of a prefix frame `text` (`key=value`) under `parent`.
    pub(super) fn prefix(&mut self, parent: NodeId, text: String) -> Result<NodeId, StoreError> {
        let symbol = self.symbols.of_name(&Symbol::label(text).shown);
        self.child(parent, symbol)
    }

    /// Adds samples of a stack (root first) under `parent`.
    pub(super) fn add(
        &mut self,
        parent: NodeId,
        frames: &'a [Arc<Frame>],
        count: u64,
        weight: u64,
    ) -> Result<(), StoreError> {
        let mut at = parent;
        let mut caller: Option<(SymbolId, &Frame)> = None;
        for frame in frames {
            let symbol = self.symbols.of_frame(frame);
            let one = caller.take_if(|(before, caller)| {
                *before == symbol && hands_on(caller, frame, self.symbols.detail)
            });
            if one.is_none() {
                at = self.child(at, symbol)?;
                caller = Some((symbol, frame));
            }
        }
        self.count(at, count, weight);
        Ok(())
    }

    /// Adds samples that end at a node.
    pub(super) fn count(&mut self, node: NodeId, count: u64, weight: u64) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.count = node.count.saturating_add(count);
            node.weight = node.weight.saturating_add(weight);
        }
    }

    /// The node of a frame under its caller's.
    fn child(&mut self, parent: NodeId, symbol: SymbolId) -> Result<NodeId, StoreError> {
        if let Some(&node) = self.children.get(&(parent, symbol)) {
            return Ok(node);
        }
        check(self.nodes.len() - 1, self.max_nodes)?;
        let node = self.nodes.len() as NodeId;
        self.nodes.push(Growing { parent, symbol, count: 0, weight: 0 });
        self.children.insert((parent, symbol), node);
        Ok(node)
    }

    /// The tree as lists.
    pub(super) fn finish(self) -> Flat {
        let Self { nodes: grown, children, symbols, .. } = self;
        drop(children);
        let mut sorted: Vec<(SymbolId, Symbol)> = (0..).zip(symbols.all).collect();
        sorted.sort_by(|(_, a), (_, b)| a.order(b));
        let mut ranks = vec![0; sorted.len()];
        for (rank, (symbol, _)) in sorted.iter().enumerate() {
            if let Some(slot) = ranks.get_mut(*symbol as usize) {
                *slot = rank as u32;
            }
        }
        let rank = |node: &Growing| ranks.get(node.symbol as usize).copied().unwrap_or_default();
        let shape: Vec<(NodeId, u32)> = grown.iter().map(|node| (node.parent, rank(node))).collect();
        // A parent stands before its callees.
        let mut depths = vec![0_u32; grown.len()];
        for (place, node) in grown.iter().enumerate().skip(1) {
            depths[place] = depths[node.parent as usize] + 1;
        }
        let order = preorder(&shape);
        let placed = order.iter().skip(1).filter_map(|place| {
            let (node, depth) = (grown.get(*place as usize)?, depths[*place as usize]);
            Some(FlatNode { depth, symbol: rank(node), count: node.count, weight: node.weight })
        });
        let root = grown.first().map_or((0, 0), |root| (root.count, root.weight));
        Flat {
            nodes: placed.collect(),
            root,
            symbols: sorted.into_iter().map(|(_, symbol)| symbol).collect(),
        }
    }
}
