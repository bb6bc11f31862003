//! One call tree, and what it rests on.
//!
//! The stacks of a view are a prefix tree already: each of its nodes on the way to a selected stack is
//! looked up once in the answer's tree, not once for each stack.

use super::super::answer::NO_VALUE;
use super::super::facts::{Facts, Flaw, StackNode, Stacks, TextId};
use super::super::pointer::PointerMap;
use super::super::tree::{Symbol, TreeBuilder};
use super::{Covered, UNSELECTED, View};
use crate::model::{Answer, NodeId, Quality, Query, StackEnd, Summary};
use crate::store::{AnswerLimits, StoreError};
use std::collections::HashMap;
use std::time::Duration;

/// What an answer rests on, in the making.
#[derive(Debug)]
pub(in crate::store) struct Quantities<'q> {
    query: &'q Query,
    covered: Covered,
    quality: Quality,
}

impl<'q> Quantities<'q> {
    /// Of nothing yet.
    pub fn new(query: &'q Query) -> Self {
        Self { query, covered: Covered::default(), quality: Quality::default() }
    }

    /// Adds a view's; its selected groups are true.
    pub fn add(&mut self, facts: &Facts) -> Vec<bool> {
        let touched = self.covered.touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        let is = |list: &[bool], place: u32| list.get(place as usize).copied().unwrap_or(false);
        let quality = &mut self.quality;
        let mut root = 0_u64;
        let groups: Vec<bool> = (facts.groups.iter())
            .map(|group| {
                let fits =
                    group.kind == self.query.kind && is(&touched, group.window) && is(&selected, group.set);
                if fits {
                    root += group.count;
                    quality.samples += group.count;
                    quality.frames += group.frames;
                    quality.approximate += group.approximate;
                }
                fits
            })
            .collect();
        for flaw in facts.flaws.iter().filter(|flaw| is(&groups, flaw.group)) {
            match flaw.flaw {
                Flaw::End(end) => {
                    root = root.saturating_sub(flaw.count);
                    *quality.ends.entry(end.slug()).or_default() += flaw.count;
                    if end != StackEnd::KernelThread {
                        quality.truncated += flaw.count;
                    }
                }
                Flaw::Unnamed(reason) => {
                    quality.unnamed_frames += flaw.count;
                    *quality.unnamed.entry(reason.slug()).or_default() += flaw.count;
                }
            }
        }
        if root > 0 {
            *quality.ends.entry(StackEnd::Root.slug()).or_default() += root;
        }
        groups
    }

    /// The answer without its tree.
    pub fn finish(mut self, length: Duration) -> Summary {
        self.quality.lost = self.covered.lost;
        let range = self.covered.range(&self.query.range, length);
        Summary { range, windows: self.covered.windows, quality: self.quality }
    }
}

/// A tree in the making.
pub(in crate::store) struct Merge<'q> {
    query: &'q Query,
    tree: TreeBuilder<'q>,
    quantities: Quantities<'q>,
}

impl<'q> Merge<'q> {
    /// Only a root.
    pub fn new(query: &'q Query, limits: &AnswerLimits) -> Self {
        let tree = TreeBuilder::new(limits.nodes, query.detail);
        Self { query, tree, quantities: Quantities::new(query) }
    }

    /// Adds a view.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let selected = self.quantities.add(facts);
        if !selected.contains(&true) {
            return Ok(());
        }
        let (of_group, nodes) = self.slots(facts, &selected)?;
        let sums = view.sums(&of_group, nodes.len())?.into_sorted();
        let stacks = view.stacks()?;
        grow(&mut self.tree, &stacks, &nodes, &sums)
    }

    /// A slot for each group, and the node under which a slot's stacks go.
    fn slots(&mut self, facts: &Facts, selected: &[bool]) -> Result<(Vec<u32>, Vec<NodeId>), StoreError> {
        let slot = |selected: &bool| if *selected { 0 } else { UNSELECTED };
        let mut of_group: Vec<u32> = selected.iter().map(slot).collect();
        let mut nodes = vec![0];
        if self.query.group.is_empty() {
            return Ok((of_group, nodes));
        }
        nodes.clear();
        let mut of_values: HashMap<Vec<TextId>, u32> = HashMap::new();
        let mut of_set: PointerMap<u32> = PointerMap::default();
        for (slot, group) in of_group.iter_mut().zip(&facts.groups).filter(|(slot, _)| **slot == 0) {
            if let Some(known) = of_set.get(&(group.set as usize)) {
                *slot = *known;
                continue;
            }
            let values: Vec<TextId> =
                self.query.group.iter().map(|key| facts.labels.value(group.set, *key)).collect();
            *slot = match of_values.get(&values) {
                Some(known) => *known,
                None => {
                    let mut node = 0;
                    for (key, value) in self.query.group.iter().zip(&values) {
                        let value = facts.labels.shared(*value).map_or(NO_VALUE, |value| value);
                        node = self.tree.prefix(node, format!("{key}={value}"))?;
                    }
                    nodes.push(node);
                    let new = nodes.len() as u32 - 1;
                    of_values.insert(values, new);
                    new
                }
            };
            of_set.insert(group.set as usize, *slot);
        }
        Ok((of_group, nodes))
    }

    /// The answer.
    pub fn finish(self, length: Duration) -> Answer {
        let Summary { range, windows, quality } = self.quantities.finish(length);
        Answer { tree: self.tree.finish(), range, windows, quality }
    }
}

/// Adds sums (by slot) to the tree.
fn grow(
    tree: &mut TreeBuilder<'_>,
    stacks: &Stacks,
    slots: &[NodeId],
    sums: &[(u32, u32, u64, u64)],
) -> Result<(), StoreError> {
    const UNKNOWN: u32 = u32::MAX;
    let mut symbols: Vec<Symbol> = vec![UNKNOWN; stacks.frames.len()];
    // The tree's node for each of ours, right for the slot in `seen`.
    let mut placed: Vec<NodeId> = vec![0; stacks.nodes.len()];
    let mut seen: Vec<u32> = vec![UNKNOWN; stacks.nodes.len()];
    let mut way: Vec<u32> = Vec::new();
    for sums in sums.chunk_by(|a, b| a.0 == b.0) {
        let Some((slot, ..)) = sums.first().copied() else { continue };
        let top = slots.get(slot as usize).copied().unwrap_or(0);
        for (_, stack, count, weight) in sums {
            let Some(line) = stacks.stacks.get(*stack as usize) else { continue };
            // Up to what this slot has, then down again.
            let mut at = line.node;
            way.clear();
            while at != 0 && seen.get(at as usize).is_some_and(|seen| *seen != slot) {
                way.push(at);
                at = stacks.nodes.get(at as usize).map_or(0, |node| node.parent);
            }
            let mut node = if at == 0 { top } else { placed.get(at as usize).copied().unwrap_or(top) };
            for at in way.iter().rev() {
                let Some(StackNode { frame, .. }) = stacks.nodes.get(*at as usize) else { continue };
                let (Some(symbol), Some(frame)) =
                    (symbols.get_mut(*frame as usize), stacks.frames.get(*frame as usize))
                else {
                    continue;
                };
                if *symbol == UNKNOWN {
                    *symbol = tree.symbol(frame);
                }
                node = tree.child(node, *symbol)?;
                if let (Some(placed), Some(seen)) = (placed.get_mut(*at as usize), seen.get_mut(*at as usize))
                {
                    (*placed, *seen) = (node, slot);
                }
            }
            tree.count(node, *count, *weight);
        }
    }
    Ok(())
}
