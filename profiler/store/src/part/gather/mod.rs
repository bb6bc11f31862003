//! Adds what a view of another part or block has: as it is, or by longer windows and without its tasks.
//!
//! In: a view, which label sets of it, what stays apart. Out: this part with the view's windows, or one for each of
//! those that begin in one grain. Counts, weights, what was lost, the ledger and the processes are the view's.

mod names;

use super::super::error::StoreError;
use super::super::facts::{LedgerLine, PauseLine, Record, WindowFacts};
use super::super::spark::Room;
use super::super::view::{UNSELECTED, View};
use super::codec::put;
use super::{GroupHead, Part, PartRow, Taken, put_row};
use emberscope_model::{LabelKey, SampleKind, Selection, WallTime};
use names::Places;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// What stays apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Windows that begin in one stretch of this length become one; None: each stays as it is.
    pub grain: Option<Duration>,
    /// Tasks: else they are summed up to their stage.
    pub tasks: bool,
    /// Rows that are summed up at once, about: each takes some 70 bytes meanwhile.
    pub rows_at_once: u64,
}

/// A window in the making.
#[derive(Default)]
struct Gathering {
    window: Option<WindowFacts>,
    heads: Vec<GroupHead>,
    rows: Vec<u8>,
    ledger: Vec<LedgerLine>,
    pauses: Vec<PauseLine>,
}

/// What is taken of a view, and where to.
struct Source<'a> {
    view: &'a dyn View,
    selected: Vec<bool>,
    /// The new window of each of the view's windows.
    of_window: Vec<u32>,
    keep: Keep,
}

impl<'a> Source<'a> {
    fn new(view: &'a dyn View, selection: &Selection, keep: Keep) -> Self {
        let facts = view.facts();
        let all = 0..facts.windows.len() as u32;
        let of_window = match keep.grain {
            None => all.collect(),
            Some(grain) => {
                let begin = |window: &WindowFacts| window.range.from.floor(grain);
                let begins: BTreeSet<WallTime> = facts.windows.iter().map(begin).collect();
                let places: BTreeMap<WallTime, u32> = begins.into_iter().zip(all).collect();
                let place = |window| places.get(&begin(window)).copied().unwrap_or_default();
                facts.windows.iter().map(place).collect()
            }
        };
        Self { view, selected: facts.labels.selected(selection), of_window, keep }
    }

    fn is(&self, set: u32) -> bool {
        self.selected.get(set as usize).copied().unwrap_or(false)
    }

    fn window(&self, window: u32) -> Option<u32> {
        self.of_window.get(window as usize).copied()
    }

    /// New windows in stretches of some rows: a block tells how many it has in all, and samples tell where they are.
    fn stretches(&self) -> Vec<Range<u32>> {
        let facts = self.view.facts();
        let windows = self.of_window.iter().max().map_or(0, |last| last + 1);
        let mut samples = vec![0_u64; windows as usize];
        for group in &facts.groups {
            let place = self.window(group.window).unwrap_or_default();
            if let Some(sum) = samples.get_mut(place as usize) {
                *sum = sum.saturating_add(group.count);
            }
        }
        let all = samples.iter().fold(0_u64, |all, own| all.saturating_add(*own)).max(1);
        let most = u128::from(all) * u128::from(self.keep.rows_at_once) / u128::from(self.view.rows().max(1));
        let (mut out, mut first, mut sum) = (Vec::new(), 0, 0_u128);
        for (window, own) in (0..).zip(samples) {
            if window > first && sum + u128::from(own) > most {
                out.push(first..window);
                (first, sum) = (window, 0);
            }
            sum += u128::from(own);
        }
        out.push(first..windows);
        out
    }
}

impl Part {
    /// Adds what a view has of a selection.
    ///
    /// # Errors
    /// The view's stacks, sums or ledger cannot be read ([`StoreError::Unreadable`]), or its sums are too many
    /// ([`StoreError::TooLarge`]). No window is added then; names may be.
    pub fn gather(&mut self, view: &dyn View, selection: &Selection, keep: Keep) -> Result<(), StoreError> {
        let from = Source::new(view, selection, keep);
        let mut places = Places::of(view, keep.tasks);
        let mut windows = self.gather_windows(&from, &mut places);
        for stretch in from.stretches() {
            self.gather_rows(&from, &stretch, &mut places, &mut windows)?;
        }
        self.gather_ledger(&from, &mut places, &mut windows)?;
        self.gather_pauses(&from, &mut places, &mut windows)?;
        let words = view.spark()?;
        for gathering in windows {
            let Gathering { window: Some(window), heads, rows, mut ledger, mut pauses } = gathering else {
                continue;
            };
            let number = self.facts.windows.len() as u32;
            ledger.iter_mut().for_each(|line| line.window = number);
            pauses.iter_mut().for_each(|pause| pause.window = number);
            // What was written just now can be read.
            let pushed = self.push(Taken { window, heads, rows, ledger, pauses });
            debug_assert!(pushed.is_ok());
        }
        let of_apps = selection.matchers.iter().filter(|matcher| matcher.key == LabelKey::App);
        let facts = words.iter().filter(|fact| of_apps.clone().all(|matcher| matcher.accepts(&fact.app)));
        facts.for_each(|fact| {
            self.spark.take(fact, Room::BLOCK);
        });
        Ok(())
    }

    /// The windows, what was lost in them and who was seen.
    fn gather_windows(&mut self, from: &Source<'_>, places: &mut Places) -> Vec<Gathering> {
        let facts = from.view.facts();
        let mut windows: Vec<Gathering> = Vec::new();
        windows.resize_with(facts.windows.len(), Gathering::default);
        let mut records: BTreeMap<u32, u32> = BTreeMap::new();
        for (window, place) in facts.windows.iter().zip(&from.of_window) {
            let mut seen = BTreeSet::new();
            for place in &window.records {
                let record = facts.records.get(*place as usize).filter(|record| from.is(record.set));
                let Some(record) = record else { continue };
                let known = records.get(place).copied();
                let known = known.unwrap_or_else(|| {
                    let set = self.gather_set(from.view, record.set, places);
                    self.place_of(Record { set, process: record.process.clone() })
                });
                records.insert(*place, known);
                seen.insert(known);
            }
            let Some(into) = windows.get_mut(*place as usize) else { continue };
            match &mut into.window {
                Some(whole) => {
                    whole.range.cover(&window.range);
                    whole.partial |= window.partial;
                    whole.lost.add(&window.lost);
                    seen.extend(whole.records.iter().copied());
                    whole.records = seen.into_iter().collect();
                }
                None => {
                    let records = seen.into_iter().collect();
                    into.window = Some(WindowFacts { records, ..window.clone() });
                }
            }
        }
        windows
    }

    /// The rows of some of the new windows.
    fn gather_rows(
        &mut self,
        from: &Source<'_>,
        stretch: &Range<u32>,
        places: &mut Places,
        windows: &mut [Gathering],
    ) -> Result<(), StoreError> {
        let facts = from.view.facts();
        // Slots in the order in which windows and groups are written.
        let mut slots: BTreeMap<(u32, u32, SampleKind), (u32, u64)> = BTreeMap::new();
        let mut keys = Vec::with_capacity(facts.groups.len());
        for group in facts.groups.iter() {
            let window = from.window(group.window).filter(|window| stretch.contains(window));
            let key = window.filter(|_| from.is(group.set)).map(|window| {
                let set = self.gather_set(from.view, group.set, places);
                (window, set, group.kind)
            });
            if let Some(key) = key {
                slots.entry(key).or_insert((0, group.period));
            }
            keys.push(key);
        }
        for (number, (slot, _)) in slots.values_mut().enumerate() {
            *slot = number as u32;
        }
        if slots.is_empty() {
            return Ok(());
        }
        let slot = |key: Option<(u32, u32, SampleKind)>| {
            key.and_then(|key| slots.get(&key)).map_or(UNSELECTED, |(slot, _)| *slot)
        };
        let of_group: Vec<u32> = keys.into_iter().map(slot).collect();
        let sums = from.view.sums(&of_group, slots.len())?.into_sorted();
        let stacks = self.gather_stacks(from.view, &sums, places)?;
        let mut sums = sums.as_slice();
        for ((window, set, kind), (slot, period)) in slots {
            let own = sums.partition_point(|(of, ..)| *of == slot);
            let (rows, rest) = sums.split_at_checked(own).unwrap_or_default();
            sums = rest;
            let mut rows: Vec<PartRow> = (rows.iter())
                .filter_map(|(_, stack, count, weight)| {
                    let stack = stacks.get(stack).copied()?;
                    Some(PartRow { stack, count: *count, weight: *weight })
                })
                .collect();
            rows.sort_unstable_by_key(|row| row.stack);
            let Some(into) = windows.get_mut(window as usize).filter(|_| !rows.is_empty()) else { continue };
            into.heads.push(GroupHead { set, kind, period, rows: rows.len() as u32 });
            let mut before = 0;
            for row in &rows {
                put(&mut into.rows, u64::from(row.stack - before));
                before = row.stack;
                put_row(&mut into.rows, row, period);
            }
        }
        Ok(())
    }

    fn gather_ledger(
        &mut self,
        from: &Source<'_>,
        places: &mut Places,
        windows: &mut [Gathering],
    ) -> Result<(), StoreError> {
        let lines = from.view.ledger()?;
        let mut sums: BTreeMap<(u32, u32), LedgerLine> = BTreeMap::new();
        for line in lines.iter().filter(|line| from.is(line.set)) {
            let Some(window) = from.window(line.window) else { continue };
            let set = self.gather_set(from.view, line.set, places);
            match sums.get_mut(&(window, set)) {
                Some(sum) => {
                    sum.sums.add(&line.sums);
                    sum.seen.cover(&line.seen);
                }
                None => {
                    sums.insert((window, set), LedgerLine { set, ..*line });
                }
            }
        }
        for ((window, _), line) in sums {
            if let Some(into) = windows.get_mut(window as usize) {
                into.ledger.push(line);
            }
        }
        Ok(())
    }

    fn gather_pauses(
        &mut self,
        from: &Source<'_>,
        places: &mut Places,
        windows: &mut [Gathering],
    ) -> Result<(), StoreError> {
        for pause in from.view.pauses()?.iter().filter(|pause| from.is(pause.set)) {
            let Some(window) = from.window(pause.window) else { continue };
            let set = self.gather_set(from.view, pause.set, places);
            if let Some(into) = windows.get_mut(window as usize) {
                into.pauses.push(PauseLine { set, ..pause.clone() });
            }
        }
        Ok(())
    }
}
