//! A call tree that is put together from the stacks of others.

use super::{FastMap, Frame, Node, NodeId, Tree};
use std::sync::Arc;

/// A tree in the making: what comes to stand at the same place is one node.
#[derive(Debug)]
pub struct GrowingTree {
    nodes: Vec<Node>,
    places: FastMap<(NodeId, Arc<Frame>), NodeId>,
}

impl GrowingTree {
    /// The root of a tree, with the samples that end there; of a tree without nodes nothing.
    pub fn of(tree: &Tree) -> Self {
        let root = tree.nodes.first().map(|root| Node {
            total_count: root.self_count,
            total_weight: root.self_weight,
            ..root.clone()
        });
        Self { nodes: root.into_iter().collect(), places: FastMap::default() }
    }

    /// The node of a frame below another, made if it is not there; 0 is the root.
    pub fn place(&mut self, below: NodeId, frame: &Arc<Frame>) -> NodeId {
        *self.places.entry((below, frame.clone())).or_insert_with(|| {
            self.nodes.push(Node::below(below, frame.clone()));
            self.nodes.len() as NodeId - 1
        })
    }

    /// The samples that end in a node of another tree end in this one, too.
    pub fn end(&mut self, at: NodeId, node: &Node) {
        if let Some(to) = self.nodes.get_mut(at as usize) {
            to.self_count = to.self_count.saturating_add(node.self_count);
            to.self_weight = to.self_weight.saturating_add(node.self_weight);
            (to.total_count, to.total_weight) = (to.self_count, to.self_weight);
        }
    }

    /// The tree: a caller before its callees, these by name.
    pub fn done(self) -> Tree {
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
