//! Call trees laid out as Pyroscope's flame graphs: rows of bars, each bar a few numbers.
//!
//! In: a [`Tree`], or two to be compared, and which of their numbers to draw. Out: a [`FlameGraph`], or
//! None when there is no sample; a [`FlameGraphDiff`], which has its root in any case. Frames that share
//! name and caller become one bar, in order of their names, after the caller's own share, as Pyroscope
//! draws them (pkg/model, `flamegraph.go` and `flamegraph_diff.go`). At most `max_nodes` bars are kept,
//! the widest on either side; what is cut below a bar becomes one bar `other`, so that every sum stays
//! what it was.

use super::response::{FlameGraph, FlameGraphDiff, Level};
use emberscope_export::Unit;
use emberscope_model::Tree;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A number for each side: one of a graph, two of a comparison.
type Sides<const N: usize> = [i64; N];

/// A bar: all frames with one name and one caller.
pub(super) struct Bar<const N: usize> {
    /// The name of the frames.
    pub name: Arc<str>,
    /// Weight or count of what ended in the bar.
    pub own: Sides<N>,
    /// Weight or count of what ended in the bar or below.
    pub total: Sides<N>,
    /// The caller's place; the root is its own.
    parent: usize,
    /// The callees' places, by name.
    pub below: BTreeMap<Arc<str>, usize>,
}

/// A bar on its way into a row: its left edges, and the bar or what was cut below one.
struct Placed<const N: usize> {
    x: Sides<N>,
    what: What<N>,
}

enum What<const N: usize> {
    Bar(usize),
    Other(Sides<N>),
}

/// Rows of bars, and what is known of all of them.
struct Drawing<const N: usize> {
    names: Vec<String>,
    levels: Vec<Level>,
    total: Sides<N>,
    max_self: i64,
}

/// Lays out `value` of `tree` in at most `max_nodes` bars (and an `other` for each bar cut below).
pub fn flame_graph(tree: &Tree, value: Unit, max_nodes: usize) -> Option<FlameGraph> {
    let Drawing { names, levels, total: [total], max_self } = draw([Some(tree)], value, max_nodes);
    (total > 0).then_some(FlameGraph { names, levels, total, max_self })
}

/// Lays out `value` of two trees, of which either may be missing: seven numbers a bar.
pub fn flame_graph_diff(sides: [Option<&Tree>; 2], value: Unit, max_nodes: usize) -> FlameGraphDiff {
    let Drawing { names, levels, total: [left, right], max_self } = draw(sides, value, max_nodes);
    let total = left.saturating_add(right);
    FlameGraphDiff { names, levels, total, max_self, left_ticks: left, right_ticks: right }
}

fn draw<const N: usize>(trees: [Option<&Tree>; N], value: Unit, max_nodes: usize) -> Drawing<N> {
    let bars = fold(trees, value);
    let kept = widest(&bars, max_nodes.max(1));
    let mut names = Names::default();
    names.index("total");
    let total = bars.first().map_or([0; N], |root| root.total);
    let mut drawing = Drawing { names: Vec::new(), levels: Vec::new(), total, max_self: 0 };
    let mut row = vec![Placed { x: [0; N], what: What::Bar(0) }];
    while !row.is_empty() {
        let mut values = Vec::with_capacity(row.len() * (3 * N + 1));
        let mut next = Vec::new();
        let mut edge = [0; N];
        for placed in row {
            let (total, own, name) = match placed.what {
                What::Other(total) => (total, total, names.index("other")),
                What::Bar(index) => {
                    let Some(bar) = bars.get(index) else { continue };
                    place_below(&bars, &kept, bar, placed.x, &mut next);
                    let name = if index == 0 { 0 } else { names.index(&bar.name) };
                    (bar.total, bar.own, name)
                }
            };
            for side in 0..N {
                values.extend([placed.x[side] - edge[side], total[side], own[side]]);
                edge[side] = placed.x[side].saturating_add(total[side]);
                drawing.max_self = drawing.max_self.max(own[side]);
            }
            values.push(name);
        }
        drawing.levels.push(Level { values });
        row = next;
    }
    drawing.names = names.list;
    drawing
}

fn added<const N: usize>(a: Sides<N>, b: Sides<N>) -> Sides<N> {
    std::array::from_fn(|side| a[side].saturating_add(b[side]))
}

/// The callees of a bar, from left to right.
fn place_below<const N: usize>(
    bars: &[Bar<N>],
    kept: &[bool],
    bar: &Bar<N>,
    x: Sides<N>,
    next: &mut Vec<Placed<N>>,
) {
    let mut x = added(x, bar.own);
    let mut cut = [0; N];
    for &index in bar.below.values() {
        let total = bars.get(index).map_or([0; N], |b| b.total);
        if total == [0; N] {
            continue;
        }
        if kept.get(index) == Some(&true) {
            next.push(Placed { x, what: What::Bar(index) });
            x = added(x, total);
        } else {
            cut = added(cut, total);
        }
    }
    if cut != [0; N] {
        next.push(Placed { x, what: What::Other(cut) });
    }
}

/// Joins frames with the same name and caller, of all trees; a bar stands after its caller, the root first.
pub(super) fn fold<const N: usize>(trees: [Option<&Tree>; N], value: Unit) -> Vec<Bar<N>> {
    let bar = |name, parent| Bar { name, own: [0; N], total: [0; N], parent, below: BTreeMap::new() };
    let mut bars: Vec<Bar<N>> = vec![bar("total".into(), 0)];
    for (side, tree) in trees.into_iter().enumerate() {
        let nodes = tree.map_or(&[][..], |tree| &tree.nodes);
        let mut bar_of = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let parent = bar_of.get(node.parent as usize).copied().unwrap_or(0);
            let fresh = bars.len();
            let at = match bars.get_mut(parent) {
                Some(caller) if index > 0 => *caller.below.entry(node.frame.name.clone()).or_insert(fresh),
                _ => 0,
            };
            if at == fresh {
                bars.push(bar(node.frame.name.clone(), parent));
            }
            if let Some(bar) = bars.get_mut(at) {
                bar.own[side] = bar.own[side].saturating_add(signed(value.own(node)));
            }
            bar_of.push(at);
        }
    }
    for index in (0..bars.len()).rev() {
        bars[index].total = added(bars[index].total, bars[index].own);
        let (total, parent) = (bars[index].total, bars[index].parent);
        if index > 0 {
            bars[parent].total = added(bars[parent].total, total);
        }
    }
    bars
}

/// Marks the `max` widest bars, by their wider side. A caller is as wide as its callee and stands before
/// it, so it is kept whenever the callee is.
pub(super) fn widest<const N: usize>(bars: &[Bar<N>], max: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..bars.len()).collect();
    if bars.len() > max {
        order.sort_by_key(|&i| (std::cmp::Reverse(bars[i].total.into_iter().max()), i));
        order.truncate(max);
    }
    let mut kept = vec![false; bars.len()];
    for index in order {
        kept[index] = true;
    }
    kept
}

/// The names of a graph, each once, and their places.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    index: HashMap<String, i64>,
}

impl Names {
    fn index(&mut self, name: &str) -> i64 {
        if let Some(&index) = self.index.get(name) {
            return index;
        }
        let index = self.list.len() as i64;
        self.list.push(name.to_owned());
        self.index.insert(name.to_owned(), index);
        index
    }
}

/// A number as protobuf has it: signed, and no larger than fits.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "levels_tests.rs"]
mod tests;
