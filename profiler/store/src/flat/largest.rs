//! A tree's largest nodes, cut before they are nodes of a [`Tree`]: a second list beside this one would be most of what a
//! large answer takes.

use super::{Flat, FlatNode, Symbol};
use crate::cut;
use emberscope_model::Tree;

impl Flat {
    /// The tree's largest nodes with their totals, and how many nodes went: cut before they are nodes of a tree, which take
    /// twice as much.
    pub fn largest(mut self, max_nodes: usize) -> (Tree, usize) {
        match (self.nodes.len() + 1).saturating_sub(max_nodes.max(1)) {
            0 => (self.finish(), 0),
            gone => {
                self.sum_up();
                self.cut(max_nodes.max(1));
                let mut nodes = self.listed();
                cut::own(&mut nodes);
                (Tree { nodes }, gone)
            }
        }
    }

    /// Adds to each node what lies below it.
    fn sum_up(&mut self) {
        // Sums of the callees of the node that comes next from behind, by their depth.
        let mut below: Vec<(u64, u64)> = vec![(0, 0)];
        let add = |sum: &mut (u64, u64), (count, weight): (u64, u64)| {
            *sum = (sum.0.saturating_add(count), sum.1.saturating_add(weight));
        };
        for node in self.nodes.iter_mut().rev() {
            let depth = node.depth as usize;
            below.resize(below.len().max(depth + 2), (0, 0));
            let mut total = (node.count, node.weight);
            add(&mut total, below.get_mut(depth + 1).map(std::mem::take).unwrap_or_default());
            if let Some(sum) = below.get_mut(depth) {
                add(sum, total);
            }
            (node.count, node.weight) = total;
        }
        add(&mut self.root, below.get(1).copied().unwrap_or_default());
    }

    /// Leaves the largest nodes, the root counted in, of a tree whose sums are totals, and under each whose callees went one
    /// node with their sum. In its place: what is left is never ahead of what is read.
    fn cut(&mut self, max_nodes: usize) {
        let Self { nodes, symbols, root } = self;
        let weight = |at: usize| match at.checked_sub(1) {
            Some(at) => nodes.get(at).map_or(0, |node| node.weight),
            None => root.1,
        };
        let kept = cut::kept(nodes.len() + 1, weight, max_nodes);
        let other = symbols.len() as u32;
        symbols.push(Symbol::label(cut::OTHER));
        // For each node from the root to the last one that was kept, where the node of its callees that went is.
        let mut way: Vec<Option<usize>> = vec![None];
        let mut end = 0;
        for (at, kept) in kept.into_iter().skip(1).enumerate() {
            let Some(&node) = nodes.get(at) else { break };
            let depth = node.depth as usize;
            if depth > way.len() {
                // Below one that went.
                continue;
            }
            way.truncate(depth);
            let sum = way.last_mut().filter(|_| !kept);
            let place = match sum {
                Some(Some(place)) => {
                    if let Some(sum) = nodes.get_mut(*place) {
                        sum.count = sum.count.saturating_add(node.count);
                        sum.weight = sum.weight.saturating_add(node.weight);
                    }
                    continue;
                }
                Some(none) => {
                    *none = Some(end);
                    FlatNode { symbol: other, ..node }
                }
                None => {
                    way.push(None);
                    node
                }
            };
            if let Some(slot) = nodes.get_mut(end) {
                *slot = place;
            }
            end += 1;
        }
        nodes.truncate(end);
        nodes.shrink_to_fit();
    }
}
