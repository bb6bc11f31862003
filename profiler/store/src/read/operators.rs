//! Series apart by operator, or of some: [`crate::Store::series`] where a question names the label that only stacks tell.
//!
//! In: views. Out: sums by step, the labels, and the operator of each stack, which is found once for each stack of a view.

use super::super::facts::Stacks;
use super::Covered;
use super::lists::is;
use super::methods::frames;
use super::steps::{Steps, too_long};
use crate::error::StoreError;
use crate::limits::AnswerLimits;
use crate::operators::Parted;
use crate::values::LabelledSeries;
use crate::view::{UNSELECTED, View};
use emberscope_model::{FrameSign, LabelKey, Operator, OperatorWalk, WallTime};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Count and weight by step (its start).
type Line = BTreeMap<u64, (u64, u64)>;

/// Series in the making.
pub(crate) struct OperatorSeries<'q> {
    asked: &'q Parted<'q>,
    limit: usize,
    steps: Steps,
    /// By the values of the labels.
    lines: BTreeMap<Vec<Arc<str>>, Line>,
    points: usize,
    /// What operators are called; None: the conditions leave one out.
    names: BTreeMap<Operator, Option<Arc<str>>>,
}

impl<'q> OperatorSeries<'q> {
    /// No points yet. The labels are those of the question's group.
    pub fn new(asked: &'q Parted<'q>, step: Duration, limits: &AnswerLimits) -> Self {
        let (lines, names) = Default::default();
        Self { asked, limit: limits.points, steps: Steps::new(step), lines, points: 0, names }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are more points than may be, or more stacks. [`StoreError::Unreadable`]: the view
    /// cannot be read.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let (facts, query) = (view.facts(), &self.asked.query);
        let touched = Covered::default().touch(facts, &query.range);
        let selected = facts.labels.selected(&query.selection);
        let steps = self.steps.of(facts, &touched);
        // Groups of one step that have the same labels have one slot.
        let mut slot_of: HashMap<(WallTime, Vec<u32>), u32> = HashMap::new();
        let mut slots: Vec<(WallTime, u32)> = Vec::new();
        let mut slot = |group: crate::facts::Group| {
            let step = *steps.get(group.window as usize)?;
            let asked =
                query.kind.holds(group.kind) && is(&touched, group.window) && is(&selected, group.set);
            asked.then(|| {
                let ids = query.group.iter().map(|key| facts.labels.value(group.set, *key)).collect();
                *slot_of.entry((step, ids)).or_insert_with(|| {
                    slots.push((step, group.set));
                    slots.len() as u32 - 1
                })
            })
        };
        let of_group: Vec<u32> = facts.groups.iter().map(|group| slot(group).unwrap_or(UNSELECTED)).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let sums = view.sums(&of_group, slots.len())?.into_sorted();
        let stacks = view.stacks()?;
        let mut operators = Operators::of(&stacks);
        let mut by_operator: BTreeMap<(u32, Operator), (u64, u64)> = BTreeMap::new();
        for (slot, stack, count, weight) in sums {
            let sum = by_operator.entry((slot, operators.operator(stack))).or_default();
            *sum = (sum.0.saturating_add(count), sum.1.saturating_add(weight));
        }
        for ((slot, operator), more) in by_operator {
            let (Some((step, set)), Some(name)) = (slots.get(slot as usize), self.name(operator)) else {
                continue;
            };
            let mut values = facts.labels.values(*set, &query.group);
            if let Some(place) = self.asked.place {
                values.insert(place.min(values.len()), name);
            }
            self.count(values, *step, more)?;
        }
        Ok(())
    }

    /// What an operator that the conditions leave in is called.
    fn name(&mut self, operator: Operator) -> Option<Arc<str>> {
        let name = || self.asked.accepts(operator).then(|| operator.name().into());
        self.names.entry(operator).or_insert_with(name).clone()
    }

    fn count(&mut self, values: Vec<Arc<str>>, step: WallTime, more: (u64, u64)) -> Result<(), StoreError> {
        let line = self.lines.entry(values).or_default();
        let before = line.len();
        let sum = line.entry(step.0).or_default();
        *sum = (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1));
        self.points += line.len() - before;
        if self.points > self.limit { Err(too_long(self.limit)) } else { Ok(()) }
    }

    /// The series, sorted by their labels; a zero in each step that another has.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: with the zeros there are more points than may be.
    pub fn finish(self) -> Result<Vec<LabelledSeries>, StoreError> {
        let Self { asked, limit, steps, lines, .. } = self;
        steps.fit(lines.len(), limit)?;
        let mut by = asked.query.group.clone();
        if let Some(place) = asked.place {
            by.insert(place.min(by.len()), LabelKey::Operator);
        }
        let series = |(values, sums): (Vec<Arc<str>>, Line)| {
            let points = steps.points(|step| sums.get(&step).copied());
            (by.iter().copied().zip(values).collect(), points)
        };
        Ok(lines.into_iter().map(series).collect())
    }
}

/// What the stacks of a view work for, each looked at once.
struct Operators<'s> {
    stacks: &'s Stacks,
    of_stack: Vec<Option<Operator>>,
    signs: Vec<Option<FrameSign>>,
}

impl<'s> Operators<'s> {
    fn of(stacks: &'s Stacks) -> Self {
        let (of_stack, signs) = (vec![None; stacks.stacks.len()], vec![None; stacks.frames.len()]);
        Self { stacks, of_stack, signs }
    }

    fn operator(&mut self, stack: u32) -> Operator {
        if let Some(Some(known)) = self.of_stack.get(stack as usize) {
            return *known;
        }
        let mut from_leaf: Vec<u32> = frames(self.stacks, stack).collect();
        from_leaf.reverse();
        let mut walk = OperatorWalk::default();
        for place in from_leaf {
            let (Some(frame), Some(sign)) =
                (self.stacks.frames.get(place as usize), self.signs.get_mut(place as usize))
            else {
                continue;
            };
            walk = walk.then(*sign.get_or_insert_with(|| FrameSign::of(frame)));
        }
        let operator = walk.operator();
        if let Some(known) = self.of_stack.get_mut(stack as usize) {
            *known = Some(operator);
        }
        operator
    }
}
