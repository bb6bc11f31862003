//! Values of one label, with sums: no label set is made for them.
//!
//! Limit: [`AnswerLimits::label_sets`] values; over it the query is refused.

use super::Covered;
use super::lists::is;
use crate::error::StoreError;
use crate::facts::NO_TEXT;
use crate::limits::AnswerLimits;
use crate::values::LabelValue;
use crate::view::View;
use emberscope_model::{LabelKey, Query};
use std::cmp::Reverse;

/// [`crate::Store::values`] in the making.
pub(crate) struct Values<'q> {
    query: &'q Query,
    key: LabelKey,
    limit: usize,
    /// Each with the beginning of its text, as a number that orders as the text does.
    values: Vec<(u64, LabelValue)>,
    /// Values before this place are in the order of texts, each of them once.
    sorted: usize,
}

/// The first eight bytes of a text.
fn beginning(text: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(text.as_bytes()).for_each(|(slot, byte)| *slot = *byte);
    u64::from_be_bytes(bytes)
}

impl<'q> Values<'q> {
    /// No values yet.
    pub fn new(query: &'q Query, key: LabelKey, limits: &AnswerLimits) -> Self {
        Self { query, key, limit: limits.label_sets, values: Vec::new(), sorted: 0 }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are more values than label sets may be.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        // By set, then by text: most groups are of few sets.
        let mut of_set: Vec<(u64, u64)> = vec![(0, 0); facts.labels.sets.len()];
        let groups = &facts.groups;
        for place in 0..groups.len() {
            if is(&touched, groups.window(place))
                && is(&selected, groups.set(place))
                && self.query.kind.holds(groups.kind(place))
                && let Some(group) = groups.get(place)
                && let Some(sum) = of_set.get_mut(group.set as usize)
            {
                sum.0 = sum.0.saturating_add(group.count);
                sum.1 = sum.1.saturating_add(group.weight);
            }
        }
        let mut of_text: Vec<(u64, u64)> = vec![(0, 0); facts.labels.texts.len() + 1];
        for (set, sum) in of_set.into_iter().enumerate().filter(|(_, sum)| *sum != (0, 0)) {
            let text = facts.labels.value(set as u32, self.key);
            if let Some(of_text) = of_text.get_mut(text as usize) {
                of_text.0 = of_text.0.saturating_add(sum.0);
                of_text.1 = of_text.1.saturating_add(sum.1);
            }
        }
        let values = of_text.into_iter().enumerate().skip(NO_TEXT as usize + 1);
        for (text, (count, weight)) in values.filter(|(_, sum)| *sum != (0, 0)) {
            let Some(value) = facts.labels.shared(text as u32).cloned() else { continue };
            self.values.push((beginning(&value), LabelValue { value, count, weight }));
            if self.values.len() > self.limit.saturating_add(self.sorted) {
                self.join();
            }
        }
        self.check()
    }

    /// Makes equal values one.
    fn join(&mut self) {
        // Places are sorted, which are smaller than values.
        let all = &self.values;
        let text = |place: u32| all.get(place as usize).map(|(_, value)| &*value.value);
        let mut order: Vec<(u64, u32)> =
            (0..).zip(all).map(|(place, (begins, _))| (*begins, place)).collect();
        order.sort_unstable_by(|(a, one), (b, two)| a.cmp(b).then_with(|| text(*one).cmp(&text(*two))));
        let mut joined: Vec<(u64, LabelValue)> = Vec::with_capacity(order.len());
        for (begins, place) in order {
            let Some((_, value)) = all.get(place as usize) else { continue };
            match joined.last_mut().filter(|(known, last)| *known == begins && last.value == value.value) {
                Some((_, kept)) => {
                    kept.count = kept.count.saturating_add(value.count);
                    kept.weight = kept.weight.saturating_add(value.weight);
                }
                None => joined.push((begins, value.clone())),
            }
        }
        self.values = joined;
        self.sorted = self.values.len();
    }

    fn check(&mut self) -> Result<(), StoreError> {
        if self.values.len() > self.limit {
            self.join();
        }
        match self.values.len() > self.limit {
            true => Err(StoreError::TooLarge { what: "values of the label", limit: self.limit }),
            false => Ok(()),
        }
    }

    /// The values: most samples first, then by text.
    pub fn finish(mut self) -> Vec<LabelValue> {
        self.join();
        let mut order: Vec<(Reverse<u64>, u32)> =
            (0..).zip(&self.values).map(|(place, (_, value))| (Reverse(value.count), place)).collect();
        // Places are in the order of texts.
        order.sort_unstable();
        let mut values: Vec<Option<LabelValue>> =
            self.values.into_iter().map(|(_, value)| Some(value)).collect();
        order.into_iter().filter_map(|(_, place)| values.get_mut(place as usize)?.take()).collect()
    }
}
