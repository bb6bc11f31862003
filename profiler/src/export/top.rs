//! Functions by their own and their total samples.
//!
//! A function is a (kind, name), as in the tree. Its total counts a sample once, however often the
//! function is in the stack: recursion does not count twice. Prefix frames of a grouped answer are no
//! functions.

use super::Unit;
use super::walk::{Below, preorder};
use crate::model::{Frame, FrameKind, Tree};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

/// A function's numbers.
#[derive(Clone, Debug)]
pub struct TopRow {
    /// Which function.
    pub frame: Arc<Frame>,
    /// Samples (or their weight) that ended in it.
    pub self_value: u64,
    /// Samples (or their weight) with it anywhere in the stack.
    pub total_value: u64,
}

/// All functions of a tree: most of their own first, then by total, then by name.
pub fn top(tree: &Tree, unit: Unit) -> Vec<TopRow> {
    let mut places: HashMap<(FrameKind, &str), usize> = HashMap::new();
    let mut rows: Vec<TopRow> = Vec::new();
    let of_node: Vec<usize> = tree
        .nodes
        .iter()
        .map(|node| {
            *places.entry((node.frame.kind, &node.frame.name)).or_insert_with(|| {
                rows.push(TopRow { frame: node.frame.clone(), self_value: 0, total_value: 0 });
                rows.len() - 1
            })
        })
        .collect();
    // How often each function is on the path to the node, and the path itself.
    let mut on_path = vec![0u32; rows.len()];
    let mut path: Vec<usize> = Vec::new();
    let walked = preorder::<Infallible>(tree, |visit| {
        for left in path.drain(visit.depth.min(path.len())..) {
            if let Some(times) = on_path.get_mut(left) {
                *times -= 1;
            }
        }
        let place = of_node.get(visit.id as usize).copied().unwrap_or(usize::MAX);
        if let (Some(row), Some(times)) = (rows.get_mut(place), on_path.get_mut(place)) {
            row.self_value = row.self_value.saturating_add(unit.own(visit.node));
            if *times == 0 {
                row.total_value = row.total_value.saturating_add(unit.total(visit.node));
            }
            *times += 1;
        }
        path.push(place);
        Ok(Below::Go)
    });
    match walked {
        Ok(()) => {}
        Err(never) => match never {},
    }
    rows.retain(|row| row.frame.kind != FrameKind::Label);
    rows.sort_by(|a, b| {
        let by_numbers = (b.self_value, b.total_value).cmp(&(a.self_value, a.total_value));
        by_numbers.then_with(|| (&a.frame.name, a.frame.kind).cmp(&(&b.frame.name, b.frame.kind)))
    });
    rows
}
