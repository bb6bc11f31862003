//! One call tree, and what it rests on.
//!
//! The stacks of a view are a prefix tree already, whose nodes on the way to a selected stack are listed in order
//! ([`Shape`](super::super::flat::Shape)); such lists of all views become one.

use super::super::facts::{Facts, Flaw, TextId};
use super::super::flat::Flat;
use super::{Covered, Summing};
use crate::error::StoreError;
use crate::limits::{AnswerLimits, NO_VALUE};
use crate::view::{UNSELECTED, View};
use emberscope_model::{Answer, LabelKey, Quality, Query, StackEnd, Summary, Tree};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Counts of files that anybody may have written: a sum beyond 64 bits stays there.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// What an answer rests on, in the making.
#[derive(Debug)]
pub(crate) struct Quantities<'q> {
    query: &'q Query,
    covered: Covered,
    quality: Quality,
}

impl<'q> Quantities<'q> {
    /// What an answer over no view rests on.
    pub fn new(query: &'q Query) -> Self {
        let quality = Quality { kind: query.kind, ..Quality::default() };
        Self { query, covered: Covered::default(), quality }
    }

    /// Adds what a view has. Out: by place, whether a group of the view is selected.
    pub fn add(&mut self, facts: &Facts) -> Vec<bool> {
        let touched = self.covered.touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        let is = |list: &[bool], place: u32| list.get(place as usize).copied().unwrap_or(false);
        let quality = &mut self.quality;
        let mut root = 0_u64;
        let groups: Vec<bool> = (0..facts.groups.len())
            .map(|place| {
                let fits = is(&touched, facts.groups.window(place))
                    && is(&selected, facts.groups.set(place))
                    && self.query.kind.holds(facts.groups.kind(place));
                if fits && let Some(group) = facts.groups.get(place) {
                    add(&mut root, group.count);
                    add(&mut quality.samples, group.count);
                    add(&mut quality.frames, group.frames);
                    add(&mut quality.approximate, group.approximate);
                }
                fits
            })
            .collect();
        for flaw in facts.flaws.iter().filter(|flaw| is(&groups, flaw.group)) {
            match flaw.flaw {
                Flaw::End(end) => {
                    root = root.saturating_sub(flaw.count);
                    add(quality.ends.entry(end.slug()).or_default(), flaw.count);
                    if end != StackEnd::KernelThread {
                        add(&mut quality.truncated, flaw.count);
                    }
                }
                Flaw::Unnamed(reason) => {
                    add(&mut quality.unnamed_frames, flaw.count);
                    add(quality.unnamed.entry(reason.slug()).or_default(), flaw.count);
                }
            }
        }
        if root > 0 {
            add(quality.ends.entry(StackEnd::Root.slug()).or_default(), root);
        }
        groups
    }

    /// Adds the sums of other views.
    pub fn join(&mut self, other: Self) {
        let Quality {
            kind: _,
            samples,
            truncated,
            ends,
            frames,
            unnamed_frames,
            unnamed,
            approximate,
            lost: _,
            missing: _,
        } = other.quality;
        let quality = &mut self.quality;
        add(&mut quality.samples, samples);
        add(&mut quality.truncated, truncated);
        add(&mut quality.frames, frames);
        add(&mut quality.unnamed_frames, unnamed_frames);
        add(&mut quality.approximate, approximate);
        for (end, count) in ends {
            add(quality.ends.entry(end).or_default(), count);
        }
        for (reason, count) in unnamed {
            add(quality.unnamed.entry(reason).or_default(), count);
        }
        self.covered.join(&other.covered);
    }

    /// The answer without its tree.
    pub fn finish(mut self, length: Duration) -> Summary {
        self.quality.lost = self.covered.lost;
        let range = self.covered.range(&self.query.range, length);
        Summary { range, windows: self.covered.windows, quality: self.quality }
    }
}

/// A tree in the making.
pub(crate) struct Merge<'q> {
    query: &'q Query,
    max_nodes: usize,
    tree: Flat,
    quantities: Quantities<'q>,
}

/// A tree that is made, and what it rests on.
#[derive(Debug)]
pub(crate) struct Merged {
    tree: Flat,
    summary: Summary,
}

impl Merged {
    fn answer(tree: Tree, Summary { range, windows, quality }: Summary) -> Answer {
        Answer { tree, range, windows, quality }
    }

    /// The answer with the whole tree.
    pub fn whole(self) -> Answer {
        Self::answer(self.tree.finish(), self.summary)
    }

    /// The answer with the tree's largest nodes, and how many went.
    pub fn largest(self, max_nodes: usize) -> (Answer, usize) {
        let (tree, gone) = self.tree.largest(max_nodes);
        (Self::answer(tree, self.summary), gone)
    }
}

impl<'q> Summing<'q> for Merge<'q> {
    type Answer = Merged;

    fn new(query: &'q Query, limits: &AnswerLimits) -> Self {
        Self { query, max_nodes: limits.nodes, tree: Flat::default(), quantities: Quantities::new(query) }
    }

    fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let selected = self.quantities.add(facts);
        if !selected.contains(&true) {
            return Ok(());
        }
        let slots = Slots::of(facts, &selected, &self.query.group);
        drop(selected);
        let sums = view.sums(&slots.of_group, slots.prefixes.len())?.into_sorted();
        let (stacks, shape) = (view.stacks()?, view.shape(self.query.detail)?);
        let tree = shape.grow(&stacks, &sums, &slots.prefixes, self.max_nodes)?;
        self.tree = std::mem::take(&mut self.tree).merge(tree, self.max_nodes)?;
        Ok(())
    }

    fn join(&mut self, other: Self) -> Result<(), StoreError> {
        self.quantities.join(other.quantities);
        self.tree = std::mem::take(&mut self.tree).merge(other.tree, self.max_nodes)?;
        Ok(())
    }

    fn finish(self, length: Duration) -> Merged {
        Merged { tree: self.tree, summary: self.quantities.finish(length) }
    }

    fn quality(answer: &mut Merged) -> &mut Quality {
        &mut answer.summary.quality
    }
}

/// What a view's groups are told apart by.
#[derive(Debug)]
struct Slots {
    /// A slot for each group, or [`UNSELECTED`].
    of_group: Vec<u32>,
    /// Prefix frames of each slot: no two are equal.
    prefixes: Vec<Vec<Arc<str>>>,
}

impl Slots {
    fn of(facts: &Facts, selected: &[bool], by: &[LabelKey]) -> Self {
        let slot = |selected: &bool| if *selected { 0 } else { UNSELECTED };
        let mut of_group: Vec<u32> = selected.iter().map(slot).collect();
        if by.is_empty() {
            return Self { of_group, prefixes: vec![Vec::new()] };
        }
        let mut prefixes = Vec::new();
        let mut of_prefix: HashMap<Vec<Arc<str>>, u32> = HashMap::new();
        let mut of_values: HashMap<Vec<TextId>, u32> = HashMap::new();
        let mut of_set = vec![UNSELECTED; facts.labels.sets.len()];
        for (slot, group) in of_group.iter_mut().zip(facts.groups.iter()).filter(|(slot, _)| **slot == 0) {
            let Some(known) = of_set.get_mut(group.set as usize) else { continue };
            if *known == UNSELECTED {
                let values: Vec<TextId> = by.iter().map(|key| facts.labels.value(group.set, *key)).collect();
                *known = *of_values.entry(values).or_insert_with_key(|values| {
                    let text = |(key, value): (&LabelKey, &TextId)| -> Arc<str> {
                        let value = facts.labels.shared(*value).map_or(NO_VALUE, |value| value);
                        format!("{key}={value}").into()
                    };
                    let prefix: Vec<Arc<str>> = by.iter().zip(values).map(text).collect();
                    // Two places may have the same text.
                    *of_prefix.entry(prefix.clone()).or_insert_with(|| {
                        prefixes.push(prefix);
                        prefixes.len() as u32 - 1
                    })
                });
            }
            *slot = *known;
        }
        Self { of_group, prefixes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{Detail, SampleKind, Selection, TimeRange, WallTime};

    /// Found by the fuzz target `archive`.
    #[test]
    fn sums_of_any_counts_end_at_the_largest() {
        let query = Query {
            range: TimeRange { from: WallTime(0), until: WallTime(1) },
            selection: Selection::all(),
            kind: SampleKind::Cpu,
            group: Vec::new(),
            detail: Detail::default(),
        };
        let of = |count| {
            let mut some = Quantities::new(&query);
            (some.quality.samples, some.quality.unnamed_frames) = (count, count);
            some.quality.ends.insert("root", count);
            some
        };
        let mut all = of(u64::MAX - 1);
        all.join(of(2));
        let Quality { samples, unnamed_frames, ends, .. } = all.quality;
        assert_eq!((samples, unnamed_frames, ends["root"]), (u64::MAX, u64::MAX, u64::MAX));
    }
}
