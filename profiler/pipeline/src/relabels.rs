//! Labels of processes that became known while their window was open.
//!
//! In: who is called what from now on, or is not kept. Out: the labels of a row or a ledger line of an
//! open window, with its thread's labels kept. Bounded: over [`MAX_RELABELS`] all are forgotten, and what
//! is still open keeps its old labels.

use emberscope_model::{LabelRewrite, LabelSet, LedgerRow};
use std::collections::HashMap;
use std::sync::Arc;

/// Relabels kept for windows that are still open.
const MAX_RELABELS: usize = 10_000;

/// Labels of a process, and what they became; None: of an application that is not kept.
#[derive(Debug, Default)]
pub struct Relabels(HashMap<Arc<LabelSet>, Option<Arc<LabelSet>>>);

impl Relabels {
    /// A process's labels changed.
    pub fn note(&mut self, from: Arc<LabelSet>, to: Option<Arc<LabelSet>>) {
        if self.0.len() >= MAX_RELABELS {
            self.0.clear();
        }
        // What was renamed to the old labels is renamed on.
        for old in self.0.values_mut().filter(|old| old.as_ref() == Some(&from)) {
            old.clone_from(&to);
        }
        self.0.insert(from, to);
    }

    /// What puts the labels of one window's rows right.
    pub fn apply(&self) -> Applying<'_> {
        Applying { relabels: self, rewritten: LabelRewrite::default() }
    }
}

/// The labels of one window's rows.
pub struct Applying<'a> {
    relabels: &'a Relabels,
    rewritten: LabelRewrite,
}

impl Applying<'_> {
    /// Puts the labels right; false when the row is not to be kept.
    pub fn keeps(&mut self, labels: &mut Arc<LabelSet>) -> bool {
        if self.relabels.0.is_empty() {
            return true;
        }
        let now = self.rewritten.of(labels, |labels| match self.relabels.0.get(&labels.without_thread()) {
            None => Some(labels.clone()),
            Some(to) => to.as_ref().map(|to| Arc::new(to.with_thread(labels.thread_part().into()))),
        });
        let keeps = now.is_some();
        if let Some(now) = now {
            *labels = now;
        }
        keeps
    }

    /// Puts the labels of a ledger right; what was used under old labels and under new ones is one line.
    pub fn ledger(&mut self, ledger: &mut Vec<LedgerRow>) {
        if self.relabels.0.is_empty() {
            return;
        }
        ledger.retain_mut(|line| self.keeps(&mut line.labels));
        *ledger = LedgerRow::merged(std::mem::take(ledger));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{LabelKey, LabelSetBuilder, LedgerSums, TimeRange, WallTime};

    fn labels(app: &str, task: &str) -> Arc<LabelSet> {
        Arc::new(LabelSetBuilder::new().set(LabelKey::App, app).set(LabelKey::Task, task).build())
    }

    #[test]
    fn a_threads_labels_stay_when_its_process_gets_others() {
        let mut relabels = Relabels::default();
        relabels.note(labels("unknown", ""), Some(labels("first", "")));
        relabels.note(labels("first", ""), Some(labels("second", "")));
        relabels.note(labels("unwanted", ""), None);
        let mut applying = relabels.apply();
        for (before, after) in [
            (labels("unknown", "7"), Some(labels("second", "7"))),
            (labels("first", ""), Some(labels("second", ""))),
            (labels("other", "7"), Some(labels("other", "7"))),
            (labels("unwanted", "7"), None),
        ] {
            let (mut one, mut again) = (before.clone(), before.clone());
            assert_eq!(applying.keeps(&mut one).then(|| one.clone()), after);
            assert_eq!(applying.keeps(&mut again), after.is_some());
            assert!(after.is_none() || Arc::ptr_eq(&one, &again), "rows are compared by address");
        }
        let (mut old, mut new) = (labels("unknown", "8"), labels("second", "8"));
        assert!(applying.keeps(&mut old) && applying.keeps(&mut new) && Arc::ptr_eq(&old, &new));
    }

    #[test]
    fn a_task_that_began_under_old_labels_has_one_line() {
        let line = |app: &str, task: &str, wall_ns: u64, begun: u64| LedgerRow {
            labels: labels(app, task),
            sums: LedgerSums { wall_ns, begun, ..LedgerSums::default() },
            seen: TimeRange { from: WallTime(10), until: WallTime(10 + wall_ns) },
        };
        let mut relabels = Relabels::default();
        relabels.note(labels("first", ""), Some(labels("second", "")));
        relabels.note(labels("unwanted", ""), None);
        let mut ledger = vec![
            line("first", "7", 0, 1),
            line("unwanted", "7", 5, 1),
            line("second", "7", 90, 0),
            line("first", "8", 3, 0),
        ];
        relabels.apply().ledger(&mut ledger);
        let told: Vec<_> =
            ledger.iter().map(|line| (&line.labels, line.sums.wall_ns, line.sums.begun, line.seen)).collect();
        let seen = |until| TimeRange { from: WallTime(10), until: WallTime(until) };
        let (seven, eight) = (labels("second", "7"), labels("second", "8"));
        assert_eq!(told, [(&seven, 90, 1, seen(100)), (&eight, 3, 0, seen(13))]);
    }
}
