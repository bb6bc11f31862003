//! A block during a query: which rows a selection needs, and their sums.
//!
//! In: a slot for each group. Out: sums by slot and stack. A lane whose groups all go to one slot is read from its
//! sums in `merged`; what is left is read from `samples`, in stretches.

use super::super::super::error::StoreError;
use super::super::super::facts::{Facts, LedgerLine, Stacks};
use super::super::super::flat::Shape;
use super::super::super::part::numbers;
use super::super::super::spark::SparkWords;
use super::super::super::sums::Sums;
use super::super::super::view::{LedgerRef, Pauses, Shared, UNSELECTED, View};
use super::super::table::{Room, Stretch, TableReader};
use super::super::write::LEDGER_COLUMNS;
use super::super::*;
use super::file::Positioned;
use super::{Block, Index, LEDGER_ROOM, guarded};
use emberscope_model::{Detail, LedgerSums, TimeRange, WallTime};
use std::sync::Arc;

/// Rows that are decoded at once.
const CHUNK: usize = 8192;

/// A block during a query.
pub(crate) struct OpenBlock<'a> {
    pub(super) block: &'a Block,
    pub(super) index: Arc<Index>,
}

impl<'a> OpenBlock<'a> {
    /// A block with the index that is kept of it.
    pub(in super::super) fn new(block: &'a Block, index: Arc<Index>) -> Self {
        Self { block, index }
    }
}

/// Where the rows of a selection are found.
#[derive(Debug, Default)]
struct Plan {
    /// Rows of `samples`: first and how many.
    samples: Vec<(u64, u64)>,
    /// Rows of `merged`.
    merged: Vec<(u64, u64)>,
    /// What a lane's sums go to.
    of_lane: Vec<u32>,
}

/// Adds a stretch to the one before where they touch.
fn extend(ranges: &mut Vec<(u64, u64)>, first: u64, rows: u64) {
    match ranges.last_mut().filter(|(start, length)| start + length == first) {
        Some((_, length)) => *length += rows,
        None if rows > 0 => ranges.push((first, rows)),
        None => {}
    }
}

impl OpenBlock<'_> {
    /// A lane all of whose groups go to the same slot needs only its sums.
    fn plan(&self, of_group: &[u32]) -> Plan {
        const MIXED: u32 = u32::MAX - 1;
        let lanes = &self.index.lanes;
        let mut of_lane: Vec<Option<u32>> = vec![None; lanes.len()];
        for (group, slot) in of_group.iter().enumerate() {
            let lane = self.index.lane_of.get(group) as usize;
            let Some(known) = of_lane.get_mut(lane) else { continue };
            *known = if known.is_none_or(|known| known == *slot) { Some(*slot) } else { Some(MIXED) };
        }
        let mut plan = Plan {
            of_lane: of_lane.into_iter().map(|s| s.unwrap_or(UNSELECTED)).collect(),
            ..Plan::default()
        };
        let (mut row, mut sum, mut place) = (0, 0, 0);
        for scope in lanes.chunk_by(|a, b| a.scope == b.scope) {
            let slots = plan.of_lane.get(place..place + scope.len()).unwrap_or_default();
            let wanted = || scope.iter().zip(slots).filter(|(_, slot)| **slot != UNSELECTED);
            let rows: u64 = scope.iter().map(|lane| lane.rows).sum();
            let summed = wanted().all(|(lane, slot)| *slot != MIXED && (lane.merged > 0 || lane.rows == 0));
            match (wanted().next().is_some(), summed) {
                (false, _) => {}
                (true, false) => extend(&mut plan.samples, row, rows),
                (true, true) => {
                    let mut first = sum;
                    for (lane, slot) in scope.iter().zip(slots) {
                        if *slot != UNSELECTED {
                            extend(&mut plan.merged, first, lane.merged);
                        }
                        first += lane.merged;
                    }
                }
            }
            row += rows;
            sum += scope.iter().map(|lane| lane.merged).sum::<u64>();
            place += scope.len();
        }
        plan
    }

    fn add_up(&self, of_group: &[u32], sums: &mut Sums) -> Result<(), BlockProblem> {
        let plan = self.plan(of_group);
        if !plan.samples.is_empty() {
            let groups = &self.index.facts.groups;
            let table = self.block.rows(SAMPLES)?;
            read_rows(&table, "group", &plan.samples, |group, stack, count, rest| {
                let slot = of_group.get(group as usize).copied().unwrap_or(UNSELECTED);
                if slot != UNSELECTED {
                    let period = groups.period(group as usize);
                    sums.add(slot, stack, count, count.wrapping_mul(period).wrapping_add(rest));
                }
            })?;
        }
        if !plan.merged.is_empty() {
            let table = self.block.rows(MERGED)?;
            read_rows(&table, "lane", &plan.merged, |lane, stack, count, rest| {
                let slot = plan.of_lane.get(lane as usize).copied().unwrap_or(UNSELECTED);
                if slot != UNSELECTED {
                    let period = self.index.lanes.get(lane as usize).map_or(0, |lane| lane.period);
                    sums.add(slot, stack, count, count.wrapping_mul(period).wrapping_add(rest));
                }
            })?;
        }
        Ok(())
    }
}

/// Columns of a row group that are being read.
struct Open {
    place: Stretch<i32>,
    stack: Stretch<i32>,
    count: Stretch<i64>,
    /// None: the rest is 0 in all rows.
    rest: Option<Stretch<i64>>,
}

/// Gives place, stack, count and rest of each row of the ranges.
pub(in super::super) fn read_rows(
    table: &TableReader<Positioned>,
    place: &'static str,
    ranges: &[(u64, u64)],
    mut take: impl FnMut(u32, u32, u64, u64),
) -> Result<(), BlockProblem> {
    let mut before = 0;
    let (mut places, mut stacks, mut counts, mut rests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (group, rows) in table.row_groups().into_iter().enumerate() {
        let mut open: Option<Open> = None;
        let mut at = before;
        for (first, length) in ranges {
            let (start, end) = ((*first).max(before), (first + length).min(before + rows));
            if start >= end {
                continue;
            }
            let open = match &mut open {
                Some(open) => open,
                None => open.insert(Open {
                    place: table.ints(group, place)?,
                    stack: table.ints(group, "stack")?,
                    count: table.longs(group, "count")?,
                    rest: match table.constant(group, "rest") {
                        Some(0) => None,
                        _ => Some(table.longs(group, "rest")?),
                    },
                }),
            };
            let skipped = (start - at) as usize;
            open.place.skip(skipped)?;
            open.stack.skip(skipped)?;
            open.count.skip(skipped)?;
            if let Some(rest) = &mut open.rest {
                rest.skip(skipped)?;
            }
            at = start;
            while at < end {
                let some = ((end - at) as usize).min(CHUNK);
                open.place.read(some, &mut places)?;
                open.stack.read(some, &mut stacks)?;
                open.count.read(some, &mut counts)?;
                match &mut open.rest {
                    Some(rest) => rest.read(some, &mut rests)?,
                    None => rests.resize(some, 0),
                }
                let rows = places.iter().zip(&stacks).zip(counts.iter().zip(&rests));
                for ((place, stack), (count, rest)) in rows {
                    take(
                        place.cast_unsigned(),
                        stack.cast_unsigned(),
                        count.cast_unsigned(),
                        rest.cast_unsigned(),
                    );
                }
                at += some as u64;
            }
        }
        before += rows;
    }
    Ok(())
}

impl View for OpenBlock<'_> {
    fn facts(&self) -> &Facts {
        &self.index.facts
    }

    fn stacks(&self) -> Result<Shared<'_, Stacks>, StoreError> {
        let stacks = self.block.stacks().map_err(|problem| self.block.unreadable(problem))?;
        Ok(Shared::Held(stacks))
    }

    fn shape(&self, detail: Detail) -> Result<Arc<Shape>, StoreError> {
        Ok(self.block.shapes.of(&*self.stacks()?, detail))
    }

    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError> {
        let stacks = self.stacks()?.stacks.len();
        let mut sums = Sums::new(slots, stacks);
        guarded(|| self.add_up(of_group, &mut sums)).map_err(|problem| self.block.unreadable(problem))?;
        sums.fit().map(|()| sums)
    }

    fn rows(&self) -> u64 {
        self.index.lanes.iter().map(|lane| lane.rows).sum()
    }

    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError> {
        let lines = self.read_ledger().map_err(|problem| self.block.unreadable(problem))?;
        Ok(LedgerRef::Read(lines))
    }

    fn pauses(&self) -> Result<Pauses<'_>, StoreError> {
        let lines = self.read_pauses().map_err(|problem| self.block.unreadable(problem))?;
        Ok(lines.into())
    }

    fn spark(&self) -> Result<Shared<'_, SparkWords>, StoreError> {
        self.block.spark().map(Shared::Held).map_err(|problem| self.block.unreadable(problem))
    }
}

impl OpenBlock<'_> {
    pub(in super::super) fn read_ledger(&self) -> Result<Vec<LedgerLine>, BlockProblem> {
        guarded(|| self.lines())
    }

    fn lines(&self) -> Result<Vec<LedgerLine>, BlockProblem> {
        let facts = &self.index.facts;
        let table = self.block.table(LEDGER, &Room::new(LEDGER_ROOM))?;
        let sets = table.all_places("label_set", facts.labels.sets.len())?;
        let windows = table.all_places("window", facts.windows.len())?;
        let none = TimeRange { from: WallTime(0), until: WallTime(0) };
        let line = |(set, window)| LedgerLine { window, set, sums: LedgerSums::default(), seen: none };
        let mut lines: Vec<LedgerLine> = sets.into_iter().zip(windows).map(line).collect();
        // The last ones came later.
        let told = LEDGER_COLUMNS.iter().enumerate().filter(|(_, column)| table.has(column));
        for (place, column) in told {
            for (line, value) in lines.iter_mut().zip(table.all_longs(column)?) {
                if let Some(number) = numbers(&mut line.sums).into_iter().nth(place) {
                    *number = value;
                }
            }
        }
        let (after, length) = (table.all_longs("seen_after_ns")?, table.all_longs("seen_for_ns")?);
        for (line, (after, length)) in lines.iter_mut().zip(after.into_iter().zip(length)) {
            let window = facts.windows.get(line.window as usize).map_or(0, |window| window.range.from.0);
            line.seen.from = WallTime(window.wrapping_add(after));
            line.seen.until = WallTime(line.seen.from.0.wrapping_add(length));
        }
        Ok(lines)
    }
}
