//! Answers from a set of windows. Nothing here holds a lock: the store hands over the windows that the
//! query touches, and they do not change.
//!
//! Limits: nodes of a tree, methods, label sets of totals, points of series ([`AnswerLimits`]); over them the
//! query is refused with what to do, never cut in silence.

use super::tree::TreeBuilder;
use crate::error::StoreError;
use crate::limits::{AnswerLimits, NO_VALUE};
use crate::methods::Methods;
use crate::pointer::{PairMap, PointerMap};
use crate::values::LabelledSeries;
use emberscope_model::{
    Answer, LabelKey, LabelSet, LabelTotal, LostCounts, MethodAnswer, NodeId, Quality, Query, Row,
    SampleKind, Selection, SeriesPoint, Stack, TimeRange, WallTime, Window,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Samples of one stack in one group.
struct Merged<'a> {
    stack: &'a Stack,
    count: u64,
    weight: u64,
}

/// One tree of all selected samples of the windows.
pub(super) fn merge(
    windows: &[Arc<Window>],
    query: &Query,
    range: TimeRange,
    limits: &AnswerLimits,
) -> Result<Answer, StoreError> {
    let mut tree = TreeBuilder::new(limits.nodes, query.detail);
    // The same labels and the same stack come again window after window, with the same addresses: so
    // first sum up by address, then walk each distinct stack once.
    let mut groups: PointerMap<Option<NodeId>> = PointerMap::default();
    let mut merged: PairMap<(u32, usize), Merged> = PairMap::default();
    let mut lost = LostCounts::default();
    for window in windows {
        lost.add(&window.lost);
        for row in window.rows.iter().filter(|row| query.kind.holds(row.kind)) {
            let address = Arc::as_ptr(&row.labels) as usize;
            let group = match groups.get(&address) {
                Some(group) => *group,
                None => {
                    let group = group_node(&mut tree, query, &row.labels)?;
                    groups.insert(address, group);
                    group
                }
            };
            let Some(group) = group else { continue };
            let sum = merged.entry((group, Arc::as_ptr(&row.stack) as usize)).or_insert_with(|| Merged {
                stack: &row.stack,
                count: 0,
                weight: 0,
            });
            sum.count = sum.count.saturating_add(row.count);
            sum.weight = sum.weight.saturating_add(row.weight);
        }
    }
    let mut quality = Quality { kind: query.kind, lost, ..Quality::default() };
    for (&(group, _), sum) in &merged {
        tree.add(group, &sum.stack.frames, sum.count, sum.weight)?;
        rate(&mut quality, sum.stack, sum.count);
    }
    Ok(Answer { tree: tree.finish().finish(), range, windows: windows.len(), quality })
}

/// The node under which samples with these labels go; None when they are not selected.
fn group_node(
    tree: &mut TreeBuilder<'_>,
    query: &Query,
    labels: &LabelSet,
) -> Result<Option<NodeId>, StoreError> {
    if !query.selection.matches(labels) {
        return Ok(None);
    }
    let mut node = 0;
    for key in &query.group {
        let value = Some(labels.get(*key)).filter(|v| !v.is_empty()).unwrap_or(NO_VALUE);
        node = tree.prefix(node, format!("{key}={value}"))?;
    }
    Ok(Some(node))
}

/// What the answer to the query rests on, without its tree: each distinct stack is looked at once.
pub(super) fn quality(windows: &[Arc<Window>], query: &Query) -> Quality {
    let mut quality = Quality { kind: query.kind, ..Quality::default() };
    let mut selected: PointerMap<bool> = PointerMap::default();
    let mut stacks: PointerMap<(&Stack, u64)> = PointerMap::default();
    for window in windows {
        quality.lost.add(&window.lost);
        for row in selected_rows(window, query.kind) {
            let address = Arc::as_ptr(&row.labels) as usize;
            if *selected.entry(address).or_insert_with(|| query.selection.matches(&row.labels)) {
                let sum = stacks.entry(Arc::as_ptr(&row.stack) as usize).or_insert((&row.stack, 0));
                sum.1 = sum.1.saturating_add(row.count);
            }
        }
    }
    for (stack, count) in stacks.into_values() {
        rate(&mut quality, stack, count);
    }
    quality
}

/// The methods of all selected samples of the windows.
pub(super) fn methods(
    windows: &[Arc<Window>],
    query: &Query,
    range: TimeRange,
    limits: &AnswerLimits,
) -> Result<MethodAnswer, StoreError> {
    let mut methods = Methods::new(query.detail, limits.nodes);
    let mut selected: PointerMap<bool> = PointerMap::default();
    let mut quality = Quality::default();
    for window in windows {
        quality.lost.add(&window.lost);
        for row in selected_rows(window, query.kind) {
            let address = Arc::as_ptr(&row.labels) as usize;
            if *selected.entry(address).or_insert_with(|| query.selection.matches(&row.labels)) {
                let places = row.stack.frames.iter().rev().map(|frame| methods.place(frame));
                let places: Vec<u32> = places.collect::<Result<_, _>>()?;
                methods.add(places.into_iter(), row.count, row.weight);
                rate(&mut quality, &row.stack, row.count);
            }
        }
    }
    Ok(MethodAnswer { methods: methods.finish(), range, windows: windows.len(), quality })
}

/// Counts samples of a stack.
pub(super) fn rate(quality: &mut Quality, stack: &Stack, count: u64) {
    quality.samples += count;
    if stack.truncated() {
        quality.truncated += count;
    }
    *quality.ends.entry(stack.end.slug()).or_default() += count;
    quality.frames += count * stack.frames.len() as u64;
    if stack.frames.iter().any(|frame| frame.approximate) {
        quality.approximate += count;
    }
    for reason in stack.frames.iter().filter_map(|frame| frame.unknown) {
        quality.unnamed_frames += count;
        *quality.unnamed.entry(reason.slug()).or_default() += count;
    }
}

/// Sums by label set, in the order of the sets.
pub(super) fn totals(
    windows: &[Arc<Window>],
    query: &Query,
    limits: &AnswerLimits,
) -> Result<Vec<LabelTotal>, StoreError> {
    let mut known: PointerMap<Option<usize>> = PointerMap::default();
    let mut places: BTreeMap<&Arc<LabelSet>, usize> = BTreeMap::new();
    let mut totals: Vec<LabelTotal> = Vec::new();
    for window in windows {
        for row in selected_rows(window, query.kind) {
            let place = *known.entry(Arc::as_ptr(&row.labels) as usize).or_insert_with(|| {
                // Equal sets at two addresses are one.
                let selected = query.selection.matches(&row.labels);
                selected.then(|| *places.entry(&row.labels).or_insert(totals.len()))
            });
            let Some(place) = place else { continue };
            if place == totals.len() {
                if totals.len() >= limits.label_sets {
                    return Err(StoreError::TooLarge { what: "label sets", limit: limits.label_sets });
                }
                let labels = row.labels.clone();
                totals.push(LabelTotal { labels, count: 0, weight: 0, seen: window.range });
            }
            if let Some(total) = totals.get_mut(place) {
                total.count = total.count.saturating_add(row.count);
                total.weight = total.weight.saturating_add(row.weight);
                total.seen.cover(&window.range);
            }
        }
    }
    totals.sort_by(|a, b| a.labels.cmp(&b.labels));
    Ok(totals)
}

/// Sums by step and labels. A window counts in the step in which it begins; a step in which any window
/// begins has a point in every series, zero where that series has no sample, and a step without a
/// window has none: the difference between idle and not running.
pub(super) fn series(
    windows: &[Arc<Window>],
    query: &Query,
    step: Duration,
    by: &[LabelKey],
    limits: &AnswerLimits,
) -> Result<Vec<LabelledSeries>, StoreError> {
    type Points = BTreeMap<WallTime, (u64, u64)>;
    let steps: Points = windows.iter().map(|w| (w.range.from.floor(step), (0, 0))).collect();
    let mut places: BTreeMap<Vec<Arc<str>>, usize> = BTreeMap::new();
    let mut sums: Vec<Points> = Vec::new();
    let mut known: PointerMap<Option<usize>> = PointerMap::default();
    for window in windows {
        let time = window.range.from.floor(step);
        for row in selected_rows(window, query.kind) {
            let address = Arc::as_ptr(&row.labels) as usize;
            let place = *known.entry(address).or_insert_with(|| {
                let selected = query.selection.matches(&row.labels);
                selected.then(|| *places.entry(values(&row.labels, by)).or_insert(sums.len()))
            });
            let Some(place) = place else { continue };
            if place == sums.len() {
                if (sums.len() + 1).saturating_mul(steps.len()) > limits.points {
                    let what = "points in its time series";
                    return Err(StoreError::TooLarge { what, limit: limits.points });
                }
                sums.push(steps.clone());
            }
            if let Some(sum) = sums.get_mut(place).and_then(|points| points.get_mut(&time)) {
                sum.0 = sum.0.saturating_add(row.count);
                sum.1 = sum.1.saturating_add(row.weight);
            }
        }
    }
    let point = |(time, (count, weight)): (&WallTime, &(u64, u64))| SeriesPoint {
        time_ms: time.as_millis(),
        count: *count,
        weight: *weight,
    };
    let labelled = places.into_iter().filter_map(|(values, place)| {
        let points = sums.get(place)?.iter().map(point).collect();
        Some((by.iter().copied().zip(values).collect(), points))
    });
    Ok(labelled.collect())
}

pub(super) fn values(labels: &LabelSet, by: &[LabelKey]) -> Vec<Arc<str>> {
    let value = |key: &LabelKey| labels.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
    by.iter().map(|key| value(key).unwrap_or_else(|| Arc::from(""))).collect()
}

pub(super) fn selected_rows(window: &Window, kind: SampleKind) -> impl Iterator<Item = &Row> {
    window.rows.iter().filter(move |row| kind.holds(row.kind))
}

/// Processes of the windows whose last known labels are selected, by pid and start time.
pub(super) fn processes(
    windows: &[Arc<Window>],
    selection: &Selection,
) -> Vec<Arc<emberscope_model::ProcessRecord>> {
    let mut last = BTreeMap::new();
    for process in windows.iter().flat_map(|window| &window.processes) {
        last.insert(process.key, process.clone());
    }
    last.into_values().filter(|process| selection.matches(&process.labels)).collect()
}

/// From the first to the last of the windows; where there is none, the asked range in whole windows.
pub(super) fn covered(windows: &[Arc<Window>], asked: TimeRange, length: Duration) -> TimeRange {
    let from = windows.iter().map(|w| w.range.from).min();
    let until = windows.iter().map(|w| w.range.until).max();
    TimeRange {
        from: from.unwrap_or_else(|| asked.from.floor(length)),
        until: until.unwrap_or_else(|| asked.until.ceil(length)),
    }
}
