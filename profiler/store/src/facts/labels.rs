//! Label sets as numbers: a set is a process's labels and up to ten of its thread.
//!
//! A node may have fifty thousand tasks in an hour, each a set of its own, so a set here is 44 bytes and
//! becomes a [`LabelSet`] only where an answer shows it. Conditions are tried once for each process and
//! each distinct text.

use emberscope_model::{LabelKey, LabelSet, LabelSetBuilder, Matcher, Selection};
use std::sync::Arc;

/// Place of a text in [`Labels::texts`], plus one; 0 is no text.
pub(crate) type TextId = u32;
/// The label is not set.
pub(crate) const NO_TEXT: TextId = 0;

/// Keys of a thread's labels, in key order.
pub(crate) const THREAD_KEYS: [LabelKey; 10] = [
    LabelKey::Stage,
    LabelKey::StageAttempt,
    LabelKey::TaskIndex,
    LabelKey::TaskAttempt,
    LabelKey::Task,
    LabelKey::ThreadClass,
    LabelKey::Wait,
    LabelKey::Lock,
    LabelKey::LockOwner,
    LabelKey::Event,
];

/// A label set, by places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    /// Place in [`Labels::processes`].
    pub process: u32,
    /// Values of the labels [`THREAD_KEYS`], in that order; [`NO_TEXT`]: not set.
    pub thread: [TextId; THREAD_KEYS.len()],
}

/// All label sets of a part or block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub texts: Vec<Arc<str>>,
    /// A process's labels, in key order; none of a thread.
    pub processes: Vec<Box<[(LabelKey, TextId)]>>,
    pub sets: Vec<Set>,
    /// Sets that turned out not to be kept: nothing of theirs is answered.
    pub forgotten: Vec<bool>,
}

impl Labels {
    /// A text; empty for [`NO_TEXT`].
    pub fn text(&self, id: TextId) -> &str {
        self.shared(id).map_or("", |text| text)
    }

    /// A text that answers share; None for [`NO_TEXT`].
    pub fn shared(&self, id: TextId) -> Option<&Arc<str>> {
        self.texts.get((id as usize).checked_sub(1)?)
    }

    /// A label of a set.
    pub fn value(&self, set: u32, key: LabelKey) -> TextId {
        let Some(set) = self.sets.get(set as usize) else { return NO_TEXT };
        match THREAD_KEYS.iter().position(|thread| *thread == key) {
            Some(place) => set.thread.get(place).copied().unwrap_or(NO_TEXT),
            None => self.process_value(set.process, key),
        }
    }

    fn process_value(&self, process: u32, key: LabelKey) -> TextId {
        let pairs = self.processes.get(process as usize).map_or(&[] as &[_], |pairs| pairs);
        pairs.iter().find(|(known, _)| *known == key).map_or(NO_TEXT, |(_, text)| *text)
    }

    /// Labels of a set by several keys, as texts that answers share.
    pub fn values(&self, set: u32, keys: &[LabelKey]) -> Vec<Arc<str>> {
        keys.iter().map(|key| self.shared(self.value(set, *key)).cloned().unwrap_or_default()).collect()
    }

    /// The labels of a process.
    pub fn process(&self, process: u32) -> LabelSet {
        let pairs = self.processes.get(process as usize).map_or(&[] as &[_], |pairs| pairs);
        let set = |builder: LabelSetBuilder, (key, text): &(LabelKey, TextId)| {
            builder.set(*key, self.shared(*text).cloned().unwrap_or_default())
        };
        pairs.iter().fold(LabelSetBuilder::new(), set).build()
    }

    /// All processes' labels, so that the sets of one share them.
    pub fn all_processes(&self) -> Vec<LabelSet> {
        (0..self.processes.len() as u32).map(|process| self.process(process)).collect()
    }

    /// A set; `processes` are [`Labels::all_processes`].
    pub fn set(&self, set: u32, processes: &[LabelSet]) -> LabelSet {
        let Some(set) = self.sets.get(set as usize) else { return LabelSet::default() };
        let pair = |(key, text): (&LabelKey, &TextId)| Some((*key, self.shared(*text)?.clone()));
        let thread = THREAD_KEYS.iter().zip(&set.thread).filter_map(pair).collect();
        processes.get(set.process as usize).map(|process| process.with_thread(thread)).unwrap_or_default()
    }

    /// Gives the process `from` the labels of `to`. False: the process is not here.
    pub fn relabel(&mut self, from: &LabelSet, to: &LabelSet) -> bool {
        let places = self.places_of(from);
        if places.is_empty() || from.is_of_process(to) {
            return false;
        }
        let mut pairs = Vec::new();
        for (key, value) in to.process_part().iter() {
            self.texts.push(value.clone());
            pairs.push((*key, self.texts.len() as TextId));
        }
        for place in places {
            if let Some(process) = self.processes.get_mut(place as usize) {
                *process = pairs.clone().into();
            }
        }
        true
    }

    /// Forgets the sets of a process. False: the process is not here.
    pub fn forget(&mut self, of: &LabelSet) -> bool {
        let places = self.places_of(of);
        for (set, forgotten) in self.sets.iter().zip(&mut self.forgotten) {
            *forgotten |= places.contains(&set.process);
        }
        !places.is_empty()
    }

    /// Places of a process's labels.
    pub fn places_of(&self, labels: &LabelSet) -> Vec<u32> {
        (0..self.processes.len() as u32).filter(|place| self.process(*place).is_of_process(labels)).collect()
    }

    /// By place, whether a set is selected: what was forgotten is not.
    pub fn selected(&self, selection: &Selection) -> Vec<bool> {
        let mut selected: Vec<bool> = self.forgotten.iter().map(|forgotten| !forgotten).collect();
        selected.resize(self.sets.len(), true);
        let (of_thread, of_process): (Vec<&Matcher>, Vec<&Matcher>) =
            selection.matchers.iter().partition(|matcher| matcher.key.is_of_thread());
        let fits = |process: u32| {
            of_process.iter().all(|m| m.accepts(self.text(self.process_value(process, m.key))))
        };
        let processes: Vec<bool> = (0..self.processes.len() as u32).map(fits).collect();
        // What a matcher says of a text; the first place is of no text.
        let mut known: Vec<Option<bool>> = Vec::new();
        for matcher in of_thread {
            let Some(place) = THREAD_KEYS.iter().position(|key| *key == matcher.key) else { continue };
            known.clear();
            known.resize(self.texts.len() + 1, None);
            for (selected, set) in selected.iter_mut().zip(&self.sets) {
                let text = set.thread.get(place).copied().unwrap_or(NO_TEXT);
                let fits = || matcher.accepts(self.text(text));
                *selected &= match known.get_mut(text as usize) {
                    Some(known) => *known.get_or_insert_with(fits),
                    None => fits(),
                };
            }
        }
        for (selected, set) in selected.iter_mut().zip(&self.sets) {
            *selected &= processes.get(set.process as usize).copied().unwrap_or(false);
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_threads_are_all_of_them() {
        let keys: Vec<LabelKey> = LabelKey::ALL.iter().copied().filter(|key| key.is_of_thread()).collect();
        assert_eq!(keys, THREAD_KEYS);
    }
}
