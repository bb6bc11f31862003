//! Reads a journal after whatever ended its writer.
//!
//! In: a file. Out: the part that its whole records tell; what follows these is cut off, and kept beside it when
//! more than one torn record is.

use super::super::part::Part;
use super::{FRAME, Fsync, HEADER, JournalError, MAGIC, MAX_RECORD, Opened, Segment, VERSION, checksum};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads a file and opens it for appending. None: it was cut off within its header and holds nothing.
pub(in super::super) fn open(path: &Path, fsync: Fsync) -> Result<Option<Opened>, JournalError> {
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
        Ok(_) => {
            // Its last change tells when its last windows were.
            let changed = std::fs::metadata(path).and_then(|file| file.modified());
            let _ = changed.and_then(|at| File::options().write(true).open(&kept)?.set_modified(at));
            Some(kept)
        }
        Err(error) => {
            tracing::warn!(%error, file = %path.display(), "a damaged journal could not be copied before it is cut");
            None
        }
    }
}
