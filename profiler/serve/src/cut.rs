//! Cuts a call tree down to its largest nodes (`max_nodes`).
//!
//! In: a tree and a number. Out: a tree with at most that many of its nodes, the largest totals first, and
//! under each node whose callees were cut one leaf `other` with their sum: nothing is lost from any total.
//! A node is never kept without its callers: a caller's total is never smaller, and it stands before.

use emberscope_model::{FastMap, Frame, FrameKind, Node, NodeId, Tree};
use std::cmp::Reverse;
use std::sync::Arc;

/// The cut tree, and how many nodes went; None when nothing needs to.
pub fn cut(tree: &Tree, max_nodes: usize) -> Option<(Tree, usize)> {
    let gone = tree.nodes.len().checked_sub(max_nodes.max(1)).filter(|n| *n > 0)?;
    // A tree may have a million nodes: a few bytes of each, beside it.
    let mut order: Vec<NodeId> = (0..tree.nodes.len() as NodeId).collect();
    // The root first whatever it weighs; of equals, the caller stands before its callee.
    let weight = |at: NodeId| tree.nodes.get(at as usize).map_or(0, |n| n.total_weight);
    let rank = |at: &NodeId| (*at != 0, Reverse(weight(*at)), *at);
    let max_nodes = max_nodes.max(1);
    // Which they are, not in which order.
    order.select_nth_unstable_by_key(max_nodes - 1, rank);
    let mut kept = vec![false; tree.nodes.len()];
    for at in order.iter().take(max_nodes) {
        if let Some(slot) = kept.get_mut(*at as usize) {
            *slot = true;
        }
    }
    drop(order);
    let other = Arc::new(Frame::new(FrameKind::Label, "other", ""));
    let mut out = Tree { nodes: Vec::with_capacity(tree.nodes.len().min(max_nodes * 2)) };
    // Where each node that is kept went, and the `other` under it once there is one.
    let mut place: FastMap<NodeId, NodeId> = FastMap::default();
    let mut others: FastMap<NodeId, NodeId> = FastMap::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let Some(parent) = (if at == 0 { Some(0) } else { place.get(&node.parent).copied() }) else {
            continue;
        };
        if kept.get(at).copied().unwrap_or_default() {
            place.insert(at as NodeId, out.nodes.len() as NodeId);
            out.nodes.push(Node { parent, ..node.clone() });
            continue;
        }
        let id = *others.entry(node.parent).or_insert_with(|| {
            let id = out.nodes.len() as NodeId;
            out.nodes.push(Node::below(parent, Arc::clone(&other)));
            id
        });
        if let Some(sum) = out.nodes.get_mut(id as usize) {
            sum.self_count = sum.self_count.saturating_add(node.total_count);
            sum.self_weight = sum.self_weight.saturating_add(node.total_weight);
            (sum.total_count, sum.total_weight) = (sum.self_count, sum.self_weight);
        }
    }
    Some((out, gone))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for at in (1..nodes.len()).rev() {
            let (parent, total) = (nodes[at].parent as usize, nodes[at].total_weight);
            nodes[parent].total_weight += total;
            nodes[parent].total_count += total;
        }
        Tree { nodes }
    }

    #[test]
    fn the_small_ones_become_other() {
        let whole = tree(&[(0, 0), (0, 10), (1, 5), (1, 1), (1, 2), (0, 3)]);
        let (cut, gone) = cut(&whole, 3).unwrap();
        assert_eq!(gone, 3);
        let shown: Vec<_> = cut.nodes.iter().map(|n| (&*n.frame.name, n.parent, n.total_weight)).collect();
        assert_eq!(shown, [("f0", 0, 21), ("f1", 0, 18), ("f2", 1, 5), ("other", 1, 3), ("other", 0, 3)]);
        assert!(super::cut(&whole, 6).is_none());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            shape in proptest::collection::vec((0usize..40, 0u64..5), 1..40),
            max in 0usize..45,
        ) {
            let whole = tree(&shape);
            let Some((cut, gone)) = cut(&whole, max) else {
                prop_assert!(whole.nodes.len() <= max.max(1));
                return Ok(());
            };
            prop_assert_eq!(gone, whole.nodes.len() - max.max(1));
            let own: u64 = cut.nodes.iter().map(|n| n.self_weight).sum();
            prop_assert_eq!(own, whole.nodes[0].total_weight);
            let real = cut.nodes.iter().filter(|n| &*n.frame.name != "other").count();
            prop_assert_eq!(real, max.max(1));
            for (at, node) in cut.nodes.iter().enumerate().skip(1) {
                prop_assert!((node.parent as usize) < at);
                let below: u64 = cut.nodes.iter().enumerate().skip(1)
                    .filter(|(_, n)| n.parent as usize == at).map(|(_, n)| n.total_weight).sum();
                prop_assert_eq!(node.total_weight, node.self_weight + below);
            }
        }
    }
}
