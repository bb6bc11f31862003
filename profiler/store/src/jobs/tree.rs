//! A call tree whose first frames are labels, under other labels.
//!
//! In: a tree of the labels that a store has, and what labels each of its paths is to stand under. Out: that tree; nodes that
//! come to stand at the same place are one, and callees stand by name.

use emberscope_model::{Frame, FrameKind, GrowingTree, LabelKey, NodeId, Tree};
use std::sync::Arc;

/// The tree under other labels. `labels` is told a path's values, outermost first, and says keys and values of the new one.
pub fn regrouped(
    tree: &Tree,
    depth: usize,
    mut labels: impl FnMut(&[&Frame]) -> Vec<(LabelKey, Arc<str>)>,
) -> Tree {
    let mut made = GrowingTree::of(tree);
    // For each node how many labels stand above it and it is, and its place in the new tree.
    let mut placed: Vec<(usize, NodeId)> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let above = if at == 0 { None } else { placed.get(node.parent as usize).copied() };
        let Some((above, below)) = above else {
            placed.push((0, 0));
            continue;
        };
        if above >= depth {
            let place = made.place(below, &node.frame);
            made.end(place, node);
            placed.push((above, place));
            continue;
        }
        let mut place = 0;
        if above + 1 == depth {
            for (key, value) in labels(&path(tree, at, depth)) {
                place = made.place(place, &label(key, &value));
            }
            // A sample without a frame ends at its last label.
            made.end(place, node);
        }
        placed.push((above + 1, place));
    }
    made.done()
}

/// The labels down to a node, outermost first.
fn path(tree: &Tree, at: usize, depth: usize) -> Vec<&Frame> {
    let mut path = Vec::with_capacity(depth);
    let mut node = tree.nodes.get(at);
    while let Some(here) = node.filter(|_| path.len() < depth) {
        path.push(&*here.frame);
        node = tree.nodes.get(here.parent as usize);
    }
    path.reverse();
    path
}

fn label(key: LabelKey, value: &str) -> Arc<Frame> {
    let value = if value.is_empty() { crate::limits::NO_VALUE } else { value };
    Arc::new(Frame::new(FrameKind::Label, format!("{}={value}", key.name()), ""))
}
