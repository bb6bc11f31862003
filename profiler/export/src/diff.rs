//! Two trees side by side: a differential flame graph, and folded stacks with two counts.
//!
//! In: a left and a right tree, and what each is multiplied by. Out: [`Aligned`] trees, which have the same
//! nodes in the same order (so that their methods come in one order too), and bytes. Frames of one name
//! are one, whatever kind of code they ran as: what was interpreted on one side and compiled on the other
//! is no difference, and so are names that only the JDK makes another ([`alike`]). Widths of the picture are the right side's; red is more there, blue less.

mod alike;

use super::text::{clean, one_line};
use super::walk::{Below, Path, preorder};
use super::{Bounded, ExportError, Format};
use alike::{alike, shown};
use emberscope_model::{Frame, FrameKind, Node, NodeId, SampleKind, Tree};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A node below total / this is not drawn, as in a plain flame graph.
const NARROW: u64 = 1_000;
/// Why there is no JSON here, and where it is.
const JSON_ELSEWHERE: &str =
    "the trees alone are no answer: ask /api/v1/diff for format=json, or for folded stacks";
/// Stands for the stack of samples that have none.
const NO_FRAMES: &str = "(no frames)";

/// Two trees with the same nodes in the same order, so that a node of one has the other's place.
#[derive(Clone, Debug)]
pub struct Aligned {
    /// The tree that is compared with.
    pub left: Tree,
    /// The tree that is looked at.
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
        let mut places: HashMap<(NodeId, bool, Cow<str>), NodeId> = HashMap::new();
        // The right side first: its frames are the ones that are shown.
        for (side, tree) in [(1, right), (0, left)] {
            let mut place_of: Vec<NodeId> = Vec::with_capacity(tree.nodes.len());
            for (at, node) in tree.nodes.iter().enumerate() {
                let parent = place_of.get(node.parent as usize).copied().unwrap_or(0);
                let is_label = node.frame.kind == FrameKind::Label;
                let name = match tree.nodes.get(node.parent as usize) {
                    _ if at == 0 => None,
                    Some(caller) if !is_label => alike(&caller.frame.name, &node.frame.name),
                    _ => Some(Cow::Borrowed(&*node.frame.name)),
                };
                let place = match name {
                    None => parent,
                    Some(name) => *places.entry((parent, is_label, name)).or_insert_with_key(|(.., name)| {
                        grown.push(Growing {
                            frame: shown(&node.frame, name),
                            parent,
                            own: Default::default(),
                        });
                        grown.len() as NodeId - 1
                    }),
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

/// What a difference is of, how it is scaled, and what is written over the picture.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// What the samples of both sides count.
    pub kind: SampleKind,
    /// What the left side's weights are multiplied by.
    pub left_factor: f64,
    /// What the right side's weights are multiplied by.
    pub right_factor: f64,
    /// Headline of the picture.
    pub title: String,
    /// The line below: what the sides are and rest on.
    pub subtitle: String,
}

impl DiffOptions {
    fn left(&self, weight: u64) -> u64 {
        (weight as f64 * self.left_factor).round() as u64
    }
    fn right(&self, weight: u64) -> u64 {
        (weight as f64 * self.right_factor).round() as u64
    }
    /// Weight of one of the picture's numbers, which are whole.
    fn one(&self) -> u64 {
        self.kind.facts().whole.of as u64
    }
}

/// A difference as bytes: folded stacks or a picture.
///
/// # Errors
/// [`ExportError::TooLarge`] over [`super::MAX_BYTES`]. [`ExportError::Write`]: inferno cannot draw it, or the format holds
/// one answer only, or is JSON, which only who compares can write: it says what the sides rest on.
pub fn render(format: Format, trees: &Aligned, options: &DiffOptions) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    let mut out = Bounded::new(&mut bytes);
    let written = match format {
        Format::Svg => svg(trees, options, &mut out),
        Format::Folded => folded(trees, options, &mut out),
        Format::Json => Err(io::Error::other(JSON_ELSEWHERE)),
        Format::Pprof | Format::Parquet | Format::Jfr => {
            Err(io::Error::other("it holds one answer, not two"))
        }
    };
    out.end(format, written).map(|()| bytes)
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
    // inferno's `factor` leaves the difference as it is (flamegraph/mod.rs, 0.12.8): so plain microseconds, and KiB of bytes.
    drawing.count_name = options.kind.facts().whole.unit.to_owned();
    // Lines come as the walk has them, a caller's own before its callees': see svg.rs.
    drawing.flame_chart = true;
    from_lines(&mut drawing, lines.lines().rev(), out)
}

/// `stack left right`, in the unit of the picture's numbers.
fn lines(trees: &Aligned, options: &DiffOptions, total: u64) -> io::Result<String> {
    let one = options.one();
    let mut path = Path::default();
    let mut out: Vec<u8> = Vec::new();
    preorder::<io::Error>(&trees.right, |visit| {
        let name = clean(&visit.node.frame.name, '\u{a0}');
        let name = name.strip_prefix("# ").map_or_else(|| name.to_string(), |rest| format!("#\u{a0}{rest}"));
        if visit.depth > 0 {
            path.set(visit.depth, &name);
        }
        let below = options.right(visit.node.total_weight);
        if below < total / NARROW || below < one {
            // Not drawn, and still part of its caller's width; no difference of the caller's own.
            let width = below / one;
            if width > 0 && visit.depth > 1 {
                writeln!(out, "{} {width} {width}", path.parent())?;
            }
            return Ok(Below::Skip);
        }
        let left = trees.left.nodes.get(visit.id).map_or(0, |node| options.left(node.self_weight)) / one;
        let right = options.right(visit.node.self_weight) / one;
        let text = Some(path.text()).filter(|_| visit.depth > 0).unwrap_or(NO_FRAMES);
        if right > 0 || (left > 0 && visit.depth > 0) {
            writeln!(out, "{text} {left} {right}")?;
        }
        Ok(Below::Go)
    })?;
    String::from_utf8(out).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
