//! Shapes of a tree that an answer may be asked in: a task's way as one frame, somebody's own code alone.
//!
//! In: a tree. Out: a new one, of the same totals: what a frame that is left out spent counts for its caller. The page does
//! the same by itself (`profiler/ui/flame/shape.js`).

use super::fold::fold;
use emberscope_model::{Frame, FrameKind, GrowingTree, NodeId, Tree};

/// Which shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The frames that every task shares, as one.
    pub fold: bool,
    /// Beginnings of names: frames of other names are left out. Empty: none is.
    pub only: Vec<String>,
}

impl Shape {
    /// Beginnings that may be asked for, at most.
    pub const MAX_ONLY: usize = 32;

    /// Reads beginnings of names, with commas between them.
    ///
    /// # Errors
    /// They are more than [`Self::MAX_ONLY`]: how many.
    pub fn beginnings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, usize> {
        let names = texts.into_iter().flat_map(|text| text.split(',')).map(str::trim);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.len() > Self::MAX_ONLY { Err(names.len()) } else { Ok(names) }
    }

    /// The tree in this shape.
    pub fn of(&self, tree: Tree) -> Tree {
        let tree = if self.fold { fold(&tree) } else { tree };
        if self.only.is_empty() { tree } else { only(&tree, &self.only) }
    }
}

/// Groups and the fold are nobody's code, and stay.
fn is_own(frame: &Frame, beginnings: &[String]) -> bool {
    frame.kind == FrameKind::Label || beginnings.iter().any(|name| frame.name.starts_with(name.as_str()))
}

/// The tree without the frames of others.
fn only(tree: &Tree, beginnings: &[String]) -> Tree {
    let mut growing = GrowingTree::of(tree);
    let mut places: Vec<NodeId> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let caller = places.get(node.parent as usize).copied().unwrap_or_default();
        if at == 0 || !is_own(&node.frame, beginnings) {
            places.push(caller);
        } else {
            places.push(growing.place(caller, &node.frame));
        }
        // What ends in the root is in the new one already.
        if at > 0 {
            growing.end(places.last().copied().unwrap_or_default(), node);
        }
    }
    growing.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree;

    const J: FrameKind = FrameKind::JavaCompiled;

    /// Stacks with their own samples.
    fn stacks(tree: &Tree) -> Vec<(String, u64)> {
        let mut paths: Vec<String> = Vec::new();
        let mut out = Vec::new();
        for (at, node) in tree.nodes.iter().enumerate() {
            let caller = paths.get(node.parent as usize).cloned().unwrap_or_default();
            let path = if at == 0 { String::new() } else { format!("{caller};{}", node.frame.name) };
            if node.self_count > 0 {
                out.push((path.clone(), node.self_count));
            }
            paths.push(path);
        }
        out
    }

    #[test]
    fn only_own_code_is_left_and_no_time_is_lost() {
        let label = (FrameKind::Label, "stage=3");
        let whole = tree(&[
            (&[label, (J, "a.Run.run"), (J, "com.acme.Job.map"), (J, "b.Hash.put")], 5),
            (&[label, (J, "a.Run.run"), (J, "com.acme.Job.map")], 2),
            (&[label, (J, "a.Run.run"), (J, "b.Hash.put"), (J, "com.acme.Key.hash")], 3),
            (&[label, (J, "a.Run.run")], 4),
        ]);
        let shape = Shape { fold: false, only: Shape::beginnings(["com.acme., ,"]).unwrap() };
        assert_eq!(shape.only, ["com.acme."]);
        let own = shape.of(whole.clone());
        let want = [(";stage=3", 4), (";stage=3;com.acme.Job.map", 7), (";stage=3;com.acme.Key.hash", 3)];
        assert_eq!(stacks(&own), want.map(|(stack, count)| (stack.to_owned(), count)));
        assert_eq!(own.nodes[0].total_weight, whole.nodes[0].total_weight);
        assert_eq!(stacks(&Shape::default().of(whole.clone())), stacks(&whole));
    }

    #[test]
    fn beginnings_are_few() {
        let many = vec!["a"; Shape::MAX_ONLY + 1].join(",");
        assert_eq!(Shape::beginnings([many.as_str()]), Err(Shape::MAX_ONLY + 1));
        assert_eq!(Shape::beginnings(["a,b", "c"]).unwrap(), ["a", "b", "c"]);
    }
}
