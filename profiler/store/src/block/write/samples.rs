//! The tables of a block that are about samples: rows, their sums by lane, lanes, groups, flaws.
//!
//! Memory: one scope, and rows for one row group of each table.

use super::super::super::facts::{Flaw, FlawCount, Group};
use super::super::super::part::Part;
use super::super::order::{Lane, NOWHERE, Order};
use super::super::rows::{Row, Scopes};
use super::super::table::{Column, How, TableWriter};
use super::super::*;
use super::Files;

/// Rows that are handed to a file at once, at least: its row groups.
pub(in super::super) const ROW_GROUP: usize = 512 << 10;

/// Rows as the columns of `samples` and `merged`; `place` names the first one.
pub(in super::super) fn row_columns(place: &'static str, rows: &[Row]) -> [Column; 4] {
    [
        Column::int(place, How::Delta, rows.iter().map(|row| row.place)),
        Column::int("stack", How::Delta, rows.iter().map(|row| row.stack)),
        Column::long("count", How::Delta, rows.iter().map(|row| row.count)),
        Column::long("rest", How::Dictionary, rows.iter().map(|row| row.rest)),
    ]
}

/// Writes rows and their sums by lane; how many sums each lane has.
pub(super) fn samples(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<Vec<u64>, BlockError> {
    let mut sums = Vec::with_capacity(order.lanes.len());
    let mut pending: [Vec<Row>; 2] = Default::default();
    let names = [(SAMPLES, "group"), (MERGED, "lane")];
    let mut open = Vec::new();
    for (name, place) in names {
        let (path, file) = files.open(name)?;
        let says =
            |e: parquet::errors::ParquetError| BlockError::Table { path: path.clone(), says: e.to_string() };
        let writer = TableWriter::new(file, name, FORMAT, &row_columns(place, &[])).map_err(says)?;
        open.push((name, place, path, writer));
    }
    let mut scopes = Scopes::new(part, order);
    loop {
        let next = scopes.next();
        let last = next.is_none();
        if let Some(scope) = next {
            let merged = |lane: usize| scope.merged.get(lane).map_or(0, |rows| rows.len() as u64);
            sums.extend((0..scope.lanes).map(merged));
            let [rows, merged] = &mut pending;
            rows.extend(scope.rows);
            merged.extend(scope.merged.into_iter().flatten());
        }
        for ((_, place, path, writer), rows) in open.iter_mut().zip(&mut pending) {
            if rows.len() >= ROW_GROUP || last && !rows.is_empty() {
                let written = writer.write(&row_columns(place, rows));
                written.map_err(|e| BlockError::Table { path: path.clone(), says: e.to_string() })?;
                rows.clear();
            }
        }
        if last {
            break;
        }
    }
    for (name, _, path, writer) in open {
        let summed =
            writer.finish().map_err(|e| BlockError::Table { path: path.clone(), says: e.to_string() })?;
        files.close(name, &path, summed)?;
    }
    Ok(sums)
}

pub(in super::super) fn lanes(lanes: &[Lane], files: &mut Files<'_>) -> Result<(), BlockError> {
    files.table(
        LANES,
        &[
            Column::int("lane", How::Delta, 0..lanes.len() as u32),
            Column::int("scope", How::Delta, lanes.iter().map(|lane| lane.scope)),
            Column::long("rows", How::Delta, lanes.iter().map(|lane| lane.rows)),
            Column::long("merged", How::Delta, lanes.iter().map(|lane| lane.merged)),
            Column::long("period", How::Dictionary, lanes.iter().map(|lane| lane.period)),
        ],
    )
}

pub(super) fn groups(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let facts = &part.facts;
    let set = |set: u32| order.set_of.get(set as usize).copied().unwrap_or_default();
    let moved = |place: &u32| {
        let group = facts.groups.get(*place as usize)?;
        Some(Group { set: set(group.set), ..group })
    };
    let groups: Vec<Group> = order.groups.iter().filter_map(moved).collect();
    let group = |group: u32| order.group_of.get(group as usize).copied().filter(|g| *g != NOWHERE);
    let flaws = facts
        .flaws
        .iter()
        .filter_map(|flaw| Some(FlawCount { group: group(flaw.group)?, ..*flaw }))
        .collect();
    group_tables(&groups, &order.lane_of, flaws, files)
}

/// Groups, each with its lane, and their flaws.
pub(in super::super) fn group_tables(
    groups: &[Group],
    lane_of: &[u32],
    mut flaws: Vec<FlawCount>,
    files: &mut Files<'_>,
) -> Result<(), BlockError> {
    let rest = |group: &Group| group.weight.wrapping_sub(group.count.wrapping_mul(group.period));
    files.table(
        GROUPS,
        &[
            Column::int("group", How::Delta, 0..groups.len() as u32),
            Column::int("lane", How::Delta, lane_of.iter().copied()),
            Column::int("label_set", How::Delta, groups.iter().map(|group| group.set)),
            Column::int("window", How::Delta, groups.iter().map(|group| group.window)),
            Column::text("kind", How::Dictionary, groups.iter().map(|group| group.kind.slug())),
            Column::long("period", How::Dictionary, groups.iter().map(|group| group.period)),
            Column::long("count", How::Delta, groups.iter().map(|group| group.count)),
            Column::long("rest", How::Plain, groups.iter().map(rest)),
            Column::long("frames", How::Delta, groups.iter().map(|group| group.frames)),
            Column::long("approximate", How::Delta, groups.iter().map(|group| group.approximate)),
        ],
    )?;
    flaws.sort_unstable_by_key(|flaw| (flaw.flaw, flaw.group));
    let (what, why): (Vec<_>, Vec<_>) = flaws
        .iter()
        .map(|flaw| match flaw.flaw {
            Flaw::End(end) => ("end", end.slug()),
            Flaw::Unnamed(reason) => ("unnamed", reason.slug()),
        })
        .unzip();
    files.table(
        FLAWS,
        &[
            Column::int("group", How::Delta, flaws.iter().map(|flaw| flaw.group)),
            Column::text("flaw", How::Dictionary, what),
            Column::text("reason", How::Dictionary, why),
            Column::long("count", How::Delta, flaws.iter().map(|flaw| flaw.count)),
        ],
    )
}
