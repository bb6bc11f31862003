//! Methods of the selected stacks of a view: each stack is walked once, from its leaf up.

use super::super::facts::Stacks;
use super::super::methods::Methods;
use super::{Quantities, Summing};
use crate::error::StoreError;
use crate::limits::AnswerLimits;
use crate::view::{UNSELECTED, View};
use emberscope_model::{MethodAnswer, Quality, Query, Summary};
use std::time::Duration;

/// [`crate::Store::methods`] in the making.
pub(crate) struct MethodSums<'q> {
    methods: Methods,
    quantities: Quantities<'q>,
}

impl<'q> Summing<'q> for MethodSums<'q> {
    type Answer = MethodAnswer;

    fn new(query: &'q Query, limits: &AnswerLimits) -> Self {
        Self { methods: Methods::new(query.detail, limits.nodes), quantities: Quantities::new(query) }
    }

    fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let selected = self.quantities.add(view.facts());
        if !selected.contains(&true) {
            return Ok(());
        }
        let slot = |selected: &bool| if *selected { 0 } else { UNSELECTED };
        let of_group: Vec<u32> = selected.iter().map(slot).collect();
        let sums = view.sums(&of_group, 1)?.into_sorted();
        let stacks = view.stacks()?;
        // Only frames of these stacks are methods of the answer.
        let mut place_of = vec![None; stacks.frames.len()];
        let mut places = Vec::new();
        for (_, stack, count, weight) in sums {
            places.clear();
            for frame in frames(&stacks, stack) {
                let Some(slot) = place_of.get_mut(frame as usize) else { continue };
                let place = match (*slot, stacks.frames.get(frame as usize)) {
                    (Some(place), _) => place,
                    (None, Some(frame)) => self.methods.place(frame)?,
                    (None, None) => continue,
                };
                *slot = Some(place);
                places.push(place);
            }
            self.methods.add(places.iter().copied(), count, weight);
        }
        Ok(())
    }

    fn join(&mut self, other: Self) -> Result<(), StoreError> {
        self.quantities.join(other.quantities);
        self.methods.join(other.methods)
    }

    fn finish(self, length: Duration) -> MethodAnswer {
        let Summary { range, windows, quality } = self.quantities.finish(length);
        MethodAnswer { methods: self.methods.finish(), range, windows, quality }
    }

    fn quality(answer: &mut MethodAnswer) -> &mut Quality {
        &mut answer.quality
    }
}

/// A stack's frames, from its leaf up.
pub(super) fn frames(stacks: &Stacks, stack: u32) -> impl Iterator<Item = u32> {
    let mut at = stacks.stacks.get(stack as usize).map_or(0, |line| line.node);
    std::iter::from_fn(move || {
        let node = stacks.nodes.get(at as usize).filter(|_| at != 0)?;
        at = node.parent;
        Some(node.frame)
    })
}
