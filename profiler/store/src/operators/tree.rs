//! A call tree, taken apart by the operators that its samples work for.
//!
//! In: a tree whose first frames may be labels. Out: the tree of the samples that are chosen, with a frame
//! `operator=NAME` behind so many labels. Both stand in the same order: a caller before its callees, these by name.
//! Limit: [`MAX_NODES`].

use super::Parted;
use crate::error::StoreError;
use emberscope_model::{
    FastMap, Frame, FrameKind, FrameSign, LabelKey, Node, NodeId, Operator, OperatorWalk, Tree,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes of a tree that is grouped by operator: a call path is there once for each operator below it.
const MAX_NODES: usize = 2_000_000;

/// Samples that end at a node, to be put into the new tree.
struct Ending {
    /// The node below which operators stand apart.
    base: NodeId,
    operator: Operator,
    node: NodeId,
}

/// What each node's frames tell from the root on, and the node of its path that is so many labels deep.
pub fn walk(tree: &Tree, labels: usize, place: usize) -> Vec<(OperatorWalk, NodeId)> {
    let mut signs: FastMap<*const Frame, FrameSign> = FastMap::default();
    let mut walked: Vec<(OperatorWalk, NodeId, usize)> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let above = if at == 0 { None } else { walked.get(node.parent as usize).copied() };
        let (walk, base, depth) = above.unwrap_or_default();
        let depth = if at == 0 { 0 } else { depth + 1 };
        // The first frames below the root are the labels of the group.
        let base = if depth <= place.min(labels) { at as NodeId } else { base };
        let sign = *signs.entry(Arc::as_ptr(&node.frame)).or_insert_with(|| FrameSign::of(&node.frame));
        walked.push((walk.then(sign), base, depth));
    }
    walked.into_iter().map(|(walk, base, _)| (walk, base)).collect()
}

/// The tree of the samples that fulfil the conditions, apart by operator where that is asked for.
pub fn parted(tree: &Tree, asked: &Parted<'_>) -> Result<Tree, StoreError> {
    let walked = walk(tree, asked.query.group.len(), asked.place.unwrap_or(0));
    let mut accepted: BTreeMap<Operator, bool> = BTreeMap::new();
    let mut endings: Vec<Ending> = Vec::new();
    for ((at, node), (walk, base)) in tree.nodes.iter().enumerate().zip(&walked) {
        let operator = walk.operator();
        if (node.self_count, node.self_weight) != (0, 0)
            && *accepted.entry(operator).or_insert_with(|| asked.accepts(operator))
        {
            endings.push(Ending { base: *base, operator, node: at as NodeId });
        }
    }
    if asked.place.is_some() {
        // By name, as callees stand elsewhere; below that in the tree's own order.
        let mut by_name: Vec<Operator> = accepted.into_keys().collect();
        by_name.sort_by_key(|operator| operator.name());
        let rank: BTreeMap<Operator, usize> = by_name.into_iter().zip(0..).collect();
        endings.sort_by_key(|ending| (ending.base, rank.get(&ending.operator).copied(), ending.node));
    }
    let mut growing = Growing::of(tree);
    let mut begun: Option<(NodeId, Operator)> = None;
    for ending in &endings {
        let base = growing.way(ending.base, None)?;
        let below = match asked.place {
            None => base,
            Some(_) if begun == Some((ending.base, ending.operator)) => growing.group,
            Some(_) => {
                begun = Some((ending.base, ending.operator));
                growing.begin(base, ending.operator)?
            }
        };
        let at = growing.way(ending.node, asked.place.map(|_| (ending.base, below)))?;
        growing.end(at, ending.node);
    }
    Ok(Tree::with_totals(growing.nodes))
}

/// A tree that takes paths of another.
struct Growing<'t> {
    tree: &'t Tree,
    nodes: Vec<Node>,
    /// For each node of the other tree where it is in this one, and since which group.
    placed: Vec<(u32, NodeId)>,
    /// Counts the groups.
    groups: u32,
    /// The node of the last group.
    group: NodeId,
}

impl<'t> Growing<'t> {
    fn of(tree: &'t Tree) -> Self {
        let root = tree.nodes.first().map(|root| Node::below(0, root.frame.clone()));
        let mut placed = vec![(u32::MAX, 0); tree.nodes.len()];
        if let Some(root) = placed.first_mut() {
            *root = (0, 0);
        }
        Self { tree, nodes: root.into_iter().collect(), placed, groups: 0, group: 0 }
    }

    fn push(&mut self, node: Node) -> Result<NodeId, StoreError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(StoreError::TooLarge {
                what: "nodes in its call tree by operator",
                limit: MAX_NODES,
            });
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as NodeId - 1)
    }

    fn begin(&mut self, below: NodeId, operator: Operator) -> Result<NodeId, StoreError> {
        let text = format!("{}={}", LabelKey::Operator, operator.name());
        self.groups += 1;
        self.group = self.push(Node::below(below, Arc::new(Frame::new(FrameKind::Label, text, ""))))?;
        Ok(self.group)
    }

    /// The place of a node of the other tree, made with all above it that are missing. `group`: the node of the other
    /// tree above which nothing is apart by operator, and what stands below it in this one.
    fn way(&mut self, node: NodeId, group: Option<(NodeId, NodeId)>) -> Result<NodeId, StoreError> {
        let epoch = if group.is_some() { self.groups } else { 0 };
        let mut missing = Vec::new();
        let mut at = node;
        let mut below = loop {
            if let Some((base, below)) = group
                && base == at
            {
                break below;
            }
            match self.placed.get(at as usize) {
                Some((since, place)) if *since == epoch => break *place,
                None => break 0,
                Some(_) => missing.push(at),
            }
            at = self.tree.nodes.get(at as usize).map_or(0, |node| node.parent);
        };
        while let Some(at) = missing.pop() {
            let Some(node) = self.tree.nodes.get(at as usize) else { continue };
            below = self.push(Node::below(below, node.frame.clone()))?;
            if let Some(placed) = self.placed.get_mut(at as usize) {
                *placed = (epoch, below);
            }
        }
        Ok(below)
    }

    /// The samples of a node of the other tree end at one of this.
    fn end(&mut self, at: NodeId, node: NodeId) {
        if let (Some(to), Some(from)) = (self.nodes.get_mut(at as usize), self.tree.nodes.get(node as usize))
        {
            let (count, weight) = (from.self_count, from.self_weight);
            (to.self_count, to.self_weight, to.total_count, to.total_weight) = (count, weight, count, weight);
        }
    }
}
