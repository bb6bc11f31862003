//! Files of a store, for what copies and reads them elsewhere.
//!
//! In: a store's directory, which a daemon may be writing to meanwhile. Out: its blocks (what their manifests
//! say), and whole records of its journals from any record's end on. What goes away meanwhile is no error but
//! `NotFound`. docs/store.md has the formats.
//!
//! Limits: a record that claims more than a journal's may have is the journal's end.

use super::block::{BlockError, MAX_MANIFEST, Manifest, name_of};
use super::journal;
use super::part::Part;
use emberscope_model::{TimeRange, WallTime};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file of a block that names the others.
pub const MANIFEST: &str = "manifest.json";

/// What a block's manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// Name of the block's directory: `20261122T080000Z-000000000006`.
    pub name: String,
    /// Number of the part that the block was made of; of a merged block that of the last part.
    pub part: u64,
    /// From the start of the block's first window to the end of the last one.
    pub range: TimeRange,
    /// How many windows the block has.
    pub windows: u64,
    /// The length of the windows, nanoseconds, where they were made coarser.
    pub window_ns: Option<u64>,
    /// Blocks that this one took the place of: their names, with the CRC-32 of their manifests.
    pub merged: BTreeMap<String, u32>,
    /// The block's files, with bytes and CRC-32; the manifest is none of them.
    pub files: Vec<(String, u64, u32)>,
    /// The bytes of the manifest.
    pub manifest: Vec<u8>,
}

impl BlockFacts {
    /// Reads the manifest of a block's directory.
    ///
    /// # Errors
    /// The manifest cannot be read; `InvalidData`: it makes no sense, or is of another format.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A byte more than a manifest may have is what tells that it has too many: the rest is not read.
        let mut manifest = Vec::new();
        File::open(dir.join(MANIFEST))?.take(MAX_MANIFEST + 1).read_to_end(&mut manifest)?;
        if manifest.len() as u64 > MAX_MANIFEST {
            let says = format!("{MANIFEST} has more than {} bytes", MAX_MANIFEST);
            return Err(io::Error::new(io::ErrorKind::InvalidData, says));
        }
        Self::of(name, manifest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    /// Reads a manifest's bytes; `name` is that of the block's directory.
    ///
    /// # Errors
    /// `BlockError::Damaged`: the bytes make no sense. `BlockError::Version`: they are of another format.
    pub fn of(name: &str, manifest: Vec<u8>) -> Result<Self, BlockError> {
        let known = Manifest::parse(Path::new(name), &String::from_utf8_lossy(&manifest))?;
        Ok(Self {
            name: name.to_owned(),
            part: known.part,
            range: known.range(),
            windows: known.windows,
            window_ns: known.window_ns,
            merged: known.merged,
            files: known.files.into_iter().map(|(name, file)| (name, file.bytes, file.crc32)).collect(),
            manifest,
        })
    }

    /// CRC-32 of the manifest: another one means that the block was changed.
    pub fn crc32(&self) -> u32 {
        crc32fast::hash(&self.manifest)
    }

    /// Bytes of all files, the manifest not counted.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes, _)| bytes).sum()
    }
}

/// Directories of a store's finished blocks, the oldest first.
///
/// # Errors
/// The directory `blocks` cannot be read; `NotFound`: there is none.
pub fn blocks_of(store: &Path) -> io::Result<Vec<PathBuf>> {
    let all = entries(&store.join("blocks"))?;
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    Ok(all.into_iter().filter(|path| !hidden(path)).collect())
}

/// A store's journals by the number of their part.
///
/// # Errors
/// The directory `journal` cannot be read; `NotFound`: there is none.
pub fn journals_of(store: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let all = entries(&store.join("journal"))?;
    Ok(all.into_iter().filter_map(|path| Some((journal::number_of(&path)?, path))).collect())
}

fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    all.sort();
    Ok(all)
}

/// A journal that may grow while it is read.
#[derive(Debug)]
pub struct JournalReader {
    file: File,
    part: u64,
}

impl JournalReader {
    /// Opens a journal.
    ///
    /// # Errors
    /// `InvalidInput`: the file's name is not that of a journal. Else the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let part = journal::number_of(path).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { file: File::open(path)?, part })
    }

    /// The start of the first window of a journal whose name may be any, where that can be read.
    pub(super) fn first_window(path: &Path) -> io::Result<Option<WallTime>> {
        Self { file: File::open(path)?, part: 0 }.begin()
    }

    /// The bytes from `from` (0, or where a record ended) to the end of a record: whole records, as many as fit into
    /// `most` and one at least; before the first the journal's header. None: there is no whole record yet.
    ///
    /// # Errors
    /// The file cannot be read. A record that is not whole or has a wrong checksum is no error but the end.
    pub fn records(&self, from: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
        let (mut out, mut at) = (Vec::new(), from);
        if from == 0 {
            let header = self.bytes(0, journal::HEADER)?;
            match header.filter(|header| journal::is_header(header)) {
                Some(header) => out = header,
                None => return Ok(None),
            }
            at = journal::HEADER as u64;
        }
        let mut records = 0;
        while let Some(record) = self.record(at)? {
            if records > 0 && out.len() + record.len() > most {
                break;
            }
            at += record.len() as u64;
            out.extend_from_slice(&record);
            records += 1;
        }
        Ok((records > 0).then_some(out))
    }

    /// The bytes from one offset to another, where the file still has them.
    ///
    /// # Errors
    /// The file cannot be read. That it is shorter is no error but None.
    pub fn range(&self, from: u64, until: u64) -> io::Result<Option<Vec<u8>>> {
        match usize::try_from(until.saturating_sub(from)) {
            Ok(length) => self.bytes(from, length),
            Err(_) => Ok(None),
        }
    }

    /// What the block of this journal will be called, told by its first window. None: it has none yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn block_name(&self) -> io::Result<Option<String>> {
        Ok(self.begin()?.map(|WallTime(from)| name_of(self.part, from)))
    }

    /// The start of the journal's first window.
    fn begin(&self) -> io::Result<Option<WallTime>> {
        let Some(record) = self.record(journal::HEADER as u64)? else { return Ok(None) };
        let mut part = Part::default();
        let read = part.replay(record.get(journal::FRAME..).unwrap_or_default());
        let first = part.facts.windows.first().map(|window| window.range.from);
        Ok(first.filter(|_| read.is_ok()))
    }

    /// A record with its length and checksum; None where no whole one is.
    fn record(&self, at: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(head) = self.bytes(at, journal::FRAME)? else { return Ok(None) };
        let Some(length) = journal::record_length(&head) else { return Ok(None) };
        let record = self.bytes(at, journal::FRAME + length)?;
        Ok(record.filter(|record| journal::is_record(record)))
    }

    fn bytes(&self, at: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        // Not more than the file has: a torn length asks for no memory.
        if self.file.metadata()?.len() < at.saturating_add(length as u64) {
            return Ok(None);
        }
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}
