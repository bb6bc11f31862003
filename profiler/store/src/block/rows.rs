//! The rows of a block, sorted for size and speed, one scope at a time.
//!
//! In: a part and its order. Out: for each scope its rows by stack and group, and their sums by lane and
//! stack. Groups run up within one stack and down within the next, so that no distance is long. Memory:
//! one scope ([`super::order::MAX_SCOPE_ROWS`]).

use super::super::part::Part;
use super::order::Order;

/// A row: stack, group or lane, count, and the weight beyond `count * period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub stack: u32,
    pub place: u32,
    pub count: u64,
    pub rest: u64,
}

/// The rows of one scope.
#[derive(Debug, Default)]
pub(super) struct ScopeRows {
    pub rows: Vec<Row>,
    /// Sums by lane, the first lane first; empty where they would save little.
    pub merged: Vec<Vec<Row>>,
    pub lanes: usize,
}

/// Sums by lane are kept where they are at most one for so many rows.
const WORTH: usize = 4;

/// The scopes of a part, one after the other.
pub(super) struct Scopes<'a> {
    part: &'a Part,
    order: &'a Order,
    group: usize,
    lane: usize,
}

impl<'a> Scopes<'a> {
    pub fn new(part: &'a Part, order: &'a Order) -> Self {
        Self { part, order, group: 0, lane: 0 }
    }
}

impl Iterator for Scopes<'_> {
    type Item = ScopeRows;

    fn next(&mut self) -> Option<ScopeRows> {
        let first_lane = self.lane;
        let scope = self.order.lanes.get(first_lane)?.scope;
        let lanes = self.order.lanes.iter().skip(first_lane).take_while(|lane| lane.scope == scope).count();
        self.lane += lanes;
        let mut out = ScopeRows { lanes, ..ScopeRows::default() };
        while let Some(lane) = self.order.lane_of.get(self.group)
            && (*lane as usize) < self.lane
        {
            let place = self.group as u32;
            self.group += 1;
            let Some(old) = self.order.groups.get(place as usize) else { continue };
            let period = self.part.facts.groups.period(*old as usize);
            out.rows.extend(self.part.rows(*old).map(|row| Row {
                stack: self.order.stack_of.get(row.stack as usize).copied().unwrap_or_default(),
                place,
                count: row.count,
                rest: row.weight.wrapping_sub(row.count.wrapping_mul(period)),
            }));
        }
        out.rows.sort_unstable_by_key(|row| (row.stack, row.place));
        out.merged = self.merge(&out.rows, first_lane, lanes);
        if out.merged.iter().map(Vec::len).sum::<usize>() * WORTH > out.rows.len() {
            out.merged.clear();
        }
        for (number, lane) in out.merged.iter_mut().enumerate() {
            if number % 2 == 1 {
                lane.reverse();
            }
        }
        let stacks = out.rows.chunk_by_mut(|a, b| a.stack == b.stack);
        stacks.skip(1).step_by(2).for_each(<[Row]>::reverse);
        Some(out)
    }
}

impl Scopes<'_> {
    /// Sums by lane and stack of rows that are sorted by stack and group.
    fn merge(&self, rows: &[Row], first: usize, lanes: usize) -> Vec<Vec<Row>> {
        let mut merged: Vec<Vec<Row>> = vec![Vec::new(); lanes];
        for row in rows {
            let Some(lane) = self.order.lane_of.get(row.place as usize) else { continue };
            let of_group = self.order.groups.get(row.place as usize);
            let period = of_group.map_or(0, |old| self.part.facts.groups.period(*old as usize));
            let weight = row.count.wrapping_mul(period).wrapping_add(row.rest);
            let of_lane = self.order.lanes.get(*lane as usize).map_or(0, |lane| lane.period);
            let rest = weight.wrapping_sub(row.count.wrapping_mul(of_lane));
            let Some(sums) = merged.get_mut(*lane as usize - first) else { continue };
            match sums.last_mut().filter(|last| last.stack == row.stack) {
                Some(last) => {
                    last.count = last.count.wrapping_add(row.count);
                    last.rest = last.rest.wrapping_add(rest);
                }
                None => sums.push(Row { stack: row.stack, place: *lane, count: row.count, rest }),
            }
        }
        merged
    }
}
