//! Closed windows in memory, small: what windows share is kept once and rows are two bytes or three.
//!
//! A part is the windows since the last block. It takes a window or a change of labels and gives back the
//! bytes that tell it (`record`): the journal keeps these, and a part that reads them is the same part.
//! A part that is full no longer changes and becomes a block.
//!
//! Rows of a group are sorted by stack: the distance to the stack before, then the count and whether the
//! weight is anything but `count * period`. No limits here: who owns it looks at [`Part::bytes`].

mod codec;
mod gather;
mod names;
mod pauses;
mod record;
mod replay;
mod rounding;
mod spark;
mod view;

pub(super) use codec::Malformed;
pub(super) use gather::Keep;
pub(super) use record::{name_source, numbers};

use super::facts::{Facts, Flaw, FlawCount, Group, LedgerLine, PauseLine, Stacks, WindowFacts};
use super::flat::Shapes;
use super::spark::SparkWords;
use codec::{Reader, put, put_signed};
use emberscope_model::{LabelSet, SampleKind, StackEnd, Window};
use names::{ByAddress, Names};
use rounding::Rounding;
use std::collections::BTreeMap;

/// The windows since the last block.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub facts: Facts,
    pub stacks: Stacks,
    pub shapes: Shapes,
    pub ledger: Vec<LedgerLine>,
    /// Pauses of JVMs.
    pub pauses: Vec<PauseLine>,
    /// What Spark says of the applications.
    pub spark: SparkWords,
    /// Rows of each window, group after group.
    rows: Vec<Box<[u8]>>,
    /// Where each group's rows begin in those of its window, and how many they are.
    starts: Vec<(u32, u32)>,
    row_bytes: usize,
    text_bytes: usize,
    names: Names,
}

/// A row: a stack of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartRow {
    pub stack: u32,
    pub count: u64,
    pub weight: u64,
}

/// What a group's rows are of.
#[derive(Clone, Copy, Debug)]
struct GroupHead {
    set: u32,
    kind: SampleKind,
    period: u64,
    rows: u32,
}

/// A window without its rows' sums.
#[derive(Debug)]
struct Taken {
    window: WindowFacts,
    heads: Vec<GroupHead>,
    rows: Vec<u8>,
    ledger: Vec<LedgerLine>,
    pauses: Vec<PauseLine>,
}

impl Part {
    /// Takes a window. Out: its record for the journal.
    pub fn append(&mut self, window: &Window) -> Vec<u8> {
        let before = self.lengths();
        let taken = self.take(window);
        let record = self.window_record(&before, &taken);
        // What was written just now can be read.
        let pushed = self.push(taken);
        debug_assert!(pushed.is_ok());
        self.forget_addresses();
        record
    }

    /// Labels of a process became known late. Out: the record; None when the part has none of it.
    pub fn relabel(&mut self, from: &LabelSet, to: &LabelSet) -> Option<Vec<u8>> {
        let places = self.facts.labels.places_of(from);
        if places.is_empty() || from.is_of_process(to) {
            return None;
        }
        let before = self.lengths();
        let to = self.process(to);
        let record = self.relabel_record(&before, &places, to);
        self.move_to(&places, to);
        Some(record)
    }

    /// A process is not to be kept. Out: the record; None when the part has none of it.
    pub fn forget(&mut self, labels: &LabelSet) -> Option<Vec<u8>> {
        let places = self.facts.labels.places_of(labels);
        if places.is_empty() {
            return None;
        }
        let record = self.forget_record(&places);
        self.drop_processes(&places);
        Some(record)
    }

    fn move_to(&mut self, places: &[u32], to: u32) {
        let Some(pairs) = self.facts.labels.processes.get(to as usize).cloned() else { return };
        for place in places.iter().filter(|place| **place != to) {
            self.unname(*place);
            if let Some(process) = self.facts.labels.processes.get_mut(*place as usize) {
                process.clone_from(&pairs);
            }
        }
    }

    fn drop_processes(&mut self, places: &[u32]) {
        for place in places {
            self.unname(*place);
        }
        let labels = &mut self.facts.labels;
        for (set, forgotten) in labels.sets.iter().zip(&mut labels.forgotten) {
            *forgotten |= places.contains(&set.process);
        }
    }

    fn take(&mut self, window: &Window) -> Taken {
        let mut known = ByAddress::default();
        let mut rows: Vec<(u32, SampleKind, PartRow)> = Vec::with_capacity(window.rows.len());
        for row in &window.rows {
            let set = self.set(&row.labels, &mut known);
            let stack = self.stack(&row.stack, &mut known);
            rows.push((set, row.kind, PartRow { stack, count: row.count, weight: row.weight }));
        }
        rows.sort_unstable_by_key(|(set, kind, row)| (*set, *kind, row.stack));
        rows.dedup_by(|(set, kind, row), (kept_set, kept_kind, kept)| {
            let same = (*set, *kind, row.stack) == (*kept_set, *kept_kind, kept.stack);
            if same {
                kept.count = kept.count.saturating_add(row.count);
                kept.weight = kept.weight.saturating_add(row.weight);
            }
            same
        });
        let mut roundings: BTreeMap<SampleKind, Rounding> = BTreeMap::new();
        for (_, kind, row) in rows.iter_mut().filter(|(_, kind, _)| kind.facts().measured) {
            row.weight = roundings.entry(*kind).or_default().round(row.weight);
        }
        let (mut heads, mut bytes) = (Vec::new(), Vec::with_capacity(rows.len() * 3));
        for group in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let Some((set, kind, _)) = group.first().copied() else { continue };
            let period = period(group.iter().map(|(.., row)| row));
            heads.push(GroupHead { set, kind, period, rows: group.len() as u32 });
            let mut before = 0;
            for (_, _, row) in group {
                put(&mut bytes, u64::from(row.stack - before));
                before = row.stack;
                put_row(&mut bytes, row, period);
            }
        }
        let ledger = window.ledger.iter().map(|row| self.line(row, &mut known)).collect();
        let pauses = window.pauses.iter().map(|pause| self.pause(pause, &mut known)).collect();
        let records = window.processes.iter().map(|record| self.record(record, &mut known)).collect();
        let (range, partial, lost) = (window.range, window.partial, window.lost);
        let window = WindowFacts { range, partial, lost, records };
        Taken { window, heads, rows: bytes, ledger, pauses }
    }

    /// Adds a window whose names are all known; refuses one whose rows make no sense.
    fn push(&mut self, taken: Taken) -> Result<(), Malformed> {
        let number = self.facts.windows.len() as u32;
        let first = self.facts.groups.len();
        let mut reader = Reader(&taken.rows);
        let (mut groups, mut starts, mut flaws) = (Vec::new(), Vec::new(), Vec::new());
        for head in &taken.heads {
            let GroupHead { set, kind, period, rows } = *head;
            starts.push(((taken.rows.len() - reader.0.len()) as u32, rows));
            let mut group =
                Group { window: number, set, kind, period, count: 0, weight: 0, frames: 0, approximate: 0 };
            let place = (first + groups.len()) as u32;
            self.measure(&mut reader, rows, (&mut group, place), &mut flaws)?;
            groups.push(group);
        }
        if !reader.0.is_empty() {
            return Err(Malformed("a window has more rows than its groups"));
        }
        self.row_bytes += taken.rows.len();
        groups.into_iter().for_each(|group| self.facts.groups.push(group));
        self.facts.flaws.append(&mut flaws);
        self.starts.append(&mut starts);
        self.facts.windows.push(taken.window);
        self.rows.push(taken.rows.into());
        self.ledger.extend(taken.ledger);
        self.pauses.extend(taken.pauses);
        Ok(())
    }

    fn measure(
        &self,
        reader: &mut Reader<'_>,
        rows: u32,
        (group, place): (&mut Group, u32),
        flaws: &mut Vec<FlawCount>,
    ) -> Result<(), Malformed> {
        let first = flaws.len();
        let mut flaw =
            |flaw: Flaw, count: u64| match flaws.iter_mut().skip(first).find(|known| known.flaw == flaw) {
                Some(known) => known.count = known.count.saturating_add(count),
                None => flaws.push(FlawCount { group: place, flaw, count }),
            };
        let mut stack = 0_u32;
        for _ in 0..rows {
            let row = read_row(reader, &mut stack, group.period)?;
            let line = self.stacks.stacks.get(row.stack as usize).ok_or(Malformed("a row has no stack"))?;
            group.count = group.count.saturating_add(row.count);
            group.weight = group.weight.saturating_add(row.weight);
            group.frames = group.frames.saturating_add(row.count.saturating_mul(u64::from(line.depth)));
            group.approximate =
                group.approximate.saturating_add(if line.approximate { row.count } else { 0 });
            if line.end != StackEnd::Root {
                flaw(Flaw::End(line.end), row.count);
            }
            for (reason, times) in &line.unnamed {
                flaw(Flaw::Unnamed(*reason), row.count.saturating_mul(u64::from(*times)));
            }
        }
        Ok(())
    }

    /// The rows of a group, by stack.
    pub fn rows(&self, group: u32) -> impl Iterator<Item = PartRow> {
        let (place, groups) = (group as usize, &self.facts.groups);
        let found = self.starts.get(place);
        let bytes =
            found.and_then(|(start, _)| self.rows.get(groups.window(place) as usize)?.get(*start as usize..));
        let (rows, period) = (found.map_or(0, |(_, rows)| *rows), groups.period(place));
        let (mut reader, mut stack) = (Reader(bytes.unwrap_or_default()), 0);
        (0..rows).map_while(move |_| read_row(&mut reader, &mut stack, period).ok())
    }

    /// How many rows a group has.
    pub fn row_count(&self, group: u32) -> u32 {
        self.starts.get(group as usize).map_or(0, |(_, rows)| *rows)
    }

    /// Bytes of memory that the part takes, estimated.
    pub fn bytes(&self) -> usize {
        self.row_bytes
            + self.facts.groups.bytes()
            + self.starts.capacity() * 8
            + self.shapes.bytes()
            + self.facts.flaws.len() * size_of::<FlawCount>()
            + self.facts.windows.len() * (size_of::<WindowFacts>() + 16)
            + self.ledger.len() * size_of::<LedgerLine>()
            + self.pauses.len() * size_of::<PauseLine>()
            + self.named_bytes()
            + self.spark.bytes()
    }
}

/// What most samples of a group weigh; 0 where they weigh this and that, so that rows of like weights stay alike.
fn period<'a>(rows: impl Iterator<Item = &'a PartRow> + Clone) -> u64 {
    let each = rows.filter_map(|row| row.weight.checked_div(row.count));
    // Whatever more than half of them have is left when different ones were taken away in pairs (Boyer and Moore).
    let (likely, _) = each.clone().fold((0, 0_u64), |(likely, lead), weight| match lead {
        0 => (weight, 1),
        lead if weight == likely => (likely, lead + 1),
        lead => (likely, lead - 1),
    });
    let (of_it, all) =
        each.fold((0, 0_u64), |(of_it, all), weight| (of_it + u64::from(weight == likely), all + 1));
    if of_it * 2 > all { likely } else { 0 }
}

fn put_row(out: &mut Vec<u8>, row: &PartRow, period: u64) {
    let count = row.count.min(u64::MAX >> 1);
    let rest = row.weight.wrapping_sub(count.wrapping_mul(period)).cast_signed();
    put(out, count << 1 | u64::from(rest != 0));
    if rest != 0 {
        put_signed(out, rest);
    }
}

fn read_row(reader: &mut Reader<'_>, stack: &mut u32, period: u64) -> Result<PartRow, Malformed> {
    *stack = stack.checked_add(reader.small()?).ok_or(Malformed("a row has no stack"))?;
    let head = reader.number()?;
    let count = head >> 1;
    let rest = if head & 1 == 1 { reader.signed()?.cast_unsigned() } else { 0 };
    Ok(PartRow { stack: *stack, count, weight: count.wrapping_mul(period).wrapping_add(rest) })
}
