//! Writes a block: aside, then all of it to the disk, then its name.
//!
//! In: a part that no longer changes. Out: a directory `blocks/FROM-PART` with its tables and manifest. A
//! kill at any moment leaves a directory whose name begins with a dot, which the next start removes, or
//! the whole block.

use super::super::part::Part;
use super::manifest::{FileFacts, ImportFacts, NAME};
use super::order::{Lane, Order};
use super::table::{Column, to_bytes};
use super::*;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

mod names;
mod pauses;
mod people;
mod samples;
mod spark;

pub(super) use names::label_set_columns;
pub(super) use pauses::pause_lines;
pub(super) use people::{LEDGER_COLUMNS, ledger_lines, process_windows, windows};
pub(super) use samples::{ROW_GROUP, group_tables, lanes, row_columns};

/// The directory of a block.
pub(crate) fn name_of(part: u64, from_ns: u64) -> String {
    let from = jiff::Timestamp::from_second((from_ns / 1_000_000_000) as i64);
    let from = from.map(|t| t.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_else(|_| from_ns.to_string());
    format!("{from}-{part:012}")
}

/// Where a part's windows are from, where that is no journal of this store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The file that was imported.
    pub import: Option<ImportFacts>,
    /// Blocks that the new one takes the place of: their names, with the CRC-32 of their manifests.
    pub merged: BTreeMap<String, u32>,
    /// The length of their windows, nanoseconds, where these were made coarser.
    pub window_ns: Option<u64>,
}

/// Writes a part as a block into `dir`. None: nothing is in it.
pub(crate) fn write(
    part: &Part,
    number: u64,
    dir: &Path,
    sync: bool,
    origin: Origin,
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
    let mut files = Files { dir: &aside, suffix: String::new(), sync, files: BTreeMap::new() };
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
        window_ns: origin.window_ns,
        import: origin.import,
        merged: origin.merged,
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

pub(crate) fn sync_dir(dir: &Path, sync: bool) -> io::Result<()> {
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
    /// What follows a table's name: empty, or `-2` and so on where it was written before.
    pub suffix: String,
    pub sync: bool,
    pub files: BTreeMap<String, FileFacts>,
}

/// A file that is written, with the length and checksum of what went into it.
pub(super) struct Summed {
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
    ///
    /// # Errors
    /// [`BlockError::Table`]: the columns make no table. [`BlockError::Io`]: the file cannot be made, written or
    /// flushed. It is not among [`Self::files`] then.
    pub fn table(&mut self, table: &str, columns: &[Column]) -> Result<(), BlockError> {
        let file = self.name(table);
        let path = self.dir.join(&file);
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
        self.files.insert(file, facts);
        Ok(())
    }

    fn name(&self, table: &str) -> String {
        format!("{table}{}.parquet", self.suffix)
    }

    /// Makes the file of a large table, which [`Self::close`] ends. Out: its path, and what takes its bytes.
    ///
    /// # Errors
    /// [`BlockError::Io`]: the file cannot be made.
    pub fn open(&self, name: &str) -> Result<(PathBuf, Summed), BlockError> {
        let path = self.dir.join(self.name(name));
        let file = create(&path);
        let file = file.map_err(|source| BlockError::Io { what: "write", path: path.clone(), source })?;
        let facts = FileFacts { bytes: 0, crc32: 0 };
        Ok((path, Summed { file: io::BufWriter::new(file), facts, sum: crc32fast::Hasher::new() }))
    }

    /// Ends the file of a large table and adds it to [`Self::files`].
    ///
    /// # Errors
    /// [`BlockError::Io`]: the last bytes cannot be written or flushed. The file is not among [`Self::files`] then.
    pub fn close(&mut self, name: &str, path: &Path, summed: Summed) -> Result<(), BlockError> {
        let closed = summed.file.into_inner().map_err(|e| e.into_error()).and_then(|file| match self.sync {
            true => file.sync_all(),
            false => Ok(()),
        });
        closed.map_err(|source| BlockError::Io { what: "write", path: path.to_owned(), source })?;
        let facts = FileFacts { crc32: summed.sum.finalize(), ..summed.facts };
        self.files.insert(self.name(name), facts);
        Ok(())
    }
}

/// Writes all tables. Out: how many rows and samples there are.
fn tables(part: &Part, files: &mut Files<'_>) -> Result<(u64, u64), BlockError> {
    let order = Order::of(part);
    let merged = samples::samples(part, &order, files)?;
    let lanes = order.lanes.iter().zip(merged);
    let lanes = lanes.map(|(lane, merged)| Lane { merged, ..*lane });
    samples::lanes(&lanes.collect::<Vec<_>>(), files)?;
    samples::groups(part, &order, files)?;
    people::windows(&part.facts.windows, files)?;
    names::label_sets(part, &order, files)?;
    names::stacks(part, &order, files)?;
    people::processes(part, &order, files)?;
    people::ledger(part, &order, files)?;
    pauses::pauses(part, &order, files)?;
    spark::facts(part, files)?;
    let samples = order.groups.iter().filter_map(|place| part.facts.groups.get(*place as usize));
    Ok((order.lanes.iter().map(|lane| lane.rows).sum(), samples.map(|group| group.count).sum()))
}
