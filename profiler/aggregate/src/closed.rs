//! Closed windows: what [`super::Windows`] gives out.
//!
//! Rows still name their stack by the caller's token; [`ClosedWindow::into_window`] puts the named
//! stacks in and makes the [`Window`] that the store keeps.

use emberscope_model::{
    FastMap, LabelSet, LedgerRow, LostCounts, Pause, ProcessRecord, Row, SampleKind, Stack, TimeRange, Window,
};
use std::sync::Arc;

/// One line of a closed window.
#[derive(Clone, Debug)]
pub struct CountedRow<S> {
    /// Whose samples these are.
    pub labels: Arc<LabelSet>,
    /// The stack, as the caller named it.
    pub stack: S,
    /// What the samples count.
    pub kind: SampleKind,
    /// How many samples.
    pub count: u64,
    /// Sum of their weights, in the unit of `kind`.
    pub weight: u64,
}

/// A closed window whose stacks are still tokens.
#[derive(Clone, Debug)]
pub struct ClosedWindow<S> {
    /// Inside one aligned slot; the whole slot unless `partial`.
    pub range: TimeRange,
    /// No two with the same labels, stack and kind.
    pub rows: Vec<CountedRow<S>>,
    /// No two with the same labels.
    pub ledger: Vec<LedgerRow>,
    /// Pauses of JVMs that began in the window, by their begin.
    pub pauses: Vec<Pause>,
    /// The window was cut short (start, stop, or a step of the clock).
    pub partial: bool,
}

impl<S> ClosedWindow<S> {
    /// Names the stacks. Different tokens may have the same name (two addresses of one function):
    /// their rows become one, found by pointer, so stacks and labels should be interned. `name` gives
    /// a row's stack, and may give the row other labels, now that its stack is known.
    pub fn into_window(
        self,
        processes: Vec<Arc<ProcessRecord>>,
        lost: LostCounts,
        mut name: impl FnMut(&mut CountedRow<S>) -> Arc<Stack>,
    ) -> Window {
        let mut rows: Vec<Row> = Vec::with_capacity(self.rows.len());
        let mut seen = FastMap::with_capacity_and_hasher(self.rows.len(), Default::default());
        for mut row in self.rows {
            let stack = name(&mut row);
            let CountedRow { labels, kind, count, weight, .. } = row;
            let at = *seen.entry((Arc::as_ptr(&labels), Arc::as_ptr(&stack), kind)).or_insert(rows.len());
            match rows.get_mut(at) {
                Some(row) => {
                    row.count += count;
                    row.weight = row.weight.saturating_add(weight);
                }
                None => rows.push(Row { labels, stack, kind, count, weight }),
            }
        }
        rows.shrink_to_fit();
        let (range, ledger, pauses, partial) = (self.range, self.ledger, self.pauses, self.partial);
        Window { range, rows, ledger, pauses, processes, lost, partial }
    }
}
