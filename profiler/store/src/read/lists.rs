//! Answers without a call tree: sums by label set, over time, of the ledger; processes.
//!
//! Limits: [`AnswerLimits`]; over them the query is refused.

use super::super::facts::Facts;
use super::super::pointer::PairMap;
use super::Covered;
use super::steps::{Steps, too_long};
use crate::error::StoreError;
use crate::limits::AnswerLimits;
use crate::values::LabelledSeries;
use crate::view::View;
use emberscope_model::{
    LabelKey, LabelSet, LabelTotal, LedgerSums, LedgerTotal, ProcessKey, ProcessRecord, Query, Selection,
    TimeRange,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Not looked up yet, or not selected.
const NO_PLACE: usize = usize::MAX;

pub(super) fn is(list: &[bool], place: u32) -> bool {
    list.get(place as usize).copied().unwrap_or(false)
}

/// [`crate::Store::totals`] in the making.
pub(crate) struct Totals<'q> {
    query: &'q Query,
    limit: usize,
    places: HashMap<Arc<LabelSet>, usize>,
    totals: Vec<LabelTotal>,
}

impl<'q> Totals<'q> {
    /// No totals yet.
    pub fn new(query: &'q Query, limits: &AnswerLimits) -> Self {
        Self { query, limit: limits.label_sets, places: HashMap::new(), totals: Vec::new() }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are more label sets than may be.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        let processes = facts.labels.all_processes();
        let mut known = vec![NO_PLACE; facts.labels.sets.len()];
        for group in facts.groups.iter().filter(|group| self.query.kind.holds(group.kind)) {
            let Some(window) = facts.windows.get(group.window as usize) else { continue };
            if !is(&touched, group.window) || !is(&selected, group.set) {
                continue;
            }
            let Some(place) = known.get_mut(group.set as usize) else { continue };
            if *place == NO_PLACE {
                // Equal sets in two views, or after a process was moved, are one.
                let labels = Arc::new(facts.labels.set(group.set, &processes));
                *place = *self.places.entry(labels.clone()).or_insert(self.totals.len());
                if *place == self.totals.len() {
                    if *place >= self.limit {
                        return Err(StoreError::TooLarge { what: "label sets", limit: self.limit });
                    }
                    self.totals.push(LabelTotal { labels, count: 0, weight: 0, seen: window.range });
                }
            }
            if let Some(total) = self.totals.get_mut(*place) {
                total.count = total.count.saturating_add(group.count);
                total.weight = total.weight.saturating_add(group.weight);
                total.seen.cover(&window.range);
            }
        }
        Ok(())
    }

    /// The sums, in the order of the sets.
    pub fn finish(mut self) -> Vec<LabelTotal> {
        self.totals.sort_by(|a, b| a.labels.cmp(&b.labels));
        self.totals
    }
}

/// Which sets have equal values of some labels, over all views.
#[derive(Default)]
struct Places {
    by_values: BTreeMap<Vec<Arc<str>>, usize>,
}

impl Places {
    /// A place for each set of a view that is asked for.
    fn of<'a>(&'a mut self, facts: &'a Facts, by: &'a [LabelKey]) -> impl FnMut(u32) -> usize + 'a {
        let mut of_ids: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut of_set = vec![NO_PLACE; facts.labels.sets.len()];
        move |set| {
            let Some(place) = of_set.get_mut(set as usize) else { return NO_PLACE };
            if *place == NO_PLACE {
                let ids: Vec<u32> = by.iter().map(|key| facts.labels.value(set, *key)).collect();
                *place = *of_ids.entry(ids).or_insert_with(|| {
                    let next = self.by_values.len();
                    *self.by_values.entry(facts.labels.values(set, by)).or_insert(next)
                });
            }
            *place
        }
    }
}

/// [`crate::Store::series`] in the making.
pub(crate) struct Series<'q> {
    query: &'q Query,
    by: &'q [LabelKey],
    limit: usize,
    steps: Steps,
    places: Places,
    /// Count and weight, by place and step (its start).
    sums: PairMap<(usize, u64), (u64, u64)>,
}

impl<'q> Series<'q> {
    /// No points yet.
    pub fn new(query: &'q Query, step: Duration, by: &'q [LabelKey], limits: &AnswerLimits) -> Self {
        let (steps, places, sums) = (Steps::new(step), Places::default(), PairMap::default());
        Self { query, by, limit: limits.points, steps, places, sums }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are more points than may be.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.query.range);
        let selected = facts.labels.selected(&self.query.selection);
        let steps = self.steps.of(facts, &touched);
        let mut place_of = self.places.of(facts, self.by);
        for group in facts.groups.iter().filter(|group| self.query.kind.holds(group.kind)) {
            let Some(step) = steps.get(group.window as usize) else { continue };
            if !is(&touched, group.window) || !is(&selected, group.set) {
                continue;
            }
            let sum = self.sums.entry((place_of(group.set), step.0)).or_default();
            sum.0 = sum.0.saturating_add(group.count);
            sum.1 = sum.1.saturating_add(group.weight);
            // Every point here is one of the answer's.
            if self.sums.len() > self.limit {
                return Err(too_long(self.limit));
            }
        }
        Ok(())
    }

    /// The series, sorted by their labels; a zero in each step that another has.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: with the zeros there are more points than may be.
    pub fn finish(self) -> Result<Vec<LabelledSeries>, StoreError> {
        let Self { by, limit, steps, places, sums, .. } = self;
        steps.fit(places.by_values.len(), limit)?;
        let series = |(values, place): (Vec<Arc<str>>, usize)| {
            let points = steps.points(|step| sums.get(&(place, step)).copied());
            (by.iter().copied().zip(values).collect(), points)
        };
        Ok(places.by_values.into_iter().map(series).collect())
    }
}

/// [`crate::Store::ledger`] in the making.
pub(crate) struct LedgerLines<'q> {
    range: TimeRange,
    selection: &'q Selection,
    by: &'q [LabelKey],
    limit: usize,
    places: Places,
    sums: Vec<(LedgerSums, TimeRange)>,
}

impl<'q> LedgerLines<'q> {
    /// No lines yet.
    pub fn new(
        range: TimeRange,
        selection: &'q Selection,
        by: &'q [LabelKey],
        limits: &AnswerLimits,
    ) -> Self {
        let limit = limits.label_sets;
        Self { range, selection, by, limit, places: Places::default(), sums: Vec::new() }
    }

    /// Adds a view.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there are more label sets than may be. [`StoreError::Unreadable`]: the view's ledger
    /// cannot be read.
    pub fn add(&mut self, view: &dyn View) -> Result<(), StoreError> {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, &self.range);
        if !touched.contains(&true) {
            return Ok(());
        }
        let selected = facts.labels.selected(self.selection);
        let lines = view.ledger()?;
        let mut place_of = self.places.of(facts, self.by);
        for line in lines.iter().filter(|line| is(&touched, line.window) && is(&selected, line.set)) {
            let place = place_of(line.set);
            if place == self.sums.len() {
                if place >= self.limit {
                    return Err(StoreError::TooLarge { what: "label sets", limit: self.limit });
                }
                self.sums.push((LedgerSums::default(), line.seen));
            }
            if let Some((sums, seen)) = self.sums.get_mut(place) {
                sums.add(&line.sums);
                seen.cover(&line.seen);
            }
        }
        Ok(())
    }

    /// The sums, sorted by their labels.
    pub fn finish(self) -> Vec<LedgerTotal> {
        let total = |(values, place): (Vec<Arc<str>>, usize)| {
            let (sums, seen) = *self.sums.get(place)?;
            Some(LedgerTotal { labels: self.by.iter().copied().zip(values).collect(), sums, seen })
        };
        self.places.by_values.into_iter().filter_map(total).collect()
    }
}

/// [`crate::Store::processes`] in the making.
#[derive(Default)]
pub(crate) struct Processes(BTreeMap<(ProcessKey, Arc<str>), Arc<ProcessRecord>>);

impl Processes {
    /// Adds a view that is older than those before.
    pub fn add(&mut self, view: &dyn View, range: &TimeRange) {
        let facts = view.facts();
        let touched = Covered::default().touch(facts, range);
        let mut last = BTreeMap::new();
        for (window, _) in facts.windows.iter().zip(touched).filter(|(_, touched)| *touched) {
            for record in &window.records {
                let known = facts.records.get(*record as usize);
                if let Some(known) = known.filter(|known| !is(&facts.labels.forgotten, known.set)) {
                    // Blocks of an archive are of many nodes, where one pid is many processes.
                    let node = facts.labels.shared(facts.labels.value(known.set, LabelKey::Node));
                    last.insert((known.process.key, node.cloned().unwrap_or_default()), known);
                }
            }
        }
        let processes = facts.labels.all_processes();
        for (key, record) in last {
            self.0.entry(key).or_insert_with(|| {
                let labels = Arc::new(facts.labels.set(record.set, &processes));
                Arc::new(ProcessRecord { labels, ..record.process.clone() })
            });
        }
    }

    /// The processes that are selected, by pid and start time.
    pub fn finish(self, selection: &Selection) -> Vec<Arc<ProcessRecord>> {
        self.0.into_values().filter(|process| selection.matches(&process.labels)).collect()
    }
}
