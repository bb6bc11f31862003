//! A call tree laid out as Pyroscope's flame graph: rows of bars, each bar four numbers.
//!
//! In: a [`Tree`] and which of its numbers to draw. Out: a [`FlameGraph`], or None when there is no
//! sample. Frames that share name and caller become one bar, in order of their names, after the
//! caller's own share, as Pyroscope draws them. At most `max_nodes` bars are kept, the widest; what
//! is cut below a bar becomes one bar `other`, so that every sum stays what it was.

use super::response::{FlameGraph, Level};
use super::types::Value;
use crate::model::Tree;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A bar: all frames with one name and one caller.
struct Bar {
    name: Arc<str>,
    own: i64,
    total: i64,
    parent: usize,
    below: BTreeMap<Arc<str>, usize>,
}

/// A bar on its way into a row: its left edge, and the bar or what was cut below one.
struct Placed {
    x: i64,
    what: What,
}

enum What {
    Bar(usize),
    Other(i64),
}

/// Lays out `value` of `tree` in at most `max_nodes` bars (and an `other` for each bar cut below).
pub fn flame_graph(tree: &Tree, value: Value, max_nodes: usize) -> Option<FlameGraph> {
    let bars = fold(tree, value);
    let root = bars.first().filter(|root| root.total > 0)?;
    let kept = widest(&bars, max_nodes.max(1));
    let mut names = Names::default();
    names.index("total");
    let mut graph = FlameGraph { total: root.total, ..FlameGraph::default() };
    let mut row = vec![Placed { x: 0, what: What::Bar(0) }];
    while !row.is_empty() {
        let mut values = Vec::with_capacity(row.len() * 4);
        let mut next = Vec::new();
        let mut edge = 0;
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
            values.extend([placed.x - edge, total, own, name]);
            edge = placed.x + total;
            graph.max_self = graph.max_self.max(own);
        }
        graph.levels.push(Level { values });
        row = next;
    }
    graph.names = names.list;
    Some(graph)
}

/// The callees of a bar, from left to right.
fn place_below(bars: &[Bar], kept: &[bool], bar: &Bar, x: i64, next: &mut Vec<Placed>) {
    let mut x = x + bar.own;
    let mut cut = 0;
    for &index in bar.below.values() {
        let total = bars.get(index).map_or(0, |b| b.total);
        if total == 0 {
            continue;
        }
        if kept.get(index) == Some(&true) {
            next.push(Placed { x, what: What::Bar(index) });
            x += total;
        } else {
            cut += total;
        }
    }
    if cut > 0 {
        next.push(Placed { x, what: What::Other(cut) });
    }
}

/// Joins frames with the same name and caller; a bar stands after its caller.
fn fold(tree: &Tree, value: Value) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::with_capacity(tree.nodes.len());
    let mut bar_of = Vec::with_capacity(tree.nodes.len());
    for (index, node) in tree.nodes.iter().enumerate() {
        let own = value.of(node.self_count, node.self_weight);
        let parent = bar_of.get(node.parent as usize).copied().unwrap_or(0);
        let fresh = bars.len();
        let bar = match bars.get_mut(parent) {
            Some(caller) if index > 0 => *caller.below.entry(node.frame.name.clone()).or_insert(fresh),
            _ => fresh,
        };
        if bar == fresh {
            let name = node.frame.name.clone();
            bars.push(Bar { name, own: 0, total: 0, parent, below: BTreeMap::new() });
        }
        if let Some(bar) = bars.get_mut(bar) {
            bar.own = bar.own.saturating_add(own);
        }
        bar_of.push(bar);
    }
    for index in (0..bars.len()).rev() {
        bars[index].total = bars[index].total.saturating_add(bars[index].own);
        let (total, parent) = (bars[index].total, bars[index].parent);
        if index > 0 {
            bars[parent].total = bars[parent].total.saturating_add(total);
        }
    }
    bars
}

/// Marks the `max` widest bars. A caller is as wide as its callee and stands before it, so it is kept
/// whenever the callee is.
fn widest(bars: &[Bar], max: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..bars.len()).collect();
    if bars.len() > max {
        order.sort_by_key(|&i| (std::cmp::Reverse(bars[i].total), i));
        order.truncate(max);
    }
    let mut kept = vec![false; bars.len()];
    for index in order {
        kept[index] = true;
    }
    kept
}

/// The table of names.
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

#[cfg(test)]
#[path = "levels_tests.rs"]
mod tests;
