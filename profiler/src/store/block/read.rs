//! Reads a block: its facts and stacks as a whole, of its rows only what a selection needs.
//!
//! In: a directory with a manifest. Out: a [`View`]. Facts and stacks are kept once read, until
//! [`Block::let_go`]; rows are read from the file each time. A file whose length or checksum is not the
//! manifest's is a [`BlockProblem`], and so is a table that points to what is not there.

use super::super::facts::{Facts, LedgerLine, Stacks};
use super::super::part::numbers;
use super::super::read::{LedgerRef, StacksRef, Sums, UNSELECTED, View};
use super::table::{Stretch, TableReader};
use super::write::LEDGER_COLUMNS;
use super::*;
use crate::model::{LedgerSums, TimeRange, WallTime};
use crate::store::StoreError;
use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod tables;

/// Rows that are decoded at once.
const CHUNK: usize = 8192;

/// A scope's part in one process, and how many rows and sums it has.
#[derive(Clone, Copy, Debug)]
struct Lane {
    scope: u32,
    rows: u64,
    merged: u64,
    period: u64,
}

/// What is kept of a block's small tables.
#[derive(Debug)]
pub(in crate::store) struct Index {
    pub facts: Facts,
    lane_of: Vec<u32>,
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
struct Kept {
    index: Option<Arc<Index>>,
    stacks: Option<Arc<Stacks>>,
}

/// A block.
#[derive(Debug)]
pub(in crate::store) struct Block {
    dir: PathBuf,
    manifest: Mutex<Manifest>,
    range: TimeRange,
    part: u64,
    windows: u64,
    kept: Mutex<Kept>,
    /// The files of rows were found as the manifest has them.
    checked: AtomicBool,
    /// When it was last asked, by the store's count of questions.
    used: AtomicU64,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept is whole or absent, whoever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    /// A block whose manifest was read or written just now.
    pub fn new(dir: PathBuf, manifest: Manifest) -> Self {
        Self {
            dir,
            range: manifest.range(),
            part: manifest.part,
            windows: manifest.windows,
            manifest: Mutex::new(manifest),
            kept: Mutex::default(),
            checked: AtomicBool::new(false),
            used: AtomicU64::new(0),
        }
    }

    /// Opens a directory. Only the manifest is read, and the files' lengths compared.
    pub fn open(dir: &Path) -> Result<Self, BlockError> {
        let manifest = Manifest::read(dir)?;
        for (name, facts) in &manifest.files {
            let length = std::fs::metadata(dir.join(name)).map(|file| file.len());
            if length.as_ref().ok() != Some(&facts.bytes) {
                let has = length.map_or_else(|e| e.to_string(), |length| format!("{length} bytes"));
                let says = format!("{name} should have {} bytes: {has}", facts.bytes);
                return Err(BlockError::Damaged { path: dir.to_owned(), says });
            }
        }
        Ok(Self::new(dir.to_owned(), manifest))
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// From its first window to its last.
    pub fn range(&self) -> TimeRange {
        self.range
    }
    /// The part that it was made of.
    pub fn part(&self) -> u64 {
        self.part
    }
    /// How many windows.
    pub fn windows(&self) -> u64 {
        self.windows
    }
    /// Bytes on the disk.
    pub fn bytes(&self) -> u64 {
        lock(&self.manifest).bytes()
    }
    /// When it was last asked.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Forgets what was read, and tells how many bytes that were.
    pub fn let_go(&self) {
        *lock(&self.kept) = Kept::default();
    }

    /// Bytes that are kept of it, estimated.
    pub fn kept_bytes(&self) -> usize {
        let kept = lock(&self.kept);
        let index = kept.index.as_ref().map_or(0, |index| {
            let facts = &index.facts;
            let texts: usize = facts.labels.texts.iter().map(|text| text.len() + 32).sum();
            texts
                + facts.labels.sets.len() * 29
                + facts.groups.len() * 84
                + facts.flaws.len() * 24
                + facts.records.len() * 250
                + facts.windows.iter().map(|w| 160 + w.records.len() * 4).sum::<usize>()
        });
        let stacks = kept.stacks.as_ref().map_or(0, |stacks| {
            let frame = |frame: &Arc<crate::model::Frame>| frame.name.len() + 150;
            stacks.frames.iter().map(frame).sum::<usize>() + stacks.nodes.len() * 8 + stacks.stacks.len() * 32
        });
        index + stacks
    }

    /// Opens it for a query, which is the `asked`-th.
    pub fn view(&self, asked: u64) -> Result<OpenBlock<'_>, StoreError> {
        self.used.store(asked, Ordering::Relaxed);
        let index = self.index().map_err(|problem| self.unreadable(problem))?;
        Ok(OpenBlock { block: self, index })
    }

    pub(super) fn index(&self) -> Result<Arc<Index>, BlockProblem> {
        let index = lock(&self.kept).index.clone();
        if let Some(index) = index {
            return Ok(index);
        }
        let index = Arc::new(tables::index(self)?);
        lock(&self.kept).index = Some(index.clone());
        Ok(index)
    }

    pub(super) fn manifest(&self) -> &Mutex<Manifest> {
        &self.manifest
    }

    fn unreadable(&self, problem: BlockProblem) -> StoreError {
        StoreError::Unreadable { path: self.dir.clone(), says: problem.to_string() }
    }

    /// The file of a small table, which may have been written anew since: `label_sets-2.parquet`.
    fn file_of(&self, table: &str) -> Result<(String, manifest::FileFacts), BlockProblem> {
        let manifest = lock(&self.manifest);
        let is = |name: &str| {
            let rest = name.strip_prefix(table).and_then(|rest| rest.strip_suffix(".parquet"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let found = manifest.files.iter().find(|(name, _)| is(name));
        let found = found.map(|(name, facts)| (name.clone(), *facts));
        found.ok_or_else(|| BlockProblem::says(table, "is not in the manifest".to_owned()))
    }

    /// A small table, checked.
    fn table(&self, table: &'static str) -> Result<TableReader<Bytes>, BlockProblem> {
        let (name, facts) = self.file_of(table)?;
        let path = self.dir.join(&name);
        let bytes = std::fs::read(&path).map_err(|error| BlockProblem::io(&path, &error))?;
        if bytes.len() as u64 != facts.bytes || crc32fast::hash(&bytes) != facts.crc32 {
            return Err(BlockProblem::says(&name, "is not as it was written".to_owned()));
        }
        TableReader::new(Bytes::from(bytes), table)
    }

    /// A table of rows, checked when it is opened for the first time.
    fn rows(&self, table: &'static str) -> Result<TableReader<Positioned>, BlockProblem> {
        if !self.checked.load(Ordering::Relaxed) {
            for table in [SAMPLES, MERGED] {
                self.check(table)?;
            }
            self.checked.store(true, Ordering::Relaxed);
        }
        let (name, facts) = self.file_of(table)?;
        let path = self.dir.join(name);
        let file = File::open(&path).map_err(|error| BlockProblem::io(&path, &error))?;
        TableReader::new(Positioned { file: Arc::new(file), length: facts.bytes }, table)
    }

    fn check(&self, table: &str) -> Result<(), BlockProblem> {
        let (name, facts) = self.file_of(table)?;
        let path = self.dir.join(&name);
        let failed = |error: io::Error| BlockProblem::io(&path, &error);
        let mut file = File::open(&path).map_err(failed)?;
        let (mut buffer, mut sum, mut length) = (vec![0; 256 << 10], crc32fast::Hasher::new(), 0);
        loop {
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            sum.update(buffer.get(..read).unwrap_or_default());
        }
        match (length, sum.finalize()) == (facts.bytes, facts.crc32) {
            true => Ok(()),
            false => Err(BlockProblem::says(&name, "is not as it was written".to_owned())),
        }
    }
}

/// A file that is read at offsets, by several at once.
#[derive(Clone, Debug)]
struct Positioned {
    file: Arc<File>,
    length: u64,
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.length
    }
}

/// Reads on from an offset.
struct From {
    of: Positioned,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.of.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl ChunkReader for Positioned {
    // A page's header has some 30 bytes.
    type T = io::BufReader<From>;
    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(io::BufReader::with_capacity(256, From { of: self.clone(), at: start }))
    }
    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A block during a query.
pub(in crate::store) struct OpenBlock<'a> {
    block: &'a Block,
    index: Arc<Index>,
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
        for (lane, slot) in self.index.lane_of.iter().zip(of_group) {
            let Some(known) = of_lane.get_mut(*lane as usize) else { continue };
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
                    let period = groups.get(group as usize).map_or(0, |group| group.period);
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
    /// None: it is 0 in all rows.
    rest: Option<Stretch<i64>>,
}

/// Gives place, stack, count and rest of each row of the ranges.
fn read_rows(
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

    fn stacks(&self) -> Result<StacksRef<'_>, StoreError> {
        let stacks = lock(&self.block.kept).stacks.clone();
        let stacks = match stacks {
            Some(stacks) => stacks,
            None => {
                let read = tables::stacks(self.block).map_err(|problem| self.block.unreadable(problem))?;
                let stacks = Arc::new(read);
                lock(&self.block.kept).stacks = Some(stacks.clone());
                stacks
            }
        };
        Ok(StacksRef::Held(stacks))
    }

    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError> {
        let stacks = self.stacks()?.stacks.len();
        let mut sums = Sums::new(slots, stacks);
        self.add_up(of_group, &mut sums).map_err(|problem| self.block.unreadable(problem))?;
        Ok(sums)
    }

    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError> {
        let lines = self.read_ledger().map_err(|problem| self.block.unreadable(problem))?;
        Ok(LedgerRef::Read(lines))
    }
}

impl OpenBlock<'_> {
    fn read_ledger(&self) -> Result<Vec<LedgerLine>, BlockProblem> {
        let facts = &self.index.facts;
        let table = self.block.table(LEDGER)?;
        let sets = table.all_places("label_set", facts.labels.sets.len())?;
        let windows = table.all_places("window", facts.windows.len())?;
        let none = TimeRange { from: WallTime(0), until: WallTime(0) };
        let line = |(set, window)| LedgerLine { window, set, sums: LedgerSums::default(), seen: none };
        let mut lines: Vec<LedgerLine> = sets.into_iter().zip(windows).map(line).collect();
        for (place, column) in LEDGER_COLUMNS.iter().enumerate() {
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
