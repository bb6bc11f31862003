//! Writes a block: aside, then all of it to the disk, then its name.
//!
//! In: a part that no longer changes. Out: a directory `blocks/FROM-PART` with its tables and manifest. A
//! kill at any moment leaves a directory whose name begins with a dot, which the next start removes, or
//! the whole block.

use super::super::facts::{Flaw, Labels};
use super::super::part::{Part, numbers};
use super::manifest::{FileFacts, NAME};
use super::order::{NOWHERE, Order};
use super::rows::{Row, Scopes};
use super::table::{Column, How, TableWriter, to_bytes};
use super::*;
use crate::model::{DropReason, LabelKey, LedgerSums};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// Rows that are handed to a file at once, at least: its row groups.
const ROW_GROUP: usize = 512 << 10;

/// The directory of a block.
pub(in crate::store) fn name_of(part: u64, from_ns: u64) -> String {
    let from = jiff::Timestamp::from_second((from_ns / 1_000_000_000) as i64);
    let from = from.map(|t| t.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_else(|_| from_ns.to_string());
    format!("{from}-{part:012}")
}

/// Writes a part as a block into `dir`. None: nothing is in it.
pub(in crate::store) fn write(
    part: &Part,
    number: u64,
    dir: &Path,
    sync: bool,
) -> Result<Option<(PathBuf, Manifest)>, BlockError> {
    let Some(range) = part.facts.span() else { return Ok(None) };
    let name = name_of(number, range.from.0);
    let aside = dir.join(format!(".{name}"));
    let whole = dir.join(&name);
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| BlockError::Io { what, path, source }
    };
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &aside)(error)),
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(&aside).map_err(failed("make", &aside))?;
    let mut files = Files { dir: &aside, sync, files: BTreeMap::new() };
    let written = tables(part, &mut files);
    let (rows, samples) = match written {
        Ok(sums) => sums,
        Err(error) => {
            // What cannot be written now is written whole another time.
            let _ = fs::remove_dir_all(&aside);
            return Err(error);
        }
    };
    let manifest = Manifest {
        format: FORMAT,
        program: concat!("emberscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        part: number,
        from_ns: range.from.0,
        until_ns: range.until.0,
        windows: part.facts.windows.len() as u64,
        rows,
        samples,
        files: files.files,
    };
    let finish = || {
        write_manifest(&aside, &manifest, sync)?;
        sync_dir(&aside, sync)?;
        fs::rename(&aside, &whole)?;
        sync_dir(dir, sync)
    };
    if let Err(source) = finish() {
        let _ = fs::remove_dir_all(&aside);
        return Err(failed("finish", &whole)(source));
    }
    Ok(Some((whole, manifest)))
}

fn sync_dir(dir: &Path, sync: bool) -> io::Result<()> {
    if sync { File::open(dir)?.sync_all() } else { Ok(()) }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Writes a block's manifest, aside and then renamed.
pub(super) fn write_manifest(dir: &Path, manifest: &Manifest, sync: bool) -> io::Result<()> {
    let aside = dir.join(".manifest");
    let mut file = create(&aside)?;
    file.write_all(&serde_json::to_vec_pretty(manifest)?)?;
    if sync {
        file.sync_all()?;
    }
    fs::rename(&aside, dir.join(NAME))
}

/// Files of a block in the making.
pub(super) struct Files<'a> {
    pub dir: &'a Path,
    pub sync: bool,
    pub files: BTreeMap<String, FileFacts>,
}

/// A file, and what went into it.
struct Summed {
    file: io::BufWriter<File>,
    facts: FileFacts,
    sum: crc32fast::Hasher,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or_default());
        self.facts.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Files<'_> {
    /// Writes a small table.
    pub fn table(&mut self, table: &str, columns: &[Column]) -> Result<(), BlockError> {
        let file = format!("{table}.parquet");
        self.table_as(&file, table, columns)
    }

    /// Writes a small table under another name.
    pub fn table_as(&mut self, file: &str, table: &str, columns: &[Column]) -> Result<(), BlockError> {
        let path = self.dir.join(file);
        let says = |says: parquet::errors::ParquetError| BlockError::Table {
            path: path.clone(),
            says: says.to_string(),
        };
        let bytes = to_bytes(table, FORMAT, columns).map_err(says)?;
        let written = create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            if self.sync { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|source| BlockError::Io { what: "write", path: path.clone(), source })?;
        let facts = FileFacts { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) };
        self.files.insert(file.to_owned(), facts);
        Ok(())
    }

    fn open(&self, name: &str) -> Result<(PathBuf, Summed), BlockError> {
        let path = self.dir.join(format!("{name}.parquet"));
        let file = create(&path);
        let file = file.map_err(|source| BlockError::Io { what: "write", path: path.clone(), source })?;
        let facts = FileFacts { bytes: 0, crc32: 0 };
        Ok((path, Summed { file: io::BufWriter::new(file), facts, sum: crc32fast::Hasher::new() }))
    }

    fn close(&mut self, name: &str, path: &Path, summed: Summed) -> Result<(), BlockError> {
        let closed = summed.file.into_inner().map_err(|e| e.into_error()).and_then(|file| match self.sync {
            true => file.sync_all(),
            false => Ok(()),
        });
        closed.map_err(|source| BlockError::Io { what: "write", path: path.to_owned(), source })?;
        let facts = FileFacts { crc32: summed.sum.finalize(), ..summed.facts };
        self.files.insert(format!("{name}.parquet"), facts);
        Ok(())
    }
}

/// Rows and samples.
fn tables(part: &Part, files: &mut Files<'_>) -> Result<(u64, u64), BlockError> {
    let order = Order::of(part);
    let merged = samples(part, &order, files)?;
    lanes(&order, &merged, files)?;
    groups(part, &order, files)?;
    windows(part, files)?;
    label_sets(part, &order, files)?;
    stacks(part, &order, files)?;
    processes(part, &order, files)?;
    ledger(part, &order, files)?;
    let samples = order.groups.iter().filter_map(|place| part.facts.groups.get(*place as usize));
    Ok((order.lanes.iter().map(|lane| lane.rows).sum(), samples.map(|group| group.count).sum()))
}

fn row_columns(place: &'static str, rows: &[Row]) -> [Column; 4] {
    [
        Column::int(place, How::Delta, rows.iter().map(|row| row.place)),
        Column::int("stack", How::Delta, rows.iter().map(|row| row.stack)),
        Column::long("count", How::Delta, rows.iter().map(|row| row.count)),
        Column::long("rest", How::Delta, rows.iter().map(|row| row.rest)),
    ]
}

/// Writes rows and their sums by lane; how many sums each lane has.
fn samples(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<Vec<u64>, BlockError> {
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

fn lanes(order: &Order, merged: &[u64], files: &mut Files<'_>) -> Result<(), BlockError> {
    files.table(
        LANES,
        &[
            Column::int("lane", How::Delta, 0..order.lanes.len() as u32),
            Column::int("scope", How::Delta, order.lanes.iter().map(|lane| lane.scope)),
            Column::long("rows", How::Delta, order.lanes.iter().map(|lane| lane.rows)),
            Column::long("merged", How::Delta, merged.iter().copied()),
            Column::long("period", How::Dictionary, order.lanes.iter().map(|lane| lane.period)),
        ],
    )
}

fn groups(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let facts = &part.facts;
    let groups = || order.groups.iter().filter_map(|place| facts.groups.get(*place as usize));
    let set = |set: u32| order.set_of.get(set as usize).copied().unwrap_or_default();
    files.table(
        GROUPS,
        &[
            Column::int("group", How::Delta, 0..order.groups.len() as u32),
            Column::int("lane", How::Delta, order.lane_of.iter().copied()),
            Column::int("label_set", How::Delta, groups().map(|group| set(group.set))),
            Column::int("window", How::Delta, groups().map(|group| group.window)),
            Column::text("kind", How::Dictionary, groups().map(|group| group.kind.slug())),
            Column::long("period", How::Dictionary, groups().map(|group| group.period)),
            Column::long("count", How::Delta, groups().map(|group| group.count)),
            Column::long(
                "rest",
                How::Delta,
                groups().map(|group| group.weight.wrapping_sub(group.count.wrapping_mul(group.period))),
            ),
            Column::long("frames", How::Delta, groups().map(|group| group.frames)),
            Column::long("approximate", How::Delta, groups().map(|group| group.approximate)),
        ],
    )?;
    let group = |group: u32| order.group_of.get(group as usize).copied().filter(|g| *g != NOWHERE);
    let mut flaws: Vec<(Flaw, u32, u64)> =
        facts.flaws.iter().filter_map(|flaw| Some((flaw.flaw, group(flaw.group)?, flaw.count))).collect();
    flaws.sort_unstable_by_key(|(flaw, group, _)| (*flaw, *group));
    let (what, why): (Vec<_>, Vec<_>) = flaws
        .iter()
        .map(|(flaw, ..)| match flaw {
            Flaw::End(end) => ("end", end.slug()),
            Flaw::Unnamed(reason) => ("unnamed", reason.slug()),
        })
        .unzip();
    files.table(
        FLAWS,
        &[
            Column::int("group", How::Delta, flaws.iter().map(|(_, group, _)| *group)),
            Column::text("flaw", How::Dictionary, what),
            Column::text("reason", How::Dictionary, why),
            Column::long("count", How::Delta, flaws.iter().map(|(.., count)| *count)),
        ],
    )
}

fn windows(part: &Part, files: &mut Files<'_>) -> Result<(), BlockError> {
    let windows = &part.facts.windows;
    files.table(
        WINDOWS,
        &[
            Column::int("window", How::Delta, 0..windows.len() as u32),
            Column::long("from_ns", How::Delta, windows.iter().map(|window| window.range.from.0)),
            Column::long("until_ns", How::Delta, windows.iter().map(|window| window.range.until.0)),
            Column::bool("partial", windows.iter().map(|window| window.partial)),
        ],
    )?;
    let lost: Vec<(u32, DropReason, u64)> = (windows.iter().enumerate())
        .flat_map(|(place, window)| {
            DropReason::ALL.iter().map(move |reason| (place as u32, *reason, window.lost.get(*reason)))
        })
        .filter(|(.., count)| *count > 0)
        .collect();
    files.table(
        LOST,
        &[
            Column::int("window", How::Delta, lost.iter().map(|(window, ..)| *window)),
            Column::text("reason", How::Dictionary, lost.iter().map(|(_, reason, _)| reason.slug())),
            Column::long("count", How::Delta, lost.iter().map(|(.., count)| *count)),
        ],
    )
}

fn label_sets(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    files.table(LABEL_SETS, &label_set_columns(&part.facts.labels, &order.sets))
}

/// The table of some label sets, in that order.
pub(super) fn label_set_columns(labels: &Labels, sets: &[u32]) -> Vec<Column> {
    let sets = || sets.iter().copied();
    let process = |set: u32| labels.sets.get(set as usize).map_or(0, |set| set.process);
    let mut columns = vec![
        Column::int("label_set", How::Delta, 0..sets().len() as u32),
        Column::int("process_number", How::Dictionary, sets().map(process)),
        Column::bool("forgotten", sets().map(|set| labels.forgotten.get(set as usize) == Some(&true))),
    ];
    for key in LabelKey::ALL {
        // Those of which every task has another.
        let how = match key {
            LabelKey::Task | LabelKey::TaskIndex => How::Front,
            _ => How::Dictionary,
        };
        let text = |set: u32| labels.shared(labels.value(set, *key)).map(|text| &**text);
        columns.push(Column::maybe(key.name(), how, sets().map(text)));
    }
    columns
}

fn stacks(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let stacks = &part.stacks;
    let lines = || order.stacks.iter().filter_map(|place| stacks.stacks.get(*place as usize));
    let new = |list: &[u32], old: u32| list.get(old as usize).copied().unwrap_or_default();
    files.table(
        STACKS,
        &[
            Column::int("stack", How::Delta, 0..order.stacks.len() as u32),
            Column::int("node", How::Delta, lines().map(|line| new(&order.node_of, line.node))),
            Column::text("end", How::Dictionary, lines().map(|line| line.end.slug())),
        ],
    )?;
    let nodes = || order.nodes.iter().skip(1).filter_map(|place| stacks.nodes.get(*place as usize));
    files.table(
        NODES,
        &[
            Column::int("node", How::Delta, 1..order.nodes.len() as u32),
            Column::int("up", How::Plain, order.ups.iter().skip(1).copied()),
            Column::int("frame", How::Plain, nodes().map(|node| new(&order.frame_of, node.frame))),
        ],
    )?;
    let frames = || order.frames.iter().filter_map(|place| stacks.frames.get(*place as usize));
    files.table(
        FRAMES,
        &[
            Column::int("frame", How::Delta, 0..order.frames.len() as u32),
            Column::text("kind", How::Dictionary, frames().map(|frame| frame.kind.slug())),
            Column::text("name", How::Front, frames().map(|frame| &*frame.name)),
            Column::text("module", How::Dictionary, frames().map(|frame| &*frame.module)),
            Column::maybe("signature", How::Dictionary, frames().map(|frame| frame.signature.as_deref())),
            Column::int("line", How::Plain, frames().map(|frame| frame.line)),
            Column::bool("approximate", frames().map(|frame| frame.approximate)),
            Column::maybe(
                "unknown",
                How::Dictionary,
                frames().map(|f| f.unknown.map(|reason| reason.slug())),
            ),
        ],
    )
}

fn processes(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let facts = &part.facts;
    let set = |set: u32| order.set_of.get(set as usize).copied().filter(|set| *set != NOWHERE);
    let kept: Vec<usize> = (0..facts.records.len())
        .filter(|p| facts.records.get(*p).is_some_and(|r| set(r.set).is_some()))
        .collect();
    let records = || kept.iter().filter_map(|place| facts.records.get(*place));
    let jvm = || records().map(|record| record.process.jvm.as_ref());
    files.table(
        PROCESSES,
        &[
            Column::int("record", How::Delta, 0..kept.len() as u32),
            Column::int("label_set", How::Plain, records().filter_map(|record| set(record.set))),
            Column::long("pid", How::Plain, records().map(|record| record.process.key.pid.into())),
            Column::long("start_ticks", How::Plain, records().map(|record| record.process.key.start_ticks)),
            Column::text("host", How::Dictionary, records().map(|record| &*record.process.host)),
            Column::long("cores", How::Dictionary, records().map(|record| record.process.cores.into())),
            Column::text("program", How::Dictionary, records().map(|record| &*record.process.program)),
            Column::maybe("jvm_version", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| &*jvm.version))),
            Column::maybe("jvm_names", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| jvm.names.slug()))),
            Column::maybe("jvm_names_say", How::Dictionary, jvm().map(|jvm| jvm.map(|jvm| jvm.names.says()))),
        ],
    )?;
    let mut new = vec![NOWHERE; facts.records.len()];
    for (place, old) in kept.iter().enumerate() {
        if let Some(slot) = new.get_mut(*old) {
            *slot = place as u32;
        }
    }
    let mut seen: Vec<(u32, u32)> = (facts.windows.iter().enumerate())
        .flat_map(|(window, facts)| facts.records.iter().map(move |record| (*record, window as u32)))
        .filter_map(|(record, window)| Some((*new.get(record as usize)?, window)))
        .filter(|(record, _)| *record != NOWHERE)
        .collect();
    seen.sort_unstable();
    files.table(
        PROCESS_WINDOWS,
        &[
            Column::int("record", How::Delta, seen.iter().map(|(record, _)| *record)),
            Column::int("window", How::Delta, seen.iter().map(|(_, window)| *window)),
        ],
    )
}

fn ledger(part: &Part, order: &Order, files: &mut Files<'_>) -> Result<(), BlockError> {
    let set = |set: u32| order.set_of.get(set as usize).copied().filter(|set| *set != NOWHERE);
    let mut lines: Vec<_> = part.ledger.iter().filter_map(|line| Some((set(line.set)?, *line))).collect();
    lines.sort_by_key(|(set, line)| (*set, line.window));
    let mut columns = vec![
        Column::int("label_set", How::Delta, lines.iter().map(|(set, _)| *set)),
        Column::int("window", How::Delta, lines.iter().map(|(_, line)| line.window)),
    ];
    for (place, name) in LEDGER_COLUMNS.iter().enumerate() {
        let number = |sums: LedgerSums| {
            let mut sums = sums;
            numbers(&mut sums).into_iter().nth(place).map_or(0, |number| *number)
        };
        columns.push(Column::long(name, How::Delta, lines.iter().map(|(_, line)| number(line.sums))));
    }
    let from = |window: u32| part.facts.windows.get(window as usize).map_or(0, |window| window.range.from.0);
    columns.push(Column::long(
        "seen_after_ns",
        How::Delta,
        lines.iter().map(|(_, line)| line.seen.from.0.wrapping_sub(from(line.window))),
    ));
    columns.push(Column::long(
        "seen_for_ns",
        How::Delta,
        lines.iter().map(|(_, line)| line.seen.until.0.wrapping_sub(line.seen.from.0)),
    ));
    files.table(LEDGER, &columns)
}

/// Columns of the ledger's numbers, in the order of [`numbers`].
pub(super) const LEDGER_COLUMNS: [&str; 12] = [
    "cpu_ns",
    "run_delay_ns",
    "user_ns",
    "system_ns",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
    "wall_ns",
    "begun",
];
