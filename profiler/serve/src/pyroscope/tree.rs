//! A call tree in the form that Pyroscope's parts exchange (`PROFILE_FORMAT_TREE`).
//!
//! In: a [`Tree`] and which of its numbers is wanted. Out: for each node, a caller before its callees: length of
//! the name, name, own value, number of callees, all numbers as unsigned LEB128 (pkg/model `tree.go`,
//! `UnmarshalTree`); first a nameless root. What is cut becomes `other`, and so does what ended in the root.

use super::levels::{fold, widest};
use emberscope_export::Unit;
use emberscope_model::Tree;

/// At most `max_nodes` nodes (and an `other` for each that is cut below); empty of no sample.
pub fn tree_bytes(tree: &Tree, value: Unit, max_nodes: usize) -> Vec<u8> {
    let bars = fold([Some(tree)], value);
    let kept = widest(&bars, max_nodes.max(1));
    let mut out = Vec::new();
    if bars.first().is_none_or(|root| root.total == [0]) {
        return out;
    }
    let mut stack = vec![0];
    while let Some(index) = stack.pop() {
        let Some(bar) = bars.get(index) else { continue };
        let is_kept = |index: usize| kept.get(index) == Some(&true);
        let below = bar.below.values().copied().filter(|&i| bars.get(i).is_some_and(|b| b.total != [0]));
        let (shown, cut): (Vec<usize>, Vec<usize>) = below.partition(|&i| is_kept(i));
        let mut other: i64 = cut.iter().filter_map(|&i| bars.get(i)).map(|b| b.total[0]).sum();
        // The reader drops what the nameless root has of its own.
        let (name, own) = if index == 0 { ("", 0) } else { (&*bar.name, bar.own[0]) };
        if index == 0 {
            other = other.saturating_add(bar.own[0]);
        }
        node(&mut out, name, own, shown.len() + usize::from(other > 0));
        if other > 0 {
            node(&mut out, "other", other, 0);
        }
        stack.extend(shown.into_iter().rev());
    }
    out
}

fn node(out: &mut Vec<u8>, name: &str, own: i64, callees: usize) {
    number(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
    number(out, own.unsigned_abs());
    number(out, callees as u64);
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
