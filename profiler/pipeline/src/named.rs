//! Which of the named events a sample is of: the label `event`.

use emberscope_model::{LabelKey, LabelRewrite, LabelSet, LabelSetBuilder, NamedEvent};
use std::sync::Arc;

/// The names of the events, by slot, and the label sets that have them.
#[derive(Debug, Default)]
pub struct Named(Vec<(Arc<str>, LabelRewrite)>);

impl Named {
    /// The events in the order of their slots.
    pub fn new(events: &[NamedEvent]) -> Self {
        Self(events.iter().map(|event| (event.name.clone(), LabelRewrite::default())).collect())
    }

    /// The labels of a sample of the event in this slot.
    pub fn tell(&mut self, slot: u16, labels: Arc<LabelSet>) -> Arc<LabelSet> {
        let Some((name, sets)) = self.0.get_mut(usize::from(slot)) else { return labels };
        let with = |labels: &Arc<LabelSet>| {
            let set = LabelSetBuilder::from_set(labels).set(LabelKey::Event, name.clone());
            Some(Arc::new(set.build()))
        };
        sets.of(&labels, with).unwrap_or(labels)
    }

    /// A window is over: the sets of its rows are not asked for again.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|(_, sets)| *sets = LabelRewrite::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_name_of_its_slot() {
        let events = ["cpu-migrations", "block:block_rq_issue"].map(|name| name.parse().unwrap());
        let mut named = Named::new(&events);
        let labels = Arc::new(LabelSetBuilder::new().set(LabelKey::Task, "7").build());
        let one = named.tell(1, labels.clone());
        assert_eq!((one.get(LabelKey::Event), one.get(LabelKey::Task)), ("block:block_rq_issue", "7"));
        assert!(Arc::ptr_eq(&one, &named.tell(1, labels.clone())));
        assert_eq!(named.tell(0, labels.clone()).get(LabelKey::Event), "cpu-migrations");
        assert!(Arc::ptr_eq(&named.tell(2, labels.clone()), &labels), "a record from nowhere");
        named.forget();
        assert_eq!(*named.tell(1, labels), *one);
    }
}
