//! Exact sums of the ledger over a set of windows.
//!
//! In: windows, a selection, the labels to sum by. Out: a line for each combination of their values,
//! sorted. Limit: [`AnswerLimits::label_sets`] lines, over which the query is refused.

use super::answer::values;
use crate::error::StoreError;
use crate::limits::AnswerLimits;
use crate::pointer::PointerMap;
use emberscope_model::{LabelKey, LedgerSums, LedgerTotal, Selection, TimeRange, Window};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) fn ledger(
    windows: &[Arc<Window>],
    selection: &Selection,
    by: &[LabelKey],
    limits: &AnswerLimits,
) -> Result<Vec<LedgerTotal>, StoreError> {
    let mut places: BTreeMap<Vec<Arc<str>>, usize> = BTreeMap::new();
    let mut sums: Vec<(LedgerSums, TimeRange)> = Vec::new();
    // The same labels come again window after window, with the same address.
    let mut known: PointerMap<Option<usize>> = PointerMap::default();
    for line in windows.iter().flat_map(|window| &window.ledger) {
        let place = *known.entry(Arc::as_ptr(&line.labels) as usize).or_insert_with(|| {
            let selected = selection.matches(&line.labels);
            selected.then(|| *places.entry(values(&line.labels, by)).or_insert(sums.len()))
        });
        let Some(place) = place else { continue };
        if place == sums.len() {
            if sums.len() >= limits.label_sets {
                return Err(StoreError::TooLarge { what: "label sets", limit: limits.label_sets });
            }
            sums.push((LedgerSums::default(), line.seen));
        }
        if let Some((sum, seen)) = sums.get_mut(place) {
            sum.add(&line.sums);
            seen.cover(&line.seen);
        }
    }
    let total = |(values, place): (Vec<Arc<str>>, usize)| {
        let (sums, seen) = *sums.get(place)?;
        Some(LedgerTotal { labels: by.iter().copied().zip(values).collect(), sums, seen })
    };
    Ok(places.into_iter().filter_map(total).collect())
}
