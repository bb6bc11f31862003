//! Cuts a call tree down to its largest nodes (`max_nodes`).
//!
//! In: a tree and a number. Out: a tree with at most that many of its nodes, the largest totals first, and
//! under each node whose callees were cut one leaf `other` with their sum: nothing is lost from any total.
//! A node is never kept without its callers: a caller's total is never smaller, and it stands before.

use emberscope_model::{Answer, FastMap, Frame, FrameKind, Node, NodeId, Tree};
use std::cmp::Reverse;
use std::sync::Arc;

/// The name of what stands for the callees that were cut.
pub(crate) const OTHER: &str = "other";

/// The answer with its tree's largest nodes, and how many nodes went.
pub fn cut(mut answer: Answer, max_nodes: usize) -> (Answer, usize) {
    let gone = answer.tree.nodes.len().saturating_sub(max_nodes.max(1));
    if gone > 0 {
        answer.tree = largest(&answer.tree, max_nodes);
    }
    (answer, gone)
}

/// Which of a tree's nodes are kept, by their places, of what each weighs with all below it; callers stand before
/// callees, the root first. Which they are, not in which order, so they are not sorted.
pub(crate) fn kept(count: usize, weight: impl Fn(usize) -> u64, max_nodes: usize) -> Vec<bool> {
    // A tree may have a million nodes: a few bytes of each, beside it.
    let mut order: Vec<NodeId> = (0..count as NodeId).collect();
    let mut kept = vec![false; count];
    if count > max_nodes {
        // The root first whatever it weighs; of equals, the caller stands before its callee.
        let rank = |at: &NodeId| (*at != 0, Reverse(weight(*at as usize)), *at);
        order.select_nth_unstable_by_key(max_nodes - 1, rank);
    }
    for at in order.iter().take(max_nodes) {
        if let Some(slot) = kept.get_mut(*at as usize) {
            *slot = true;
        }
    }
    kept
}

/// The tree of the largest nodes, one at the least.
fn largest(tree: &Tree, max_nodes: usize) -> Tree {
    let weight = |at: usize| tree.nodes.get(at).map_or(0, |node| node.total_weight);
    let kept = kept(tree.nodes.len(), weight, max_nodes.max(1));
    let other = Arc::new(Frame::new(FrameKind::Label, OTHER, ""));
    let mut out: Vec<Node> = Vec::with_capacity(tree.nodes.len().min(max_nodes.max(1).saturating_mul(2)));
    // Where each node that is kept went, and the `other` under it once there is one.
    let mut place: FastMap<NodeId, NodeId> = FastMap::default();
    let mut others: FastMap<NodeId, NodeId> = FastMap::default();
    for ((at, node), kept) in (0..).zip(&tree.nodes).zip(kept) {
        let above = node.parent;
        let Some(parent) = (if at == 0 { Some(0) } else { place.get(&above).copied() }) else { continue };
        let id = match kept {
            true => {
                place.insert(at, out.len() as NodeId);
                out.push(Node::below(parent, node.frame.clone()));
                out.len() as NodeId - 1
            }
            false => *others.entry(above).or_insert_with(|| {
                out.push(Node::below(parent, Arc::clone(&other)));
                out.len() as NodeId - 1
            }),
        };
        if let Some(sum) = out.get_mut(id as usize) {
            sum.total_count = sum.total_count.saturating_add(node.total_count);
            sum.total_weight = sum.total_weight.saturating_add(node.total_weight);
        }
    }
    own(&mut out);
    Tree { nodes: out }
}

/// Gives each node what its callees have not of its total.
pub(crate) fn own(nodes: &mut [Node]) {
    for node in nodes.iter_mut() {
        (node.self_count, node.self_weight) = (node.total_count, node.total_weight);
    }
    for at in 1..nodes.len() {
        let (before, rest) = nodes.split_at_mut(at);
        if let Some(node) = rest.first()
            && let Some(parent) = before.get_mut(node.parent as usize)
        {
            parent.self_count = parent.self_count.saturating_sub(node.total_count);
            parent.self_weight = parent.self_weight.saturating_sub(node.total_weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat::{Flat, FlatNode, Symbol};
    use emberscope_model::{Quality, TimeRange, WallTime};
    use proptest::prelude::*;

    /// A tree of (parent, self weight), totals summed up.
    fn tree(shape: &[(usize, u64)]) -> Tree {
        let mut nodes: Vec<Node> = Vec::new();
        for (at, (parent, own)) in shape.iter().enumerate() {
            let frame = Arc::new(Frame::new(FrameKind::Native, format!("f{at}"), ""));
            let parent = (*parent).min(at.saturating_sub(1)) as NodeId;
            nodes.push(Node {
                frame,
                parent,
                self_count: *own,
                self_weight: *own,
                total_count: *own,
                total_weight: *own,
            });
        }
        Tree::with_totals(nodes)
    }

    /// An answer's tree, cut.
    fn cut_tree(tree: Tree, max_nodes: usize) -> (Tree, usize) {
        let range = TimeRange { from: WallTime(0), until: WallTime(1) };
        let (answer, gone) = cut(Answer { tree, range, windows: 1, quality: Quality::default() }, max_nodes);
        (answer.tree, gone)
    }

    #[test]
    fn the_small_ones_become_other() {
        let whole = tree(&[(0, 0), (0, 10), (1, 5), (1, 1), (1, 2), (0, 3)]);
        let (less, gone) = cut_tree(whole.clone(), 3);
        assert_eq!(gone, 3);
        let shown: Vec<_> = less.nodes.iter().map(|n| (&*n.frame.name, n.parent, n.total_weight)).collect();
        assert_eq!(shown, [("f0", 0, 21), ("f1", 0, 18), ("f2", 1, 5), ("other", 1, 3), ("other", 0, 3)]);
        let (all, gone) = cut_tree(whole.clone(), 6);
        assert_eq!((all.nodes, gone), (whole.nodes, 0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            shape in proptest::collection::vec((0usize..40, 0u64..5), 1..40),
            max in 0usize..45,
        ) {
            let whole = tree(&shape);
            let (less, gone) = cut_tree(whole.clone(), max);
            prop_assert_eq!(gone, whole.nodes.len().saturating_sub(max.max(1)));
            let own: u64 = less.nodes.iter().map(|n| n.self_weight).sum();
            prop_assert_eq!(own, whole.nodes[0].total_weight);
            let real = less.nodes.iter().filter(|n| &*n.frame.name != "other").count();
            prop_assert_eq!(real, max.max(1).min(whole.nodes.len()));
            for (at, node) in less.nodes.iter().enumerate().skip(1) {
                prop_assert!((node.parent as usize) < at);
                let below: u64 = less.nodes.iter().enumerate().skip(1)
                    .filter(|(_, n)| n.parent as usize == at).map(|(_, n)| n.total_weight).sum();
                prop_assert_eq!(node.total_weight, node.self_weight + below);
            }
        }

        /// Whether it is cut before it is a tree or after.
        #[test]
        fn lists_are_cut_as_trees_are(
            shape in proptest::collection::vec((1_u32..6, 0_u32..3, 0_u64..5), 0..40),
            root in 0_u64..5,
            max in 0usize..45,
        ) {
            let flat = || {
                let mut depth = 0;
                let nodes = shape.iter().map(|(deep, symbol, own)| {
                    depth = (*deep).min(depth + 1);
                    FlatNode { depth, symbol: *symbol, count: *own, weight: own * 10 }
                });
                let symbols = ["a", "b", "c"].map(Symbol::label).into();
                Flat { nodes: nodes.collect(), symbols, root: (root, root * 10) }
            };
            let (of_list, of_tree) = (flat().largest(max), cut_tree(flat().finish(), max));
            prop_assert_eq!((of_list.0.nodes, of_list.1), (of_tree.0.nodes, of_tree.1));
        }
    }
}
