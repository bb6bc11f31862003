//! A tree's nodes in preorder with their depth, each node's children in the order in which they stand.
//!
//! A tree only promises that a parent stands before its children; the writers want every node right
//! after its path. Iterative: depth is bounded by nothing but the tree.

use emberscope_model::{Node, NodeId, Tree};

/// No node: the end of a list of children.
const NONE: NodeId = NodeId::MAX;

/// One node on the walk.
pub(super) struct Visit<'a> {
    /// The node's place in the tree.
    pub(super) id: usize,
    /// The node at that place.
    pub(super) node: &'a Node,
    /// How deep the node lies: 0 for the root.
    pub(super) depth: usize,
}

/// Whether to go below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    Go,
    Skip,
}

/// Visits the nodes, each with its depth. The first error of a visit ends the walk.
pub(super) fn preorder<E>(
    tree: &Tree,
    mut visit: impl FnMut(Visit<'_>) -> Result<Below, E>,
) -> Result<(), E> {
    let mut first_child = vec![NONE; tree.nodes.len()];
    let mut next_sibling = vec![NONE; tree.nodes.len()];
    for (id, node) in tree.nodes.iter().enumerate().skip(1).rev() {
        if let Some(first) = first_child.get_mut(node.parent as usize)
            && let Some(next) = next_sibling.get_mut(id)
        {
            *next = *first;
            *first = id as NodeId;
        }
    }
    let at = |list: &[NodeId], id: NodeId| list.get(id as usize).copied().unwrap_or(NONE);
    let mut pending = vec![(0, 0)];
    while let Some((id, depth)) = pending.pop() {
        let Some(node) = tree.nodes.get(id as usize) else { continue };
        let sibling = at(&next_sibling, id);
        if sibling != NONE {
            pending.push((sibling, depth));
        }
        if visit(Visit { id: id as usize, node, depth })? == Below::Go {
            let child = at(&first_child, id);
            if child != NONE {
                pending.push((child, depth + 1));
            }
        }
    }
    Ok(())
}

/// The names on the way from the root to a node, `;` between, in one buffer.
#[derive(Default)]
pub(super) struct Path {
    text: String,
    /// Where each depth's name ends.
    ends: Vec<usize>,
}

impl Path {
    /// Puts the name of a node at this depth (1: below the root), in place of what was that deep.
    pub(super) fn set(&mut self, depth: usize, name: &str) {
        self.ends.truncate(depth.saturating_sub(1));
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
        if !self.ends.is_empty() {
            self.text.push(';');
        }
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }
    /// The whole path: `a;b;c`.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
    /// The path without the last name.
    pub(super) fn parent(&self) -> &str {
        let end = self.ends.len().checked_sub(2).and_then(|at| self.ends.get(at)).copied();
        self.text.get(..end.unwrap_or(0)).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{Frame, FrameKind};
    use std::sync::Arc;

    #[test]
    fn a_node_follows_its_path() {
        // Breadth first, as the promise allows.
        let parents = [(0, "total"), (0, "b"), (0, "a"), (1, "c"), (2, "d"), (3, "e"), (1, "f")];
        let node = |(parent, name): (NodeId, &str)| {
            Node::below(parent, Arc::new(Frame::new(FrameKind::Native, name, "")))
        };
        let tree = Tree { nodes: parents.map(node).into() };
        let (mut path, mut seen) = (Path::default(), Vec::new());
        preorder::<()>(&tree, |v| {
            if v.depth > 0 {
                path.set(v.depth, &v.node.frame.name);
                seen.push((path.parent().to_owned(), path.text().to_owned()));
            }
            Ok(if &*v.node.frame.name == "c" { Below::Skip } else { Below::Go })
        })
        .unwrap();
        let told: Vec<_> = seen.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        assert_eq!(told, [("", "b"), ("b", "b;c"), ("b", "b;f"), ("", "a"), ("a", "a;d")]);
    }

    #[test]
    fn an_empty_tree_is_no_trouble() {
        assert!(preorder::<()>(&Tree { nodes: Vec::new() }, |_| Err(())).is_ok());
    }
}
