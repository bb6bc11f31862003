//! Reads a block's small tables into facts.
//!
//! Every reference is checked here, so that what uses them need not.

use super::super::super::facts::{
    Facts, Flaw, FlawCount, Group, Labels, NO_TEXT, Packed, Record, Set, THREAD_KEYS, TextId, WindowFacts,
};
use super::super::super::part::name_source;
use super::super::order::Lane;
use super::super::table::Room;
use super::super::*;
use super::Index;
use emberscope_model::{
    DropReason, JvmFacts, LabelKey, LostCounts, ProcessKey, ProcessRecord, SampleKind, StackEnd, TimeRange,
    UnknownReason, WallTime,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Texts of one column of `processes`: a process has some 200 bytes.
const MAX_COPIED: usize = 8 << 20;

pub(super) fn unknown(table: &str, word: &str) -> BlockProblem {
    BlockProblem::says(table, format!("has a kind or reason that is not known: {word:?}"))
}

/// Texts, one of each.
#[derive(Default)]
pub(super) struct Texts {
    all: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextId>,
    /// The last one, which most often comes again.
    last: TextId,
}

impl Texts {
    fn id(&mut self, text: Option<&str>) -> TextId {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return NO_TEXT };
        if self.all.get((self.last as usize).wrapping_sub(1)).is_some_and(|last| **last == *text) {
            return self.last;
        }
        self.last = match self.ids.get(text) {
            Some(id) => *id,
            None => {
                let shared: Arc<str> = text.into();
                self.all.push(shared.clone());
                self.ids.insert(shared, self.all.len() as TextId);
                self.all.len() as TextId
            }
        };
        self.last
    }

    pub fn shared(&mut self, text: &str) -> Arc<str> {
        let id = self.id(Some(text));
        self.all.get((id as usize).wrapping_sub(1)).cloned().unwrap_or_default()
    }
}

/// Everything but stacks, rows and ledger.
pub(super) fn index(block: &Block, room: &Room) -> Result<Index, BlockProblem> {
    let labels = labels(block, room)?;
    let windows = windows(block, room)?;
    let mut facts = Facts { labels, windows, ..Facts::default() };
    let (lane_of, lanes) = groups(block, room, &mut facts)?;
    flaws(block, room, &mut facts)?;
    processes(block, room, &mut facts)?;
    Ok(Index { facts, lane_of, lanes })
}

fn labels(block: &Block, room: &Room) -> Result<Labels, BlockProblem> {
    let table = block.table(LABEL_SETS, room)?;
    let of_sets = table.all_ints("process_number")?;
    let mut processes: Vec<Vec<(LabelKey, TextId)>> = Vec::new();
    let mut sets: Vec<Set> = Vec::with_capacity(of_sets.len());
    // Processes get places of their own, in the order in which they come.
    let mut places: HashMap<u32, u32> = HashMap::new();
    let mut first: Vec<bool> = Vec::with_capacity(of_sets.len());
    for process in of_sets {
        let next = places.len() as u32;
        let place = *places.entry(process).or_insert(next);
        first.push(place as usize == processes.len());
        if place as usize == processes.len() {
            processes.push(Vec::new());
        }
        sets.push(Set { process: place, thread: [NO_TEXT; THREAD_KEYS.len()] });
    }
    let mut texts = Texts::default();
    // A label that is younger than the block is set nowhere in it.
    for key in LabelKey::ALL.iter().filter(|key| table.has(key.name())) {
        let thread = THREAD_KEYS.iter().position(|thread| thread == key);
        let mut row = 0;
        table.all_texts(key.name(), |text| {
            match (thread, sets.get_mut(row)) {
                (Some(place), Some(set)) => {
                    let id = texts.id(text);
                    if let Some(slot) = set.thread.get_mut(place) {
                        *slot = id;
                    }
                }
                (None, Some(set)) if first.get(row) == Some(&true) => {
                    let id = texts.id(text);
                    if let Some(pairs) = processes.get_mut(set.process as usize).filter(|_| id != NO_TEXT) {
                        pairs.push((*key, id));
                    }
                }
                _ => {}
            }
            row += 1;
        })?;
    }
    let forgotten = table.all_bools("forgotten")?;
    let processes = processes.into_iter().map(Vec::into_boxed_slice).collect();
    Ok(Labels { texts: texts.all, processes, sets, forgotten })
}

fn windows(block: &Block, room: &Room) -> Result<Vec<WindowFacts>, BlockProblem> {
    let table = block.table(WINDOWS, room)?;
    let from = table.all_longs("from_ns")?;
    let until = table.all_longs("until_ns")?;
    let partial = table.all_bools("partial")?;
    // Times are rounded up: there is room behind them.
    if from.iter().zip(&until).any(|(from, until)| from > until || *until > i64::MAX.cast_unsigned()) {
        return Err(BlockProblem::says(WINDOWS, "has windows that end before they begin".to_owned()));
    }
    let window = |((from, until), partial)| WindowFacts {
        range: TimeRange { from: WallTime(from), until: WallTime(until) },
        partial,
        lost: LostCounts::default(),
        records: Vec::new(),
    };
    let mut windows: Vec<WindowFacts> = from.into_iter().zip(until).zip(partial).map(window).collect();
    let table = block.table(LOST, room)?;
    let of = table.all_places("window", windows.len())?;
    let counts = table.all_longs("count")?;
    let reasons = slugs(&table, "reason", DropReason::ALL, DropReason::slug)?;
    for ((window, reason), count) in of.into_iter().zip(reasons).zip(counts) {
        let lost = windows.get_mut(window as usize).and_then(|w| w.lost.0.get_mut(reason as usize));
        if let Some(lost) = lost {
            *lost = count;
        }
    }
    Ok(windows)
}

pub(super) fn slugs<T: Copy>(
    table: &super::super::table::TableReader<bytes::Bytes>,
    column: &'static str,
    all: &[T],
    slug: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, BlockProblem> {
    let (mut out, mut problem) = (Vec::new(), None);
    let mut last: Option<T> = None;
    table.all_texts(column, |text| {
        let text = text.unwrap_or_default();
        if last.is_none_or(|last| slug(last) != text) {
            last = all.iter().copied().find(|known| slug(*known) == text);
        }
        match last {
            Some(value) => out.push(value),
            None => problem = Some(unknown(column, text)),
        }
    })?;
    problem.map_or(Ok(out), Err)
}

fn groups(block: &Block, room: &Room, facts: &mut Facts) -> Result<(Packed, Vec<Lane>), BlockProblem> {
    let table = block.table(LANES, room)?;
    let scopes = table.all_ints("scope")?;
    let (rows, merged) = (table.all_longs("rows")?, table.all_longs("merged")?);
    let periods = table.all_longs("period")?;
    let lanes: Vec<Lane> = scopes
        .into_iter()
        .zip(rows.into_iter().zip(merged).zip(periods))
        .map(|(scope, ((rows, merged), period))| Lane { scope, rows, merged, period })
        .collect();
    // Places of rows are sums of these.
    for of in [|lane: &Lane| lane.rows, |lane: &Lane| lane.merged] {
        if lanes.iter().map(of).try_fold(0, u64::checked_add).is_none() {
            return Err(BlockProblem::says(LANES, "has more rows than there can be".to_owned()));
        }
    }
    let table = block.table(GROUPS, room)?;
    let lane_of = table.all_places("lane", lanes.len())?;
    let sets = table.all_places("label_set", facts.labels.sets.len())?;
    let windows = table.all_places("window", facts.windows.len())?;
    let kinds = slugs(&table, "kind", SampleKind::ALL, SampleKind::slug)?;
    let (periods, counts) = (table.all_longs("period")?, table.all_longs("count")?);
    let (rests, frames) = (table.all_longs("rest")?, table.all_longs("frames")?);
    let approximate = table.all_longs("approximate")?;
    let group = |((((set, window), kind), (period, count)), ((rest, frames), approximate))| Group {
        window,
        set,
        kind,
        period,
        count,
        weight: u64::wrapping_add(u64::wrapping_mul(count, period), rest),
        frames,
        approximate,
    };
    facts.groups = (sets.into_iter().zip(windows).zip(kinds).zip(periods.into_iter().zip(counts)))
        .zip(rests.into_iter().zip(frames).zip(approximate))
        .map(group)
        .collect();
    Ok((lane_of.into_iter().map(u64::from).collect(), lanes))
}

fn flaws(block: &Block, room: &Room, facts: &mut Facts) -> Result<(), BlockProblem> {
    let table = block.table(FLAWS, room)?;
    let groups = table.all_places("group", facts.groups.len())?;
    let counts = table.all_longs("count")?;
    let mut ends = Vec::with_capacity(groups.len());
    table.all_texts("flaw", |flaw| ends.push(flaw == Some("end")))?;
    let (mut flaws, mut problem, mut row) = (Vec::with_capacity(groups.len()), None, 0);
    table.all_texts("reason", |reason| {
        let reason = reason.unwrap_or_default();
        let flaw = match ends.get(row) {
            Some(true) => StackEnd::ALL.iter().find(|end| end.slug() == reason).map(|end| Flaw::End(*end)),
            _ => UnknownReason::from_slug(reason).map(Flaw::Unnamed),
        };
        row += 1;
        match flaw {
            Some(flaw) => flaws.push(flaw),
            None => problem = Some(unknown(FLAWS, reason)),
        }
    })?;
    if let Some(problem) = problem {
        return Err(problem);
    }
    let counted = groups.into_iter().zip(flaws).zip(counts);
    facts.flaws = counted.map(|((group, flaw), count)| FlawCount { group, flaw, count }).collect();
    Ok(())
}

/// Texts of a column that may have none.
fn maybe(
    table: &super::super::table::TableReader<bytes::Bytes>,
    column: &'static str,
) -> Result<Vec<Option<String>>, BlockProblem> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    table.all_texts(column, |text| {
        bytes += text.map_or(0, str::len);
        // Each row has a copy of its own: a short dictionary can be long texts.
        all.push(text.filter(|_| bytes <= MAX_COPIED).map(str::to_owned));
    })?;
    match bytes > MAX_COPIED {
        true => Err(BlockProblem::says(PROCESSES, format!("has too much text in {column}"))),
        false => Ok(all),
    }
}

fn processes(block: &Block, room: &Room, facts: &mut Facts) -> Result<(), BlockProblem> {
    let table = block.table(PROCESSES, room)?;
    let sets = table.all_places("label_set", facts.labels.sets.len())?;
    let (pids, starts) = (table.all_longs("pid")?, table.all_longs("start_ticks")?);
    let cores = table.all_longs("cores")?;
    let (hosts, programs) = (maybe(&table, "host")?, maybe(&table, "program")?);
    let (versions, names) = (maybe(&table, "jvm_version")?, maybe(&table, "jvm_names")?);
    let says = maybe(&table, "jvm_names_say")?;
    let jvms = versions.into_iter().zip(names).zip(says).map(|((version, slug), says)| {
        let Some(slug) = slug else { return Ok(None) };
        let names = name_source(&slug, says.unwrap_or_default()).ok_or_else(|| unknown(PROCESSES, &slug))?;
        Ok(Some(JvmFacts { version: version.unwrap_or_default(), names }))
    });
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let records = (sets.into_iter().zip(pids.into_iter().zip(starts)))
        .zip(hosts.into_iter().zip(programs))
        .zip(cores.into_iter().zip(jvms));
    let records = records.map(|(((set, (pid, start_ticks)), (host, program)), (cores, jvm))| {
        let process = ProcessRecord {
            key: ProcessKey { pid: small(pid), start_ticks },
            labels: Arc::default(),
            host: host.unwrap_or_default(),
            cores: small(cores),
            program: program.unwrap_or_default(),
            jvm: jvm?,
        };
        Ok(Record { set, process })
    });
    facts.records = records.collect::<Result<_, BlockProblem>>()?;
    let table = block.table(PROCESS_WINDOWS, room)?;
    let records = table.all_places("record", facts.records.len())?;
    let windows = table.all_places("window", facts.windows.len())?;
    for (record, window) in records.into_iter().zip(windows) {
        if let Some(window) = facts.windows.get_mut(window as usize) {
            window.records.push(record);
        }
    }
    Ok(())
}
