//! One call tree from many stacks.
//!
//! In: stacks with counts, each under the prefix frames of its group. Out: a [`Tree`] in preorder,
//! children sorted by name and then kind, so that the same samples give the same tree whatever the
//! order they came in. Frames are one when kind and name are equal, and as the query's [`Detail`] says; where
//! they differ in module, signature or line the node shows the least of them. Limit: nodes.

use super::StoreError;
use super::pointer::{PairMap, PointerMap};
use crate::model::{Detail, Frame, FrameKind, Node, NodeId, Tree};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// Number of a distinct (kind, name).
pub(super) type Symbol = u32;

/// A tree in the making. The frames given to it must outlive it (`'a`): it knows them by address.
pub(super) struct TreeBuilder<'a> {
    nodes: Vec<Growing>,
    children: PairMap<(NodeId, Symbol), NodeId>,
    symbols: Symbols<'a>,
    max_nodes: usize,
}

struct Growing {
    parent: NodeId,
    symbol: Symbol,
    count: u64,
    weight: u64,
}

#[derive(Default)]
struct Symbols<'a> {
    by_address: PointerMap<Symbol>,
    by_name: HashMap<(FrameKind, Arc<str>), Symbol>,
    frames: Vec<Arc<Frame>>,
    detail: Detail,
    outlives: PhantomData<&'a Frame>,
}

impl<'a> Symbols<'a> {
    fn of_frame(&mut self, frame: &'a Arc<Frame>) -> Symbol {
        let address = Arc::as_ptr(frame) as usize;
        if let Some(&symbol) = self.by_address.get(&address) {
            return symbol;
        }
        let symbol = self.of_detail(frame);
        self.by_address.insert(address, symbol);
        symbol
    }

    fn of_detail(&mut self, frame: &Arc<Frame>) -> Symbol {
        if self.detail.lines && frame.line > 0 {
            let name = format!("{}:{}", frame.name, frame.line).into();
            self.of_name(&Arc::new(Frame { name, ..Frame::clone(frame) }))
        } else {
            self.of_name(frame)
        }
    }

    fn of_name(&mut self, frame: &Arc<Frame>) -> Symbol {
        let next = self.frames.len() as Symbol;
        let kind = if self.detail.kinds { frame.kind } else { family(frame.kind) };
        let symbol = *self.by_name.entry((kind, frame.name.clone())).or_insert(next);
        match self.frames.get_mut(symbol as usize) {
            None => self.frames.push(frame.clone()),
            Some(shown) => {
                let approximate = shown.approximate || frame.approximate;
                if detail(frame) < detail(shown) {
                    *shown = frame.clone();
                }
                if shown.approximate != approximate {
                    *shown = Arc::new(Frame { approximate, ..Frame::clone(shown) });
                }
            }
        }
        symbol
    }

    /// Each symbol's place in the order of names.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<Symbol> = (0..self.frames.len() as Symbol).collect();
        order.sort_by_key(|&s| self.frames.get(s as usize).map(|f| (&f.name, f.kind)));
        let mut ranks = vec![0; order.len()];
        for (rank, symbol) in order.into_iter().enumerate() {
            if let Some(slot) = ranks.get_mut(symbol as usize) {
                *slot = rank as u32;
            }
        }
        ranks
    }
}

/// What two frames of one name may differ in.
fn detail(frame: &Frame) -> (FrameKind, &str, Option<&str>, u32) {
    (frame.kind, &frame.module, frame.signature.as_deref(), frame.line)
}

/// One for all ways to run a Java method.
const fn family(kind: FrameKind) -> FrameKind {
    match kind {
        FrameKind::JavaInlined | FrameKind::JavaInterpreted => FrameKind::JavaCompiled,
        other => other,
    }
}

impl<'a> TreeBuilder<'a> {
    /// Only a root.
    pub(super) fn new(max_nodes: usize, detail: Detail) -> Self {
        let mut symbols = Symbols { detail, ..Symbols::default() };
        let symbol = symbols.of_name(&Arc::new(Frame::new(FrameKind::Label, "total", "")));
        let root = Growing { parent: 0, symbol, count: 0, weight: 0 };
        Self { nodes: vec![root], children: PairMap::default(), symbols, max_nodes }
    }

    /// The node of a prefix frame `text` (`key=value`) under `parent`.
    pub(super) fn prefix(&mut self, parent: NodeId, text: String) -> Result<NodeId, StoreError> {
        let symbol = self.symbols.of_name(&Arc::new(Frame::new(FrameKind::Label, text, "")));
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
        for frame in frames {
            let symbol = self.symbols.of_frame(frame);
            at = self.child(at, symbol)?;
        }
        self.count(at, count, weight);
        Ok(())
    }

    /// What stands for a frame in this tree; the caller remembers it.
    pub(super) fn symbol(&mut self, frame: &Arc<Frame>) -> Symbol {
        self.symbols.of_detail(frame)
    }

    /// Adds samples that end at a node.
    pub(super) fn count(&mut self, node: NodeId, count: u64, weight: u64) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.count = node.count.saturating_add(count);
            node.weight = node.weight.saturating_add(weight);
        }
    }

    /// The node of a frame under its caller's.
    pub(super) fn child(&mut self, parent: NodeId, symbol: Symbol) -> Result<NodeId, StoreError> {
        if let Some(&node) = self.children.get(&(parent, symbol)) {
            return Ok(node);
        }
        if self.nodes.len() >= self.max_nodes {
            return Err(StoreError::TooLarge { what: "nodes in its call tree", limit: self.max_nodes });
        }
        let node = self.nodes.len() as NodeId;
        self.nodes.push(Growing { parent, symbol, count: 0, weight: 0 });
        self.children.insert((parent, symbol), node);
        Ok(node)
    }

    /// The tree, with totals.
    pub(super) fn finish(self) -> Tree {
        let Self { nodes: grown, children, symbols, .. } = self;
        drop(children);
        let ranks = symbols.ranks();
        let rank = |node: &Growing| ranks.get(node.symbol as usize).copied().unwrap_or(0);
        // Children of a node lie side by side in `order`, last name first: a stack pops the first.
        let mut order: Vec<NodeId> = (1..grown.len() as NodeId).collect();
        order.sort_unstable_by_key(|&id| {
            grown.get(id as usize).map(|node| (node.parent, std::cmp::Reverse(rank(node))))
        });
        let parent_of = |id: NodeId| grown.get(id as usize).map_or(0, |node| node.parent);
        let mut nodes: Vec<Node> = Vec::with_capacity(grown.len());
        let mut pending: Vec<(NodeId, NodeId)> = vec![(0, 0)];
        while let Some((id, parent)) = pending.pop() {
            let Some(node) = grown.get(id as usize) else { continue };
            let Some(frame) = symbols.frames.get(node.symbol as usize) else { continue };
            let placed = nodes.len() as NodeId;
            nodes.push(Node {
                frame: frame.clone(),
                parent,
                self_count: node.count,
                self_weight: node.weight,
                total_count: node.count,
                total_weight: node.weight,
            });
            let first = order.partition_point(|&child| parent_of(child) < id);
            let own = order.get(first..).unwrap_or_default().iter().take_while(|&&c| parent_of(c) == id);
            pending.extend(own.map(|&child| (child, placed)));
        }
        Tree::with_totals(nodes)
    }
}
