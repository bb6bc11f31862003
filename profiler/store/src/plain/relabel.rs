//! Windows whose processes became known late, or are not to be kept after all.
//!
//! In: a window and a process's labels. Out: the window with other labels (rows, ledger lines and
//! processes that become equal become one, and equal label sets one allocation), or without the process.
//! Threads' labels stay as they are. No limits of its own: a window is never larger than before.

use emberscope_model::{LabelRewrite, LabelSet, LedgerRow, Pause, ProcessRecord, Row, Window};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a window has anything of this process.
pub(super) fn concerns(window: &Window, process: &LabelSet) -> bool {
    window.rows.iter().any(|row| row.labels.is_of_process(process))
        || window.ledger.iter().any(|line| line.labels.is_of_process(process))
        || window.processes.iter().any(|record| record.labels.is_of_process(process))
}

/// The window without this process.
pub(super) fn without(window: &Window, process: &LabelSet) -> Window {
    let other = |labels: &LabelSet| !labels.is_of_process(process);
    Window {
        rows: window.rows.iter().filter(|row| other(&row.labels)).cloned().collect(),
        ledger: window.ledger.iter().filter(|line| other(&line.labels)).cloned().collect(),
        pauses: window.pauses.iter().filter(|pause| other(&pause.labels)).cloned().collect(),
        processes: window.processes.iter().filter(|record| other(&record.labels)).cloned().collect(),
        range: window.range,
        lost: window.lost,
        partial: window.partial,
    }
}

/// One process's way from one set of labels to another, through all windows.
pub(super) struct Moves<'a> {
    from: &'a LabelSet,
    to: &'a Arc<LabelSet>,
    /// Sets of the process under its new labels: equal ones are one, whichever window they are in.
    moved: LabelRewrite,
}

impl<'a> Moves<'a> {
    pub(super) fn new(from: &'a LabelSet, to: &'a Arc<LabelSet>) -> Self {
        Self { from, to, moved: LabelRewrite::default() }
    }

    fn labels(&mut self, labels: &Arc<LabelSet>) -> Arc<LabelSet> {
        let is_from = labels.is_of_process(self.from);
        if !is_from && !labels.is_of_process(self.to) {
            return labels.clone();
        }
        let to = self.to;
        let moved = |labels: &Arc<LabelSet>| {
            Some(if is_from { Arc::new(to.with_thread(labels.thread_part().into())) } else { labels.clone() })
        };
        self.moved.of(labels, moved).unwrap_or_else(|| labels.clone())
    }

    /// The window under the new labels.
    pub(super) fn window(&mut self, window: &Window) -> Window {
        let mut rows: Vec<Row> = Vec::with_capacity(window.rows.len());
        let mut seen = HashMap::with_capacity(window.rows.len());
        for row in &window.rows {
            let labels = self.labels(&row.labels);
            let key = (Arc::as_ptr(&labels), Arc::as_ptr(&row.stack), row.kind);
            let place = *seen.entry(key).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(known) => {
                    known.count = known.count.saturating_add(row.count);
                    known.weight = known.weight.saturating_add(row.weight);
                }
                None => rows.push(Row { labels, ..row.clone() }),
            }
        }
        rows.shrink_to_fit();
        Window {
            range: window.range,
            rows,
            ledger: self.ledger(&window.ledger),
            pauses: window
                .pauses
                .iter()
                .map(|pause| Pause { labels: self.labels(&pause.labels), ..pause.clone() })
                .collect(),
            processes: window.processes.iter().map(|record| self.process(record)).collect(),
            lost: window.lost,
            partial: window.partial,
        }
    }

    fn ledger(&mut self, lines: &[LedgerRow]) -> Vec<LedgerRow> {
        LedgerRow::merged(
            lines.iter().map(|line| LedgerRow { labels: self.labels(&line.labels), ..line.clone() }),
        )
    }

    fn process(&mut self, record: &Arc<ProcessRecord>) -> Arc<ProcessRecord> {
        if !record.labels.is_of_process(self.from) {
            return record.clone();
        }
        let labels = self.labels(&record.labels);
        Arc::new(ProcessRecord { labels, ..ProcessRecord::clone(record) })
    }
}
