//! A block with coarser windows: a minute, then ten, where ten seconds are too much to keep.
//!
//! In: a block and a length. Out: the same block, its tables of windows, groups, rows and ledger written anew beside
//! the old ones (`-2` and so on), flushed, and then named by the manifest, which is the moment at which they hold.
//! No sum changes: windows that begin in the same stretch of that length become one, from the first one's start to the
//! last one's end. Label sets, stacks, names and sums by lane stay as they are. Memory: one scope of rows.

mod coarse;

use super::super::facts::{FlawCount, Group, Groups, LedgerLine, PauseLine};
use super::change::next_suffix;
use super::order::Lane;
use super::read::{Block, Index, OpenBlock, lock, read_rows};
use super::rows::Row;
use super::table::TableWriter;
use super::write::{
    Files, ROW_GROUP, group_tables, lanes, ledger_lines, pause_lines, process_windows, row_columns, sync_dir,
    windows, write_manifest,
};
use super::*;
use coarse::Coarse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The tables that are written anew.
const TABLES: [&str; 9] = [WINDOWS, LOST, GROUPS, FLAWS, LANES, SAMPLES, PROCESS_WINDOWS, LEDGER, PAUSES];

/// Groups that became one, and where each went.
#[derive(Default)]
struct Merged {
    groups: Vec<Group>,
    lane_of: Vec<u32>,
    of: Vec<u32>,
}

impl Merged {
    fn of(index: &Index, coarse: &Coarse) -> Self {
        let old = &index.facts.groups;
        let lane = |place: u32| index.lane_of.get(place as usize) as u32;
        let key = |place: u32| {
            let at = place as usize;
            (lane(place), old.kind(at), old.set(at), coarse.place(old.window(at)))
        };
        let mut order: Vec<u32> = (0..old.len() as u32).collect();
        order.sort_by_key(|place| key(*place));
        let mut out = Self { of: vec![0; old.len()], ..Self::default() };
        for same in order.chunk_by(|a, b| key(*a) == key(*b)) {
            let mut sum: Option<Group> = None;
            for place in same {
                if let Some(slot) = out.of.get_mut(*place as usize) {
                    *slot = out.groups.len() as u32;
                }
                let Some(group) = old.get(*place as usize) else { continue };
                match &mut sum {
                    None => sum = Some(Group { window: coarse.place(group.window), ..group }),
                    Some(sum) => {
                        sum.count = sum.count.saturating_add(group.count);
                        sum.weight = sum.weight.saturating_add(group.weight);
                        sum.frames = sum.frames.saturating_add(group.frames);
                        sum.approximate = sum.approximate.saturating_add(group.approximate);
                    }
                }
            }
            out.groups.extend(sum);
            out.lane_of.extend(same.first().map(|place| lane(*place)));
        }
        out
    }

    fn flaws(&self, old: &[FlawCount]) -> Vec<FlawCount> {
        let of = |group: u32| self.of.get(group as usize).copied().unwrap_or_default();
        let mut flaws: Vec<FlawCount> =
            old.iter().map(|flaw| FlawCount { group: of(flaw.group), ..*flaw }).collect();
        flaws.sort_unstable_by_key(|flaw| (flaw.group, flaw.flaw));
        flaws.dedup_by(|flaw, kept| {
            let same = (flaw.group, flaw.flaw) == (kept.group, kept.flaw);
            if same {
                kept.count = kept.count.saturating_add(flaw.count);
            }
            same
        });
        flaws
    }
}

/// Rows under their new groups, scope by scope.
struct Rows<'a> {
    merged: &'a Merged,
    /// The groups as they were before.
    old: &'a Groups,
    lanes: Vec<Lane>,
    rows: Vec<Row>,
    pending: Vec<Row>,
}

impl Rows<'_> {
    fn take(&mut self, group: u32, stack: u32, count: u64, rest: u64) {
        let weight = count.wrapping_mul(self.old.period(group as usize)).wrapping_add(rest);
        let place = self.merged.of.get(group as usize).copied().unwrap_or_default();
        let period = self.merged.groups.get(place as usize).map_or(0, |group| group.period);
        self.rows.push(Row { stack, place, count, rest: weight.wrapping_sub(count.wrapping_mul(period)) });
    }

    /// All rows of a scope are there.
    fn end_scope(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by_key(|row| (row.stack, row.place));
        rows.dedup_by(|row, kept| {
            let same = (row.stack, row.place) == (kept.stack, kept.place);
            if same {
                kept.count = kept.count.saturating_add(row.count);
                kept.rest = kept.rest.wrapping_add(row.rest);
            }
            same
        });
        for row in &rows {
            let lane = self.merged.lane_of.get(row.place as usize).copied().unwrap_or_default();
            if let Some(lane) = self.lanes.get_mut(lane as usize) {
                lane.rows += 1;
            }
        }
        rows.chunk_by_mut(|a, b| a.stack == b.stack).skip(1).step_by(2).for_each(<[Row]>::reverse);
        self.pending.append(&mut rows);
        // The room is used again.
        self.rows = rows;
    }
}

impl Block {
    /// Makes the block's windows at least so long. Out: the block that has the directory from now on, and the files
    /// that none has any more: whoever still asks this one must first be told ([`Block::retire`]).
    ///
    /// # Errors
    /// [`BlockError::Damaged`]: the block's tables cannot be read. [`BlockError::Table`], [`BlockError::Io`]: the new
    /// tables or the manifest cannot be written. The new files are removed then, and the block stays as it was.
    pub fn roll_up(&self, length: Duration, sync: bool) -> Result<(Block, Vec<PathBuf>), BlockError> {
        let damaged = |says: String| BlockError::Damaged { path: self.dir().to_owned(), says };
        let problem = |problem: BlockProblem| damaged(problem.to_string());
        let index = self.index().map_err(problem)?;
        let open = OpenBlock::new(self, index.clone());
        let ledger = open.read_ledger().map_err(problem)?;
        let pauses = open.read_pauses().map_err(problem)?;
        let manifest = lock(self.manifest()).clone();
        let mut files =
            Files { dir: self.dir(), suffix: next_suffix(&manifest), sync, files: BTreeMap::new() };
        let written = self.write_coarse(&index, (ledger, pauses), length, &mut files);
        let undo = |files: &Files<'_>| {
            for name in files.files.keys() {
                let _ = std::fs::remove_file(self.dir().join(name));
            }
        };
        let (count, rows) = match written {
            Ok(written) => written,
            Err(error) => {
                undo(&files);
                return Err(error);
            }
        };
        let mut next = manifest.clone();
        let is_old = |name: &String| TABLES.contains(&table_of(name));
        next.files.retain(|name, _| !is_old(name));
        next.files.extend(files.files.iter().map(|(name, facts)| (name.clone(), *facts)));
        (next.windows, next.rows) = (count, rows);
        next.window_ns = Some(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let named = sync_dir(self.dir(), sync).and_then(|()| write_manifest(self.dir(), &next, sync));
        if let Err(source) = named {
            undo(&files);
            return Err(BlockError::Io { what: "change", path: self.dir().to_owned(), source });
        }
        let new = Block::new(self.dir().to_owned(), next);
        if sync_dir(self.dir(), sync).is_err() {
            // After a power cut the old manifest may hold: its files stay until the next start.
            return Ok((new, Vec::new()));
        }
        let gone = manifest.files.keys().filter(|name| is_old(name)).map(|name| self.dir().join(name));
        Ok((new, gone.collect()))
    }

    /// Writes the new tables. Out: how many windows and rows the block has then.
    fn write_coarse(
        &self,
        index: &Arc<Index>,
        (mut ledger, mut pauses): (Vec<LedgerLine>, Vec<PauseLine>),
        length: Duration,
        files: &mut Files<'_>,
    ) -> Result<(u64, u64), BlockError> {
        let coarse = Coarse::of(&index.facts.windows, length);
        windows(&coarse.windows, files)?;
        let mut seen: Vec<(u32, u32)> = (0..)
            .zip(&coarse.windows)
            .flat_map(|(place, window)| window.records.iter().map(move |record| (*record, place)))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        process_windows(&seen, files)?;
        for line in &mut ledger {
            line.window = coarse.place(line.window);
        }
        ledger.sort_by_key(|line| (line.set, line.window));
        ledger.dedup_by(|line, kept| {
            let same = (line.set, line.window) == (kept.set, kept.window);
            if same {
                kept.sums.add(&line.sums);
                kept.seen.cover(&line.seen);
            }
            same
        });
        ledger_lines(&ledger, &coarse.windows, files)?;
        drop(ledger);
        for pause in &mut pauses {
            pause.window = coarse.place(pause.window);
        }
        pause_lines(pauses, &coarse.windows, files)?;
        let merged = Merged::of(index, &coarse);
        group_tables(&merged.groups, &merged.lane_of, merged.flaws(&index.facts.flaws), files)?;
        let new = self.write_rows(index, &merged, files)?;
        lanes(&new, files)?;
        Ok((coarse.windows.len() as u64, new.iter().map(|lane| lane.rows).sum()))
    }

    fn write_rows(
        &self,
        index: &Index,
        merged: &Merged,
        files: &mut Files<'_>,
    ) -> Result<Vec<Lane>, BlockError> {
        let (path, file) = files.open(SAMPLES)?;
        let says = |error: parquet::errors::ParquetError| BlockError::Table {
            path: path.clone(),
            says: error.to_string(),
        };
        let shape = row_columns("group", &[]);
        let mut writer = TableWriter::new(file, SAMPLES, FORMAT, &shape).map_err(says)?;
        let lanes = index.lanes.iter().map(|lane| Lane { rows: 0, ..*lane }).collect();
        let mut rows =
            Rows { merged, old: &index.facts.groups, lanes, rows: Vec::new(), pending: Vec::new() };
        let scopes = index.lanes.chunk_by(|a, b| a.scope == b.scope);
        let mut lengths = scopes.map(|scope| scope.iter().map(|lane| lane.rows).sum::<u64>());
        let all: u64 = index.lanes.iter().map(|lane| lane.rows).sum();
        // The rows of a scope that are still to come.
        let mut left = 0;
        let mut failed = None;
        if all > 0 {
            let read = self.rows(SAMPLES).and_then(|table| {
                read_rows(&table, "group", &[(0, all)], |group, stack, count, rest| {
                    while left == 0 {
                        left = lengths.next().unwrap_or(u64::MAX);
                    }
                    rows.take(group, stack, count, rest);
                    left -= 1;
                    if left > 0 {
                        return;
                    }
                    rows.end_scope();
                    if rows.pending.len() >= ROW_GROUP && failed.is_none() {
                        failed = writer.write(&row_columns("group", &rows.pending)).err();
                        rows.pending.clear();
                    }
                })
            });
            read.map_err(|problem| BlockError::Damaged {
                path: self.dir().to_owned(),
                says: problem.to_string(),
            })?;
        }
        if !rows.pending.is_empty() && failed.is_none() {
            failed = writer.write(&row_columns("group", &rows.pending)).err();
        }
        if let Some(error) = failed {
            return Err(says(error));
        }
        let summed = writer.finish().map_err(says)?;
        let lanes = rows.lanes;
        files.close(SAMPLES, &path, summed)?;
        Ok(lanes)
    }
}
