//! Two trees side by side: a differential flame graph, and folded stacks with two counts.
//!
//! In: a left and a right tree, and what each is multiplied by. Out: [`Aligned`] trees, which have the same
//! nodes in the same order (so that their methods come in one order too), and bytes. Frames of one name
//! are one, whatever kind of code they ran as: what was interpreted on one side and compiled on the other
//! is no difference. Widths of the picture are the right side's; red is more there, blue less.

use super::text::{clean, one_line};
use super::walk::{Below, Path, preorder};
use super::{Bounded, ExportError, Format, MAX_BYTES};
use emberscope_model::{Frame, FrameKind, Node, NodeId, Tree};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A node below total / this is not drawn, as in a plain flame graph.
const NARROW: u64 = 1_000;
/// Stands for the stack of samples that have none.
const NO_FRAMES: &str = "(no frames)";

/// Two trees with the same nodes in the same order.
#[derive(Clone, Debug)]
pub struct Aligned {
    /// What is compared with.
    pub left: Tree,
    /// What is looked at.
    pub right: Tree,
}

#[derive(Clone, Copy, Default)]
struct Own {
    count: u64,
    weight: u64,
}

struct Growing {
    frame: Arc<Frame>,
    parent: NodeId,
    own: [Own; 2],
}

impl Aligned {
    /// Puts both trees' nodes into one shape, siblings in the order of their names.
    pub fn new(left: &Tree, right: &Tree) -> Self {
        let root = Arc::new(Frame::new(FrameKind::Label, "total", ""));
        let mut grown = vec![Growing { frame: root, parent: 0, own: Default::default() }];
        let mut places: HashMap<(NodeId, bool, Arc<str>), NodeId> = HashMap::new();
        // The right side first: its frames are the ones that are shown.
        for (side, tree) in [(1, right), (0, left)] {
            let mut place_of: Vec<NodeId> = Vec::with_capacity(tree.nodes.len());
            for (at, node) in tree.nodes.iter().enumerate() {
                let parent = place_of.get(node.parent as usize).copied().unwrap_or(0);
                let place = if at == 0 {
                    0
                } else {
                    let is_label = node.frame.kind == FrameKind::Label;
                    *places.entry((parent, is_label, node.frame.name.clone())).or_insert_with(|| {
                        grown.push(Growing { frame: node.frame.clone(), parent, own: Default::default() });
                        grown.len() as NodeId - 1
                    })
                };
                place_of.push(place);
                if let Some(own) = grown.get_mut(place as usize).and_then(|node| node.own.get_mut(side)) {
                    own.count = own.count.saturating_add(node.self_count);
                    own.weight = own.weight.saturating_add(node.self_weight);
                }
            }
        }
        let order = in_order(&grown);
        Self { left: side_of(&grown, &order, 0), right: side_of(&grown, &order, 1) }
    }
}

/// Nodes in preorder, each with its parent's place in that order.
fn in_order(grown: &[Growing]) -> Vec<(NodeId, NodeId)> {
    let mut children: Vec<Vec<NodeId>> = vec![Vec::new(); grown.len()];
    for (id, node) in grown.iter().enumerate().skip(1) {
        if let Some(list) = children.get_mut(node.parent as usize) {
            list.push(id as NodeId);
        }
    }
    let name = |id: &NodeId| grown.get(*id as usize).map(|node| (&node.frame.name, node.frame.kind));
    let mut order = Vec::with_capacity(grown.len());
    let mut pending = vec![(0, 0)];
    while let Some((id, parent)) = pending.pop() {
        let place = order.len() as NodeId;
        order.push((id, parent));
        if let Some(list) = children.get_mut(id as usize) {
            list.sort_by(|a, b| name(b).cmp(&name(a)));
            pending.extend(list.iter().map(|child| (*child, place)));
        }
    }
    order
}

fn side_of(grown: &[Growing], order: &[(NodeId, NodeId)], side: usize) -> Tree {
    let node = |(id, parent): &(NodeId, NodeId)| {
        let grown = grown.get(*id as usize)?;
        let own = grown.own.get(side).copied().unwrap_or_default();
        Some(Node {
            frame: grown.frame.clone(),
            parent: *parent,
            self_count: own.count,
            self_weight: own.weight,
            total_count: own.count,
            total_weight: own.weight,
        })
    };
    let nodes: Vec<Node> = order.iter().filter_map(node).collect();
    Tree::with_totals(nodes)
}

/// How to write a difference.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// What the left side's nanoseconds are multiplied by.
    pub left_factor: f64,
    /// What the right side's are.
    pub right_factor: f64,
    /// Headline of the picture.
    pub title: String,
    /// The line below: what the sides are and rest on.
    pub subtitle: String,
}

impl DiffOptions {
    fn left(&self, ns: u64) -> u64 {
        (ns as f64 * self.left_factor).round() as u64
    }
    fn right(&self, ns: u64) -> u64 {
        (ns as f64 * self.right_factor).round() as u64
    }
}

/// A difference as bytes: folded stacks or a picture (JSON is written by who knows what it is about).
pub fn render(format: Format, trees: &Aligned, options: &DiffOptions) -> Result<Vec<u8>, ExportError> {
    let mut out = Bounded { bytes: Vec::new(), limit: MAX_BYTES, full: false };
    let written = match format {
        Format::Svg => svg(trees, options, &mut out),
        Format::Folded | Format::Json => folded(trees, options, &mut out),
        Format::Pprof | Format::Parquet | Format::Jfr => {
            Err(io::Error::other("it holds one answer, not two"))
        }
    };
    match written {
        Ok(()) => Ok(out.bytes),
        Err(_) if out.full => Err(ExportError::TooLarge { limit: out.limit }),
        Err(source) => Err(ExportError::Write { format: format.slug(), source }),
    }
}

fn folded(trees: &Aligned, options: &DiffOptions, out: &mut impl Write) -> io::Result<()> {
    let mut path = Path::default();
    preorder(&trees.right, |visit| {
        if visit.depth > 0 {
            path.set(visit.depth, &clean(&visit.node.frame.name, '_'));
        }
        let left = trees.left.nodes.get(visit.id).map_or(0, |node| options.left(node.self_weight));
        let right = options.right(visit.node.self_weight);
        if left > 0 || right > 0 {
            let text = Some(path.text()).filter(|_| visit.depth > 0).unwrap_or(NO_FRAMES);
            writeln!(out, "{text} {left} {right}")?;
        }
        Ok(Below::Go)
    })
}

fn svg(trees: &Aligned, options: &DiffOptions, out: &mut impl Write) -> io::Result<()> {
    let title = one_line(&options.title);
    let total = trees.right.nodes.first().map_or(0, |root| options.right(root.total_weight));
    let lines = lines(trees, options, total)?;
    if lines.is_empty() {
        return super::svg::write_empty(&title, "the right side has no samples", out);
    }
    let mut drawing = Options::default();
    drawing.title = title;
    drawing.subtitle = Some(one_line(&options.subtitle));
    drawing.direction = Direction::Inverted;
    drawing.min_width = 100.0 / NARROW as f64;
    drawing.text_truncate_direction = TextTruncateDirection::Right;
    // inferno's `factor` leaves the difference as it is (flamegraph/mod.rs, 0.12.8): so plain microseconds.
    drawing.count_name = "us".to_owned();
    // Lines come as the walk has them, a caller's own before its callees': see svg.rs.
    drawing.flame_chart = true;
    from_lines(&mut drawing, lines.lines().rev(), out)
}

/// `stack left right`, in microseconds.
fn lines(trees: &Aligned, options: &DiffOptions, total: u64) -> io::Result<String> {
    const US: u64 = 1_000;
    let mut path = Path::default();
    let mut out: Vec<u8> = Vec::new();
    preorder::<io::Error>(&trees.right, |visit| {
        let name = clean(&visit.node.frame.name, '\u{a0}');
        let name = name.strip_prefix("# ").map_or_else(|| name.to_string(), |rest| format!("#\u{a0}{rest}"));
        if visit.depth > 0 {
            path.set(visit.depth, &name);
        }
        let below = options.right(visit.node.total_weight);
        if below < total / NARROW || below < US {
            // Not drawn, and still part of its caller's width; no difference of the caller's own.
            let us = below / US;
            if us > 0 && visit.depth > 1 {
                writeln!(out, "{} {us} {us}", path.parent())?;
            }
            return Ok(Below::Skip);
        }
        let left = trees.left.nodes.get(visit.id).map_or(0, |node| options.left(node.self_weight)) / US;
        let right = options.right(visit.node.self_weight) / US;
        let text = Some(path.text()).filter(|_| visit.depth > 0).unwrap_or(NO_FRAMES);
        if right > 0 || (left > 0 && visit.depth > 0) {
            writeln!(out, "{text} {left} {right}")?;
        }
        Ok(Below::Go)
    })?;
    String::from_utf8(out).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods;
    use crate::tests::tree;
    use proptest::prelude::*;

    const J: FrameKind = FrameKind::JavaCompiled;
    const T: FrameKind = FrameKind::JavaInterpreted;

    fn options(left_factor: f64, right_factor: f64) -> DiffOptions {
        DiffOptions { left_factor, right_factor, title: "a <b>".into(), subtitle: "l & r".into() }
    }

    fn both() -> Aligned {
        let left = tree(&[(&[(J, "run"), (T, "f")], 4), (&[(J, "run"), (J, "gone")], 2)]);
        let right = tree(&[(&[(J, "run"), (J, "f"), (J, "slow")], 30), (&[(J, "run")], 6)]);
        Aligned::new(&left, &right)
    }

    #[test]
    fn both_sides_have_the_same_nodes() {
        let trees = both();
        let told: Vec<_> = trees
            .left
            .nodes
            .iter()
            .zip(&trees.right.nodes)
            .map(|(l, r)| {
                assert!(Arc::ptr_eq(&l.frame, &r.frame) && l.parent == r.parent);
                (&*l.frame.name, l.self_count, l.total_count, r.self_count, r.total_count)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("total", 0, 6, 0, 36),
                ("run", 0, 6, 6, 36),
                ("f", 4, 4, 0, 30),
                ("slow", 0, 0, 30, 30),
                ("gone", 2, 2, 0, 0),
            ]
        );
        let names = |tree| methods(tree).iter().map(|m| m.name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&trees.left), names(&trees.right));
        let nothing = Tree { nodes: Vec::new() };
        assert_eq!(Aligned::new(&nothing, &nothing).right.nodes.len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_moved(
            stacks in prop::collection::vec((any::<bool>(), prop::collection::vec(0usize..4, 0..6), 1u64..50), 0..30)
        ) {
            let paths: Vec<Vec<(FrameKind, &str)>> = stacks
                .iter()
                .map(|(_, path, _)| path.iter().map(|i| (J, ["a", "b;c", "# d", "e 1"][*i])).collect())
                .collect();
            let side = |left: bool| -> Tree {
                let own = stacks.iter().zip(&paths).filter(|((is_left, ..), _)| *is_left == left);
                tree(&own.map(|((_, _, n), path)| (path.as_slice(), *n)).collect::<Vec<_>>())
            };
            let (left, right) = (side(true), side(false));
            let trees = Aligned::new(&left, &right);
            for (before, after) in [(&left, &trees.left), (&right, &trees.right)] {
                let sorted = |tree: &Tree| {
                    let mut rows: Vec<_> = methods(tree)
                        .iter()
                        .map(|m| (m.name.to_owned(), m.own, m.total))
                        .filter(|(_, _, total)| total.count > 0)
                        .collect();
                    rows.sort_by(|a, b| a.0.cmp(&b.0));
                    rows
                };
                prop_assert_eq!(sorted(before), sorted(after));
                prop_assert_eq!(before.nodes[0].total_weight, after.nodes[0].total_weight);
            }
            let text = String::from_utf8(render(Format::Folded, &trees, &options(1.0, 1.0)).unwrap()).unwrap();
            let sum = |column: usize| -> u64 {
                text.lines().map(|l| l.rsplitn(3, ' ').nth(column).unwrap().parse::<u64>().unwrap()).sum()
            };
            prop_assert_eq!((sum(1), sum(0)), (left.nodes[0].total_weight, right.nodes[0].total_weight));
            let svg = String::from_utf8(render(Format::Svg, &trees, &options(1.0, 1.0)).unwrap()).unwrap();
            let all = format!("<title>all ({} us, 100%)", crate::text::thousands(right.nodes[0].total_weight / 1000));
            prop_assert!(right.nodes[0].total_weight == 0 || svg.contains(&all), "{}", all);
        }
    }

    #[test]
    fn folded_stacks_have_two_scaled_counts() {
        let text = render(Format::Folded, &both(), &options(0.5, 0.1)).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "run 0 6000000\nrun;f 20000000 0\nrun;f;slow 0 30000000\nrun;gone 10000000 0\n"
        );
    }

    #[test]
    fn the_picture_is_red_where_the_right_side_has_more() {
        let svg = String::from_utf8(render(Format::Svg, &both(), &options(1.0, 1.0)).unwrap()).unwrap();
        assert!(svg.contains(">a &lt;b&gt;</text>") && svg.contains("l &amp; r"));
        let fill = |tooltip: &str| {
            let group = svg.split("<g>").find(|g| g.starts_with(&format!("<title>{tooltip}"))).unwrap();
            group.split("fill=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!(fill("slow (300,000 us, 83.33%; +83.33%)"), "rgb(255,100,100)");
        assert!(fill("f (300,000 us, 83.33%; -11.11%)").ends_with(",255)"), "blue: less of its own");
        assert!(!svg.contains("gone"), "nothing on the right, no width");
        let nothing = Tree { nodes: Vec::new() };
        let empty = Aligned::new(&both().left, &nothing);
        let svg = String::from_utf8(render(Format::Svg, &empty, &options(1.0, 1.0)).unwrap()).unwrap();
        assert!(svg.contains("the right side has no samples") && !svg.contains("<b>"));
    }
}
