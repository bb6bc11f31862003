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
    /// What they come to in the kind that is made of samples of this one; 0: no row is made of them.
    pub derived: u64,
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
    /// a row's stack, and may give the row other labels, now that its stack is known, and take what is derived of it. What is
    /// left of that becomes a row of the derived kind beside it.
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
            let CountedRow { labels, kind, count, weight, derived, .. } = row;
            let own = Row { labels, stack, kind, count, weight };
            let derived = kind.derived().filter(|_| derived > 0).map(|kind| (kind, derived));
            let derived = derived.map(|(kind, weight)| Row { kind, weight, ..own.clone() });
            for row in [Some(own), derived].into_iter().flatten() {
                let key = (Arc::as_ptr(&row.labels), Arc::as_ptr(&row.stack), row.kind);
                let at = *seen.entry(key).or_insert(rows.len());
                match rows.get_mut(at) {
                    Some(known) => {
                        known.count += row.count;
                        known.weight = known.weight.saturating_add(row.weight);
                    }
                    None => rows.push(row),
                }
            }
        }
        rows.shrink_to_fit();
        let (range, ledger, pauses, partial) = (self.range, self.ledger, self.pauses, self.partial);
        Window { range, rows, ledger, pauses, processes, lost, partial }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{StackEnd, WallTime};

    #[test]
    fn what_is_derived_has_rows_of_its_own() {
        let labels = Arc::new(LabelSet::default());
        let row = |stack: u32, kind, weight, derived| CountedRow {
            labels: labels.clone(),
            stack,
            kind,
            count: 2,
            weight,
            derived,
        };
        let rows = vec![
            row(1, SampleKind::Alloc, 1_000, 20),
            row(2, SampleKind::Alloc, 500, 5),
            row(3, SampleKind::OffCpu, 70, 4),
            row(4, SampleKind::OffCpu, 60, 7),
            row(5, SampleKind::Cpu, 9, 1),
        ];
        let range = TimeRange { from: WallTime(0), until: WallTime(1) };
        let window = ClosedWindow { range, rows, ledger: Vec::new(), pauses: Vec::new(), partial: false };
        let stack = Arc::new(Stack { frames: [].into(), end: StackEnd::Root });
        let window = window.into_window(Vec::new(), LostCounts::default(), |row| {
            // A wait for something else than a lock.
            row.derived = if row.stack == 4 { 0 } else { row.derived };
            stack.clone()
        });
        let of = |kind| {
            let rows = window.rows.iter().filter(|row| row.kind == kind);
            rows.map(|row| (row.count, row.weight)).collect::<Vec<_>>()
        };
        assert_eq!((of(SampleKind::Alloc), of(SampleKind::AllocObjects)), (vec![(4, 1_500)], vec![(4, 25)]));
        assert_eq!((of(SampleKind::OffCpu), of(SampleKind::Contentions)), (vec![(4, 130)], vec![(2, 4)]));
        assert_eq!((of(SampleKind::Cpu), window.rows.len()), (vec![(2, 9)], 5));
    }
}
