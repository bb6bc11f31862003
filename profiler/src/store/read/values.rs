//! Values of one label, with sums: no label set is made for them.
//!
//! Limit: [`AnswerLimits::label_sets`] values; over it the query is refused.

use super::lists::is;
use super::{Covered, View};
use crate::model::{FastMap, LabelKey, Query};
use crate::store::facts::NO_TEXT;
use crate::store::{AnswerLimits, LabelValue, StoreError};
use std::sync::Arc;

/// [`crate::store::Store::values`] in the making.
pub(in crate::store) struct Values<'q> {
    query: &'q Query,
    key: LabelKey,
    limit: usize,
    places: FastMap<Arc<str>, usize>,
    values: Vec<LabelValue>,
}

impl<'q> Values<'q> {
    /// None yet.
    pub fn new(query: &'q Query, key: LabelKey, limits: &AnswerLimits) -> Self {
        let (places, values) = (FastMap::default(), Vec::new());
        Self { query, key, limit: limits.label_sets, places, values }
    }

    /// Adds a view.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        // By set, then by text: most groups are of few sets.
        let mut of_set: Vec<(u64, u64)> = vec![(0, 0); facts.labels.sets.len()];
        for group in facts.groups.iter().filter(|group| group.kind == self.query.kind) {
            if is(&touched, group.window)
                && is(&selected, group.set)
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
            let Some(value) = facts.labels.shared(text as u32) else { continue };
            let next = self.values.len();
            let place = *self.places.entry(value.clone()).or_insert(next);
            match self.values.get_mut(place) {
                Some(known) => {
                    known.count = known.count.saturating_add(count);
                    known.weight = known.weight.saturating_add(weight);
                }
                None if next >= self.limit => {
                    return Err(StoreError::TooLarge { what: "values of the label", limit: self.limit });
                }
                None => self.values.push(LabelValue { value: value.clone(), count, weight }),
            }
        }
        Ok(())
    }

    /// The values: most samples first, then by text.
    pub fn finish(mut self) -> Vec<LabelValue> {
        super::super::sort_values(&mut self.values);
        self.values
    }
}
