//! The journal: each change of a part, appended to a file as it happens.
//!
//! In: records (`part`). Out: after a kill at any instruction, the part as it was after the last record
//! that reached the file whole. A file is a header of 24 bytes and records of length, CRC-32 and bytes;
//! docs/store.md has it exactly. A record is one write, and one fdatasync where that is asked for. What
//! follows the last whole record is cut off and counted.
//!
//! Limits: [`MAX_RECORD`] bytes a record, so that a torn length asks for no memory.

mod replay;

use super::part::Part;
pub(super) use replay::open;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"EMBERJNL";
/// The version of the format that is written and read.
pub(super) const VERSION: u32 = 1;
/// Magic, version, zero, number of the part, CRC-32 of these 20 bytes.
pub(super) const HEADER: usize = 24;
/// Bytes before each record: its length and CRC-32, four each.
pub(super) const FRAME: usize = 8;
/// A window of 64 cores is some 100 KB.
const MAX_RECORD: usize = 64 << 20;

/// When what was written is asked to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// After each window: a power cut costs at most the open window.
    Window,
    /// By the kernel's own time (some 30 s): a power cut may cost these. A kill costs nothing.
    Never,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Opening, reading or cutting failed.
    #[error("cannot {what} the journal {}", path.display())]
    Io {
        /// The operation, as a verb: `open`.
        what: &'static str,
        /// Path of the journal.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The journal is of a format that this version does not know.
    #[error(
        "{} is a journal of format {found}, and this program knows format {VERSION}: start the version that \
         wrote it, or move the file away",
        path.display()
    )]
    Version {
        /// Path of the journal.
        path: PathBuf,
        /// The format that its header names.
        found: u32,
    },
    /// The file does not begin as a journal does.
    #[error("{} is no journal", path.display())]
    Foreign {
        /// Path of the journal.
        path: PathBuf,
    },
}

/// A journal file that is written to.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    length: u64,
    fsync: Fsync,
    /// The last write may have left something behind `length`.
    torn: bool,
}

/// A journal file, read.
#[derive(Debug)]
pub(super) struct Opened {
    pub segment: Segment,
    pub part: Part,
    /// Bytes behind the last whole record, cut off.
    pub cut: u64,
    /// More than one torn record was cut: the file as it was is kept here.
    pub kept: Option<PathBuf>,
}

/// The file of a part.
pub(super) fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:012}.journal"))
}

/// The number of a part by its journal's file name.
pub(super) fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".journal")?.parse().ok()
}

impl Segment {
    /// Makes a part's file, empty but for its header.
    ///
    /// # Errors
    /// The file cannot be made, written or flushed; it is removed then.
    pub fn create(dir: &Path, number: u64, fsync: Fsync) -> io::Result<Self> {
        let path = path_of(dir, number);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let written = file.write_all(&header(number)).and_then(|()| match fsync {
            Fsync::Window => file.sync_all().and_then(|()| File::open(dir)?.sync_all()),
            Fsync::Never => Ok(()),
        });
        if let Err(error) = written {
            // An empty file is nothing; a torn header is read as nothing too.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { file, length: HEADER as u64, fsync, torn: false })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// `InvalidInput`: the record is empty or has more than [`MAX_RECORD`] bytes. Else the file cannot be written or
    /// flushed; it holds what it held before then, or will once the next write succeeds.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if record.is_empty() || record.len() > MAX_RECORD {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record's length is out of bounds"));
        }
        if self.torn {
            self.file.set_len(self.length)?;
            self.torn = false;
        }
        let mut frame = Vec::with_capacity(FRAME + record.len());
        let length = (record.len() as u32).to_le_bytes();
        frame.extend_from_slice(&length);
        frame.extend_from_slice(&checksum(&length, record).to_le_bytes());
        frame.extend_from_slice(record);
        self.torn = true;
        self.file.write_all_at(&frame, self.length)?;
        if self.fsync == Fsync::Window {
            self.file.sync_data()?;
        }
        self.torn = false;
        self.length += frame.len() as u64;
        Ok(())
    }

    /// A second descriptor of the file, to flush it while it is written to.
    ///
    /// # Errors
    /// There is no descriptor for a second one (dup(2)).
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Bytes of header and whole records.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Whether these are a header's bytes, of the version that is known.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    let version = bytes.get(8..12).and_then(|v| v.try_into().ok()).map(u32::from_le_bytes);
    let sum = bytes.last_chunk().copied().map(u32::from_le_bytes);
    bytes.len() == HEADER
        && bytes.starts_with(&MAGIC)
        && version == Some(VERSION)
        && sum == Some(crc32fast::hash(bytes.get(..HEADER - 4).unwrap_or_default()))
}

/// Whether a file is a journal of the version that is known.
pub(super) fn is_known(path: &Path) -> bool {
    let mut head = [0; HEADER];
    File::open(path).and_then(|file| file.read_exact_at(&mut head, 0)).is_ok() && is_header(&head)
}

/// The length of the record that begins with these bytes; None: it cannot be one.
pub(super) fn record_length(frame: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*frame.first_chunk()?) as usize;
    (length > 0 && length <= MAX_RECORD).then_some(length)
}

/// Whether these are a whole record, with its length and checksum.
pub(super) fn is_record(bytes: &[u8]) -> bool {
    let (Some(length), Some(sum)) = (bytes.first_chunk::<4>(), bytes.get(4..8).and_then(|s| s.first_chunk()))
    else {
        return false;
    };
    checksum(length, bytes.get(FRAME..).unwrap_or_default()) == u32::from_le_bytes(*sum)
}

fn header(number: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let mut at = out.as_mut_slice();
    // Writing into a slice fails only when it is full.
    let _ = at.write_all(&MAGIC);
    let _ = at.write_all(&VERSION.to_le_bytes());
    let _ = at.write_all(&number.to_le_bytes());
    let sum = crc32fast::hash(out.get(..HEADER - 4).unwrap_or_default());
    if let Some(place) = out.last_chunk_mut() {
        *place = sum.to_le_bytes();
    }
    out
}

fn checksum(length: &[u8; 4], record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(length);
    sum.update(record);
    sum.finalize()
}
