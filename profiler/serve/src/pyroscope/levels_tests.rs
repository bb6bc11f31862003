//! The layout read back: bars are put into the parent that encloses them, and every path's own value
//! is compared with the tree that went in.

use super::*;
use emberscope_model::{Frame, FrameKind, Node};
use proptest::prelude::*;

type Paths = BTreeMap<Vec<String>, i64>;

/// Nodes as (parent, name, own value); the root is added.
fn tree(nodes: &[(u32, &str, u64)]) -> Tree {
    let root = Frame::new(FrameKind::Native, "total", "");
    let mut out = vec![node(root, 0, 0)];
    for (parent, name, own) in nodes {
        out.push(node(Frame::new(FrameKind::JavaCompiled, *name, ""), *parent, *own));
    }
    for i in (1..out.len()).rev() {
        let (parent, count, weight) = (out[i].parent as usize, out[i].total_count, out[i].total_weight);
        out[parent].total_count += count;
        out[parent].total_weight += weight;
    }
    Tree { nodes: out }
}

fn node(frame: Frame, parent: u32, own: u64) -> Node {
    Node {
        frame: Arc::new(frame),
        parent,
        self_count: own,
        self_weight: own * 10,
        total_count: own,
        total_weight: own * 10,
    }
}

/// The tree's own values by path, zeros left out.
fn paths(tree: &Tree) -> Paths {
    let mut out = Paths::new();
    for node in &tree.nodes {
        let mut path = Vec::new();
        let mut at = node;
        while !Arc::ptr_eq(&at.frame, &tree.nodes[0].frame) {
            path.insert(0, at.frame.name.to_string());
            at = &tree.nodes[at.parent as usize];
        }
        if node.self_count > 0 {
            *out.entry(path).or_default() += node.self_count as i64;
        }
    }
    out
}

/// A bar of a row: begin, end, path.
type Drawn = (i64, i64, Vec<String>);

/// Reads a flame graph back as Grafana does, asserting all that the layout promises.
fn decode(graph: &FlameGraph) -> Paths {
    let mut out = Paths::new();
    let mut above: Vec<Drawn> = Vec::new();
    let mut max_self = 0;
    assert_eq!(graph.names[0], "total");
    assert_eq!(graph.levels[0].values, [0, graph.total, graph.levels[0].values[2], 0]);
    for (depth, level) in graph.levels.iter().enumerate() {
        assert!(!level.values.is_empty() && level.values.len() % 4 == 0);
        let mut edge = 0;
        let mut row = Vec::new();
        for bar in level.values.chunks(4) {
            assert!(bar[0] >= 0 && bar[1] > 0 && bar[2] >= 0 && bar[2] <= bar[1], "{bar:?}");
            let (begin, end) = (edge + bar[0], edge + bar[0] + bar[1]);
            edge = end;
            let name = graph.names[bar[3] as usize].clone();
            let path = if depth == 0 {
                Vec::new()
            } else {
                let parent =
                    above.iter().find(|(b, e, _)| *b <= begin && end <= *e).expect("inside its parent");
                [parent.2.clone(), vec![name]].concat()
            };
            if bar[2] > 0 {
                *out.entry(path.clone()).or_default() += bar[2];
            }
            max_self = max_self.max(bar[2]);
            row.push((begin, end, path));
        }
        above = row;
    }
    assert_eq!(graph.max_self, max_self);
    assert_eq!(out.values().sum::<i64>(), graph.total);
    out
}

#[test]
fn a_small_tree_is_laid_out_as_pyroscope_does() {
    let tree = tree(&[(0, "b", 1), (1, "c", 2), (0, "a", 3), (1, "c", 4)]);
    let graph = flame_graph(&tree, Unit::Samples, 8192).expect("samples");
    assert_eq!(graph.names, ["total", "a", "b", "c"]);
    let levels: Vec<_> = graph.levels.iter().map(|l| l.values.as_slice()).collect();
    assert_eq!(levels, [&[0, 10, 0, 0][..], &[0, 3, 3, 1, 0, 7, 1, 2], &[4, 6, 6, 3]]);
    assert_eq!((graph.total, graph.max_self), (10, 6));
    assert_eq!(flame_graph(&tree, Unit::Weight, 8192).expect("samples").total, 100);
}

#[test]
fn no_sample_is_no_graph() {
    assert_eq!(flame_graph(&Tree { nodes: vec![] }, Unit::Samples, 10), None);
    assert_eq!(flame_graph(&tree(&[(0, "a", 0)]), Unit::Samples, 10), None);
}

#[test]
fn two_trees_share_one_layout() {
    let left = tree(&[(0, "a", 3), (0, "b", 1)]);
    let right = tree(&[(0, "c", 4), (0, "a", 1), (2, "d", 2)]);
    let graph = flame_graph_diff([Some(&left), Some(&right)], Unit::Samples, 8192);
    assert_eq!(graph.names, ["total", "a", "b", "c", "d"]);
    let levels: Vec<_> = graph.levels.iter().map(|l| l.values.as_slice()).collect();
    assert_eq!(
        levels,
        [
            &[0, 4, 0, 0, 7, 0, 0][..],
            &[0, 3, 3, 0, 3, 1, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 0, 0, 4, 4, 3],
            &[3, 0, 0, 1, 2, 2, 4],
        ]
    );
    assert_eq!((graph.total, graph.left_ticks, graph.right_ticks, graph.max_self), (11, 4, 7, 4));
    // Nothing on either side is a root alone.
    let none = flame_graph_diff([None, None], Unit::Samples, 8192);
    assert_eq!((none.names.len(), none.levels.len(), none.levels[0].values.as_slice()), (1, 1, &[0; 7][..]));
}

#[test]
fn what_is_cut_becomes_other() {
    let tree = tree(&[(0, "a", 5), (0, "b", 1), (0, "c", 2), (1, "d", 3)]);
    let graph = flame_graph(&tree, Unit::Samples, 3).expect("samples");
    let levels: Vec<_> = graph.levels.iter().map(|l| l.values.as_slice()).collect();
    let other = graph.names.iter().position(|n| n == "other").expect("other") as i64;
    assert_eq!(levels[1], [0, 8, 5, 1, 0, 3, 3, other]);
    assert_eq!(levels[2], [5, 3, 3, 3], "d stays under a");
}

proptest! {
    #[test]
    fn read_back_it_is_the_tree(nodes in trees()) {
        let tree = tree(&nodes.iter().map(|(p, n, v)| (*p, n.as_str(), *v)).collect::<Vec<_>>());
        match flame_graph(&tree, Unit::Samples, usize::MAX) {
            Some(graph) => prop_assert_eq!(decode(&graph), paths(&tree)),
            None => prop_assert!(paths(&tree).is_empty()),
        }
    }

    #[test]
    fn cut_it_keeps_every_sum(nodes in trees(), max in 1_usize..20) {
        let tree = tree(&nodes.iter().map(|(p, n, v)| (*p, n.as_str(), *v)).collect::<Vec<_>>());
        let whole = paths(&tree);
        if let Some(graph) = flame_graph(&tree, Unit::Samples, max) {
            let other = graph.names.iter().position(|n| n == "other").map(|i| i as i64);
            let bars = graph.levels.iter().flat_map(|l| l.values.chunks(4));
            prop_assert!(bars.filter(|b| Some(b[3]) != other).count() <= max);
            for (path, own) in decode(&graph) {
                // `other` holds all that was cut below its caller; what is kept is exact.
                let (last, caller) = path.split_last().map_or((None, &[][..]), |(l, c)| (Some(l), c));
                if last.is_some_and(|l| l == "other") {
                    let below: i64 = whole.iter().filter(|(p, _)| p.starts_with(caller) && p.len() > caller.len()).map(|(_, v)| v).sum();
                    prop_assert!(own <= below);
                } else {
                    prop_assert_eq!(Some(&own), whole.get(&path));
                }
            }
        }
    }
}

/// Random trees: names repeat, so that frames join; values may be 0.
fn trees() -> impl Strategy<Value = Vec<(u32, String, u64)>> {
    prop::collection::vec((any::<prop::sample::Index>(), "[a-e]", 0_u64..5), 0..60).prop_map(|raw| {
        raw.into_iter()
            .enumerate()
            .map(|(i, (parent, name, own))| (parent.index(i + 1) as u32, name, own))
            .collect()
    })
}
