//! A call tree whose first frames are labels, under other labels.
//!
//! In: a tree of the labels that a store has, and what labels each of its paths is to stand under. Out: that tree; nodes that
//! come to stand at the same place are one, and callees stand by name.

use emberscope_model::{FastMap, Frame, FrameKind, LabelKey, Node, NodeId, Tree};
use std::sync::Arc;

/// The tree under other labels. `labels` is told a path's values, outermost first, and says keys and values of the new one.
pub fn regrouped(
    tree: &Tree,
    depth: usize,
    mut labels: impl FnMut(&[&Frame]) -> Vec<(LabelKey, Arc<str>)>,
) -> Tree {
    let mut made = Made::of(tree);
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
    made.sorted()
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

/// The tree in the making.
struct Made {
    nodes: Vec<Node>,
    places: FastMap<(NodeId, Arc<Frame>), NodeId>,
}

impl Made {
    fn of(tree: &Tree) -> Self {
        let mut nodes = Vec::with_capacity(tree.nodes.len());
        nodes.extend(tree.nodes.first().map(|root| Node {
            total_count: root.self_count,
            total_weight: root.self_weight,
            ..root.clone()
        }));
        Self { nodes, places: FastMap::default() }
    }

    fn place(&mut self, below: NodeId, frame: &Arc<Frame>) -> NodeId {
        *self.places.entry((below, frame.clone())).or_insert_with(|| {
            self.nodes.push(Node::below(below, frame.clone()));
            self.nodes.len() as NodeId - 1
        })
    }

    fn end(&mut self, at: NodeId, node: &Node) {
        if let Some(to) = self.nodes.get_mut(at as usize) {
            to.self_count = to.self_count.saturating_add(node.self_count);
            to.self_weight = to.self_weight.saturating_add(node.self_weight);
            (to.total_count, to.total_weight) = (to.self_count, to.self_weight);
        }
    }

    /// The nodes, a caller before its callees, these by name.
    fn sorted(self) -> Tree {
        let mut order: Vec<NodeId> = (1..self.nodes.len() as NodeId).collect();
        let of = |at: NodeId| self.nodes.get(at as usize);
        let by = |at: NodeId| {
            of(at).map(|node| (node.parent, &node.frame.name, &node.frame.module, node.frame.kind))
        };
        // The last callee of the last caller first: a stack gives them back in order.
        order.sort_by(|a, b| by(*b).cmp(&by(*a)));
        let mut first: FastMap<NodeId, (usize, usize)> = FastMap::default();
        for (place, at) in order.iter().enumerate() {
            let range = first.entry(of(*at).map_or(0, |node| node.parent)).or_insert((place, place));
            range.1 = place + 1;
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut waiting: Vec<(NodeId, NodeId)> = vec![(0, 0)];
        while let Some((at, parent)) = waiting.pop() {
            let Some(node) = of(at) else { continue };
            let place = nodes.len() as NodeId;
            nodes.push(Node { parent, ..node.clone() });
            let below = first.get(&at).and_then(|(from, until)| order.get(*from..*until));
            waiting.extend(below.unwrap_or_default().iter().map(|callee| (*callee, place)));
        }
        Tree::with_totals(nodes)
    }
}
