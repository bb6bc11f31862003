//! The journal: each change of a part, appended to a file as it happens.
//!
//! In: records (`part`). Out: after a kill at any instruction, the part as it was after the last record
//! that reached the file whole. A file is a header of 24 bytes and records of length, CRC-32 and bytes;
//! docs/store.md has it exactly. A record is one write, and one fdatasync where that is asked for. What
//! follows the last whole record is cut off and counted.
//!
//! Limits: [`MAX_RECORD`] bytes a record, so that a torn length asks for no memory.

#[cfg(test)]
mod tests;

use super::part::Part;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"EMBERJNL";
/// The version of the format that is written and read.
pub(super) const VERSION: u32 = 1;
/// Magic, version, zero, number of the part, CRC-32 of these 20 bytes.
const HEADER: usize = 24;
/// Length and checksum.
const FRAME: usize = 8;
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
        /// What was tried.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another version wrote it.
    #[error(
        "{} is a journal of format {found}, and this program knows format {VERSION}: start the version that \
         wrote it, or move the file away",
        path.display()
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Not a journal.
    #[error("{} is no journal", path.display())]
    Foreign {
        /// Which file.
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
    /// A new file, empty but for its header.
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

    /// Appends a record. After an error the file holds what it held before, or will once the next write
    /// succeeds.
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

    /// The file, to be flushed while it is written on.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
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

/// Reads a file and opens it for appending. None: it was cut off within its header and holds nothing.
pub(super) fn open(path: &Path, fsync: Fsync) -> Result<Option<Opened>, JournalError> {
    let failed = |what, source| JournalError::Io { what, path: path.to_owned(), source };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| failed("open", e))?;
    let size = file.metadata().map_err(|e| failed("open", e))?.len();
    if !check_header(&file, path)? {
        return Ok(None);
    }
    let mut end = None;
    let (part, length) = loop {
        match replay(&file, end).map_err(|e| failed("read", e))? {
            Replayed::Whole(part, length) => break (part, length),
            // Its checksum is right and it makes no sense: read again, and stop before it.
            Replayed::Malformed(at) => end = Some(at),
        }
    };
    let kept = (length < size && goes_on(&file, length, size)).then(|| set_aside(path)).flatten();
    if length < size {
        file.set_len(length).map_err(|e| failed("cut", e))?;
    }
    let segment = Segment { file, length, fsync, torn: false };
    Ok(Some(Opened { segment, part: *part, cut: size - length, kept }))
}

/// False: the file ends within its header.
fn check_header(file: &File, path: &Path) -> Result<bool, JournalError> {
    let mut head = [0; HEADER];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(source) => return Err(JournalError::Io { what: "read", path: path.to_owned(), source }),
    }
    if head == [0; HEADER] {
        // A power cut can leave the length and not the bytes.
        return Ok(false);
    }
    let version = head.get(8..12).and_then(|v| v.try_into().ok()).map_or(0, u32::from_le_bytes);
    if !head.starts_with(&MAGIC) {
        return Err(JournalError::Foreign { path: path.to_owned() });
    }
    if version != VERSION {
        return Err(JournalError::Version { path: path.to_owned(), found: version });
    }
    let sum = head.last_chunk().copied().map_or(0, u32::from_le_bytes);
    match crc32fast::hash(head.get(..HEADER - 4).unwrap_or_default()) == sum {
        true => Ok(true),
        false => Err(JournalError::Foreign { path: path.to_owned() }),
    }
}

enum Replayed {
    /// All whole records, and where they end.
    Whole(Box<Part>, u64),
    /// The record that begins here makes no sense.
    Malformed(u64),
}

fn replay(file: &File, end: Option<u64>) -> io::Result<Replayed> {
    let mut reader = io::BufReader::with_capacity(256 << 10, file);
    reader.seek(SeekFrom::Start(HEADER as u64))?;
    let (mut part, mut at) = (Part::default(), HEADER as u64);
    let mut record = Vec::new();
    while end.is_none_or(|end| at < end) && read_record(&mut reader, &mut record)? {
        if part.replay(&record).is_err() {
            return Ok(Replayed::Malformed(at));
        }
        at += (FRAME + record.len()) as u64;
    }
    Ok(Replayed::Whole(Box::new(part), at))
}

/// False: what follows is no whole record.
fn read_record(reader: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut frame = [0; FRAME];
    if !filled(reader.read_exact(&mut frame))? {
        return Ok(false);
    }
    let (Some(length), Some(sum)) = (frame.first_chunk::<4>(), frame.last_chunk::<4>()) else {
        return Ok(false);
    };
    let bytes = u32::from_le_bytes(*length) as usize;
    if bytes == 0 || bytes > MAX_RECORD {
        return Ok(false);
    }
    record.clear();
    // Grows with what is there, not with what a torn length says.
    let read = reader.take(bytes as u64).read_to_end(record)?;
    Ok(read == bytes && checksum(length, record) == u32::from_le_bytes(*sum))
}

fn filled(read: io::Result<()>) -> io::Result<bool> {
    match read {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether anything lies behind the record that begins at `at`: then it is not the last, torn one.
fn goes_on(file: &File, at: u64, size: u64) -> bool {
    let mut length = [0; 4];
    match file.read_exact_at(&mut length, at) {
        Ok(()) => {
            let length = u64::from(u32::from_le_bytes(length));
            length > 0 && at + FRAME as u64 + length < size
        }
        Err(_) => false,
    }
}

/// Keeps a copy of a file that is about to be cut.
fn set_aside(path: &Path) -> Option<PathBuf> {
    let kept = path.with_extension("damaged");
    match std::fs::copy(path, &kept) {
        Ok(_) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, file = %path.display(), "a damaged journal could not be copied before it is cut");
            None
        }
    }
}
