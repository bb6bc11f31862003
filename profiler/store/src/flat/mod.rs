//! Call trees as two lists: symbols in the order of names, nodes in preorder, a node's callees by symbol.
//!
//! In: what one part or block knows of a selection, as such lists. Out: their sum, a list of the same shape, and in
//! the end a [`Tree`]. Preorder with ordered callees is the order of the paths from the root, so two trees are
//! merged like two sorted lists: no map, no sort, one step a node. Limit: nodes of the sum.

mod kept;
mod largest;
mod naming;
mod order;
mod shape;

pub(super) use kept::Shapes;
pub(super) use naming::{hands_on, kind, told};
#[cfg(test)]
pub(super) use order::preorder;
pub(super) use shape::Shape;

use super::error::StoreError;
use emberscope_model::{Frame, FrameKind, Node, NodeId, Tree};
use std::cmp::Ordering;
use std::sync::Arc;

/// What frames of one kind (a family of kinds, where these are not told apart) and name are in a tree.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    /// Kind, or the one that stands for its family.
    pub kind: FrameKind,
    /// The least of the frames: its name is all frames' name.
    pub shown: Arc<Frame>,
}

impl Symbol {
    /// A prefix frame's, and the root's.
    pub fn label(text: impl Into<Arc<str>>) -> Self {
        Self { kind: FrameKind::Label, shown: Arc::new(Frame::new(FrameKind::Label, text, "")) }
    }

    /// The order of symbols: by name, then by kind.
    pub fn order(&self, other: &Self) -> Ordering {
        let (name, others) = (&self.shown.name, &other.shown.name);
        let names = if Arc::ptr_eq(name, others) { Ordering::Equal } else { name.cmp(others) };
        names.then(self.kind.cmp(&other.kind))
    }

    /// Takes another frame of the symbol.
    pub fn also(&mut self, frame: &Arc<Frame>) {
        if Arc::ptr_eq(&self.shown, frame) {
            return;
        }
        let approximate = self.shown.approximate || frame.approximate;
        if detail(frame) < detail(&self.shown) {
            self.shown = frame.clone();
        }
        if self.shown.approximate != approximate {
            self.shown = Arc::new(Frame { approximate, ..Frame::clone(&self.shown) });
        }
    }
}

/// What two frames of one name may differ in.
fn detail(frame: &Frame) -> (FrameKind, &str, Option<&str>, u32) {
    (frame.kind, &frame.module, frame.signature.as_deref(), frame.line)
}

/// A node, with the sums of the samples that end there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlatNode {
    /// Frames from the root to the node: 1 under the root.
    pub depth: u32,
    /// Place in [`Flat::symbols`].
    pub symbol: u32,
    pub count: u64,
    pub weight: u64,
}

/// A call tree as lists.
#[derive(Debug, Default)]
pub(super) struct Flat {
    pub symbols: Vec<Symbol>,
    /// The nodes in preorder, without the root.
    pub nodes: Vec<FlatNode>,
    /// Samples that end at the root: count and weight.
    pub root: (u64, u64),
}

/// Two lists of symbols as one, and where each one's symbols went.
pub(super) fn join(one: Vec<Symbol>, two: Vec<Symbol>) -> (Vec<Symbol>, Vec<u32>, Vec<u32>) {
    let mut all = Vec::with_capacity(one.len().max(two.len()));
    let (mut of_one, mut of_two) = (Vec::with_capacity(one.len()), Vec::with_capacity(two.len()));
    let (mut one, mut two) = (one.into_iter().peekable(), two.into_iter().peekable());
    loop {
        let order = match (one.peek(), two.peek()) {
            (Some(a), Some(b)) => a.order(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let place = all.len() as u32;
        let mut from_one = None;
        if order.is_le() {
            of_one.push(place);
            from_one = one.next();
        }
        if order.is_ge() {
            of_two.push(place);
            match (&mut from_one, two.next()) {
                (Some(symbol), Some(other)) => symbol.also(&other.shown),
                (none, other) => *none = other,
            }
        }
        all.extend(from_one);
    }
    (all, of_one, of_two)
}

impl Flat {
    /// The sum of two trees.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: the sum has more than `max_nodes` nodes, the root counted in.
    pub fn merge(self, other: Self, max_nodes: usize) -> Result<Self, StoreError> {
        if self.nodes.is_empty() && self.root == (0, 0) {
            return Ok(other);
        }
        if other.nodes.is_empty() && other.root == (0, 0) {
            return Ok(self);
        }
        let root = (self.root.0.saturating_add(other.root.0), self.root.1.saturating_add(other.root.1));
        let (one, other) = if self.nodes.len() < other.nodes.len() { (other, self) } else { (self, other) };
        let (symbols, of_one, of_two) = join(one.symbols, other.symbols);
        // In one list, what there was at its end and the sum at its beginning: a second one as long as the sum would be most
        // of what a large answer takes. No node is written over before it is read, since as many places as the other tree
        // has nodes lie between.
        let (mut nodes, between) = (one.nodes, other.nodes.len());
        let old = nodes.len();
        nodes.reserve_exact(between);
        nodes.resize(old + between, FlatNode::default());
        nodes.copy_within(..old, between);
        let (mut from, mut two, mut sum) = (between, other.nodes.into_iter().peekable(), 0);
        let moved = |of: &[u32], node: FlatNode| FlatNode {
            symbol: of.get(node.symbol as usize).copied().unwrap_or_default(),
            ..node
        };
        loop {
            let a = nodes.get(from).map(|node| moved(&of_one, *node));
            let b = two.peek().map(|node| moved(&of_two, *node));
            let order = match (&a, &b) {
                // The deeper one is still below what both have passed.
                (Some(a), Some(b)) => b.depth.cmp(&a.depth).then(a.symbol.cmp(&b.symbol)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let (a, b) = (a.filter(|_| order.is_le()), b.filter(|_| order.is_ge()));
            from += usize::from(a.is_some());
            let _ = two.next_if(|_| b.is_some());
            let node = match (a, b) {
                (Some(a), Some(b)) => FlatNode {
                    count: a.count.saturating_add(b.count),
                    weight: a.weight.saturating_add(b.weight),
                    ..a
                },
                (Some(node), None) | (None, Some(node)) => node,
                (None, None) => break,
            };
            check(sum, max_nodes)?;
            if let Some(place) = nodes.get_mut(sum) {
                *place = node;
            }
            sum += 1;
        }
        nodes.truncate(sum);
        Ok(Self { symbols, nodes, root })
    }

    /// The tree, with totals.
    pub fn finish(self) -> Tree {
        Tree::with_totals(self.listed())
    }

    /// The nodes as a tree's, whose sums are both their own and their totals.
    fn listed(self) -> Vec<Node> {
        let Self { symbols, nodes: flat, root: (count, weight) } = self;
        let node = |frame: Arc<Frame>, parent, count, weight| Node {
            frame,
            parent,
            self_count: count,
            self_weight: weight,
            total_count: count,
            total_weight: weight,
        };
        let mut nodes = Vec::with_capacity(flat.len() + 1);
        nodes.push(node(root(), 0, count, weight));
        // From the root to the last node.
        let mut way: Vec<NodeId> = vec![0];
        for FlatNode { depth, symbol, count, weight } in flat {
            way.truncate(depth as usize);
            let parent = way.last().copied().unwrap_or(0);
            way.push(nodes.len() as NodeId);
            let Some(symbol) = symbols.get(symbol as usize) else { continue };
            nodes.push(node(symbol.shown.clone(), parent, count, weight));
        }
        nodes
    }
}

/// The root's frame.
fn root() -> Arc<Frame> {
    Symbol::label("total").shown
}

/// Refuses one node more, the root counted in.
pub(super) fn check(nodes: usize, max_nodes: usize) -> Result<(), StoreError> {
    match nodes + 1 < max_nodes {
        true => Ok(()),
        false => Err(StoreError::TooLarge { what: "nodes in its call tree (query-nodes)", limit: max_nodes }),
    }
}
