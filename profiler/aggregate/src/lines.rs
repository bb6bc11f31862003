//! The ledger of one open window: labels -> what their threads used, exactly; bounded.
//!
//! Over the limit the labels become the overflow labels, so that a table holds at most one line more and
//! nothing booked is lost.

use super::rows::Overflow;
use emberscope_model::{FastMap, LabelSet, LedgerRow, LedgerSums, TimeRange};
use std::sync::Arc;

/// The lines of a window's ledger, by labels.
#[derive(Debug, Default)]
pub(super) struct Lines(FastMap<Arc<LabelSet>, (LedgerSums, TimeRange)>);

impl Lines {
    /// Adds to the line of these labels; false when it had to be the overflow's.
    pub(super) fn add<S>(
        &mut self,
        labels: &Arc<LabelSet>,
        sums: &LedgerSums,
        seen: TimeRange,
        overflow: &Overflow<S>,
    ) -> bool {
        let whole = self.0.len() < overflow.max_rows || self.0.contains_key(labels);
        let labels = if whole { labels } else { &overflow.labels };
        let line = self.0.entry(labels.clone()).or_insert((LedgerSums::default(), seen));
        line.0.add(sums);
        line.1.cover(&seen);
        whole
    }

    pub(super) fn into_rows(self) -> Vec<LedgerRow> {
        self.0.into_iter().map(|(labels, (sums, seen))| LedgerRow { labels, sums, seen }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{Accounts, LabelKey, LabelSetBuilder, Tenant, WallTime};

    #[test]
    fn labels_fold_and_nothing_booked_is_lost() {
        let labels =
            |task: u64| Arc::new(LabelSetBuilder::new().set(LabelKey::Task, task.to_string()).build());
        let tenant = |_: &()| Tenant::default();
        let overflow = Overflow { max_rows: 8, stack: (), labels: labels(0), tenant, cost: |()| 1 };
        let mut lines = Lines::default();
        let sums =
            LedgerSums { accounts: Accounts { cpu_ns: 7, ..Accounts::default() }, wall_ns: 9, begun: 1 };
        let mut whole = 0;
        for i in 0..100u64 {
            let seen = TimeRange { from: WallTime(i), until: WallTime(i + 1) };
            whole += u64::from(lines.add(&labels(1 + i % 20), &sums, seen, &overflow));
        }
        let rows = lines.into_rows();
        assert_eq!(rows.len(), 9);
        assert_eq!(rows.iter().map(|r| r.sums.accounts.cpu_ns).sum::<u64>(), 700);
        assert_eq!(rows.iter().map(|r| r.sums.begun).sum::<u64>(), 100);
        let folded: u64 = rows.iter().filter(|r| r.labels == overflow.labels).map(|r| r.sums.begun).sum();
        assert_eq!((whole, folded), (40, 60));
        let first = rows.iter().find(|r| r.labels == labels(1)).map(|r| r.seen);
        assert_eq!(first, Some(TimeRange { from: WallTime(0), until: WallTime(81) }));
    }
}
