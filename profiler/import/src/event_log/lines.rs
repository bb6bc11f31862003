//! Lines of an event log, one after the other.
//!
//! In: bytes, unpacked. Out: lines of at most [`Bounds::line`] bytes; a longer one is passed over without being held. At
//! most [`Bounds::log`] bytes are read.

use super::Bounds;
use std::io::{self, BufRead, BufReader, Read, Take};

/// A line, without its end.
pub enum Line<'a> {
    /// A line with its end.
    Whole(&'a [u8]),
    /// The last one, where the file does not end with a line's end.
    Unfinished(&'a [u8]),
    /// One of more bytes than a line may have.
    TooLong,
}

/// The lines of a file.
pub struct Lines<R> {
    file: BufReader<Take<R>>,
    line: Vec<u8>,
    number: u64,
    bounds: Bounds,
}

impl<R: Read> Lines<R> {
    /// The lines of a file that is unpacked.
    pub fn new(file: R, bounds: Bounds) -> Self {
        let file = BufReader::with_capacity(1 << 16, file.take(bounds.log));
        Self { file, line: Vec::new(), number: 0, bounds }
    }

    /// How many lines were read.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that may be read yet.
    pub fn left(&self) -> u64 {
        self.file.get_ref().limit()
    }

    /// The next line; None: there is none.
    ///
    /// # Errors
    /// The file cannot be read or unpacked any further, or is longer than a file may be.
    pub fn read(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut too_long = false;
        loop {
            let some = match self.file.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                some => some?,
            };
            if some.is_empty() {
                break;
            }
            let end = some.iter().position(|byte| *byte == b'\n');
            let part = some.get(..end.unwrap_or(some.len())).unwrap_or_default();
            too_long |= self.line.len() + part.len() > self.bounds.line;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.file.consume(used);
            if end.is_some() {
                self.number += 1;
                return Ok(Some(if too_long { Line::TooLong } else { Line::Whole(&self.line) }));
            }
        }
        if self.left() == 0 {
            return Err(io::Error::other(format!(
                "more is not read than {} bytes of it and the files before",
                self.bounds.log
            )));
        }
        if too_long || !self.line.is_empty() {
            self.number += 1;
            return Ok(Some(if too_long { Line::TooLong } else { Line::Unfinished(&self.line) }));
        }
        Ok(None)
    }
}
