//! The frames that every task of Spark shares, from its thread's start to `Task.run`, as one.
//!
//! In: a tree. Out: a new one, of the same totals: each stack that goes through `Task.run` begins with one frame in place of
//! those down to it; frames of labels stay before it. Stacks that do not get there stay as they are. The page does the
//! same by itself (`profiler/ui/flame/fold.js`).

use emberscope_model::{Frame, FrameKind, GrowingTree, NodeId, Tree};
use std::sync::Arc;

/// Where a task's own work begins (org.apache.spark.scheduler.Task, Spark 1.0 to 4.x).
const END: &str = "org.apache.spark.scheduler.Task.run";
/// Fewer frames are not folded.
const FEWEST: usize = 4;

/// What the stack down to a node says.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The last label.
    label: NodeId,
    /// Frames since, the node's included.
    depth: usize,
    /// The node is the fold.
    folds: bool,
    /// The fold stands above the node, or is it.
    past: bool,
}

/// The folded tree; as it was where there is nothing to fold.
pub fn fold(tree: &Tree) -> Tree {
    let mut seen: Vec<Seen> = Vec::with_capacity(tree.nodes.len());
    let mut longest = 0;
    for (at, node) in tree.nodes.iter().enumerate() {
        let above = if at == 0 { Seen::default() } else { of(&seen, node.parent) };
        let is_label = at == 0 || node.frame.kind == FrameKind::Label;
        let depth = if is_label { 0 } else { above.depth + 1 };
        let folds = !above.past && !is_label && depth >= FEWEST && &*node.frame.name == END;
        let label = if is_label && !above.past { at as NodeId } else { above.label };
        longest = longest.max(if folds { depth } else { 0 });
        seen.push(Seen { label, depth, folds, past: above.past || folds });
    }
    if longest == 0 {
        return tree.clone();
    }
    let name = format!("thread start … Task.run ({longest} frames)");
    let folded = Arc::new(Frame::new(FrameKind::Label, name, ""));
    let mut growing = GrowingTree::of(tree);
    let mut placed: Vec<Option<NodeId>> = vec![None; tree.nodes.len()];
    if let Some(root) = placed.first_mut() {
        *root = Some(0);
    }
    // A node is made when a stack ends in it or below it: the ways to the fold are not.
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        if (node.self_count, node.self_weight) == (0, 0) {
            continue;
        }
        let mut missing = Vec::new();
        let mut here = at as NodeId;
        let mut below = loop {
            match placed.get(here as usize) {
                Some(Some(place)) => break *place,
                None => break 0,
                Some(None) => missing.push(here),
            }
            let seen = of(&seen, here);
            here =
                if seen.folds { seen.label } else { tree.nodes.get(here as usize).map_or(0, |n| n.parent) };
        };
        while let Some(at) = missing.pop() {
            let frame =
                tree.nodes.get(at as usize).filter(|_| !of(&seen, at).folds).map_or(&folded, |n| &n.frame);
            below = growing.place(below, frame);
            if let Some(place) = placed.get_mut(at as usize) {
                *place = Some(below);
            }
        }
        growing.end(below, node);
    }
    growing.done()
}

fn of(seen: &[Seen], at: NodeId) -> Seen {
    seen.get(at as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::Node;

    const RUN: &str = "Thread.run;Worker.run;TaskRunner.run;org.apache.spark.scheduler.Task.run";

    fn tree(lines: &[(&str, u64)]) -> Tree {
        let root = Node::below(0, Arc::new(Frame::new(FrameKind::Label, "total", "")));
        let mut growing = GrowingTree::of(&Tree { nodes: vec![root] });
        for (stack, count) in lines {
            let mut at = 0;
            for name in stack.split(';') {
                let kind = if name.contains('=') { FrameKind::Label } else { FrameKind::JavaCompiled };
                at = growing.place(at, &Arc::new(Frame::new(kind, name, "")));
            }
            let end = Node::below(0, Arc::new(Frame::new(FrameKind::Label, "", "")));
            growing.end(at, &Node { self_count: *count, self_weight: 10 * count, ..end });
        }
        growing.done()
    }

    fn stacks(tree: &Tree) -> Vec<(String, u64)> {
        let mut paths: Vec<String> = Vec::new();
        let mut stacks = Vec::new();
        for (at, node) in tree.nodes.iter().enumerate() {
            let above = if at == 0 { "" } else { paths[node.parent as usize].as_str() };
            let path = match at {
                0 => String::new(),
                _ => format!("{above}{}{}", if above.is_empty() { "" } else { ";" }, node.frame.name),
            };
            if node.self_count > 0 {
                stacks.push((path.clone(), node.self_count));
            }
            paths.push(path);
        }
        stacks.sort();
        stacks
    }

    fn of_names(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
        lines.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect()
    }

    #[test]
    fn the_way_to_a_task_is_one_frame_and_nothing_is_lost() {
        let (work, started) = (format!("{RUN};Job.work"), format!("start;{RUN};Job.work"));
        let tree = tree(&[(&work, 3), (&started, 2), (RUN, 1), ("Thread.run;Worker.run;Other.run", 4)]);
        let folded = fold(&tree);
        let run = "thread start … Task.run (5 frames)";
        let want = [("Thread.run;Worker.run;Other.run", 4), (run, 1), (&*format!("{run};Job.work"), 5)];
        assert_eq!(stacks(&folded), of_names(&want));
        assert_eq!((folded.nodes[0].total_count, folded.nodes[0].total_weight), (10, 100));
        assert_eq!(folded.nodes.len(), 6, "no node without anything");
    }

    #[test]
    fn groups_stay_before_it_and_what_is_short_is_not_folded() {
        let (third, fourth) = (format!("stage=3;{RUN};Job.work"), format!("stage=4;{RUN};Job.work"));
        let folded = fold(&tree(&[(&third, 2), (&fourth, 1)]));
        let run = "thread start … Task.run (4 frames);Job.work";
        let want = [(&*format!("stage=3;{run}"), 2), (&*format!("stage=4;{run}"), 1)];
        assert_eq!(stacks(&folded), of_names(&want));
        let short = tree(&[("A.a;org.apache.spark.scheduler.Task.run;B.b", 1)]);
        assert_eq!(stacks(&fold(&short)), stacks(&short));
        let within = fold(&tree(&[(&format!("{RUN};X.x;{RUN};Job.work"), 1)]));
        let run = "thread start … Task.run (4 frames)";
        assert_eq!(stacks(&within), of_names(&[(&*format!("{run};X.x;{RUN};Job.work"), 1)]));
    }
}
