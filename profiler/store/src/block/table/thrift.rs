//! Thrift's compact protocol, as much of it as says how large things are.
//!
//! In: bytes of a file that somebody else may have written. Out: the numbers of a page's header, or whether a footer
//! can be given to Parquet's own reader: it reserves room for as many items as a list says it has
//! (parquet 60, `parquet_thrift.rs`), so the lists are looked at first. Limits: [`MAX_DEPTH`], [`MAX_ITEMS`].

use super::varints::{Varints, malformed};
use parquet::errors::ParquetError;

/// Structs within structs: a footer of flat columns has six.
const MAX_DEPTH: usize = 16;
/// Items of all lists: some ten for each column of each row group, of which the largest takes some 500 bytes.
const MAX_ITEMS: u64 = 64 << 10;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// What is left to be read.
pub(super) struct Thrift<'a> {
    bytes: Varints<'a>,
    items: u64,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Varints { rest: bytes, cut: "ends within a structure" }, items: MAX_ITEMS }
    }

    /// Bytes that were not read.
    pub fn left(&self) -> usize {
        self.bytes.rest.len()
    }

    fn pass(&mut self, bytes: u64) -> Result<(), ParquetError> {
        let rest = usize::try_from(bytes).ok().and_then(|bytes| self.bytes.rest.get(bytes..));
        self.bytes.rest = rest.ok_or_else(|| malformed("claims more bytes than it has"))?;
        Ok(())
    }

    /// The next field of a structure, its number and type; `last` is the number before. None: the structure's end.
    ///
    /// # Errors
    /// The bytes end within the field's head, or its number has more than 64 bits.
    pub fn field(&mut self, last: &mut i64) -> Result<Option<(i64, u8)>, ParquetError> {
        let head = self.bytes.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.bytes.signed()?,
            step => last.saturating_add(i64::from(step)),
        };
        Ok(Some((*last, head & 0xf)))
    }

    /// A number of that type.
    ///
    /// # Errors
    /// The type is no integer of 16, 32 or 64 bits, the bytes end early, or the number has more than 64 bits.
    pub fn number(&mut self, kind: u8) -> Result<i64, ParquetError> {
        match kind {
            I16 | I32 | I64 => self.bytes.signed(),
            _ => Err(malformed("has something else in the place of a number")),
        }
    }

    /// Passes over a value of that type; `depth` is how many structures it lies in.
    ///
    /// # Errors
    /// The bytes end within the value, its type is not known, structures are nested deeper than [`MAX_DEPTH`], or
    /// lists have more than [`MAX_ITEMS`] items in all.
    pub fn skip(&mut self, kind: u8, depth: usize) -> Result<(), ParquetError> {
        if depth > MAX_DEPTH {
            return Err(malformed("has structures within structures without end"));
        }
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.bytes.unsigned().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.bytes.unsigned()?;
                self.pass(length)
            }
            LIST | SET => self.list(depth),
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            // Maps are in no footer and no page's header of Parquet.
            _ => Err(malformed("has a type that is not known")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), ParquetError> {
        let head = self.bytes.byte()?;
        let items = match head >> 4 {
            15 => self.bytes.unsigned()?,
            items => u64::from(items),
        };
        self.items =
            self.items.checked_sub(items).ok_or_else(|| malformed("has too many items in its lists"))?;
        let kind = match head & 0xf {
            // In a list each truth has a byte.
            TRUE | FALSE => BYTE,
            kind => kind,
        };
        (0..items).try_for_each(|_| self.skip(kind, depth + 1))
    }
}

/// Looks through a structure as a whole.
pub(super) fn check(bytes: &[u8]) -> Result<(), ParquetError> {
    Thrift::new(bytes).skip(STRUCT, 0)
}

/// The type of structures.
pub(super) fn is_struct(kind: u8) -> bool {
    kind == STRUCT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_claims_more_than_there_is_is_refused() {
        // Field 1: a list of 2^28 structures.
        let mut bytes = vec![0x19, 0xfc];
        bytes.extend([0x80, 0x80, 0x80, 0x80, 0x01]);
        assert!(check(&bytes).unwrap_err().to_string().contains("too many items"));
        // A text that is longer than the file.
        assert!(check(&[0x18, 0xff, 0xff, 0x03]).unwrap_err().to_string().contains("more bytes"));
        assert!(check(&vec![0x1c; 100_000]).unwrap_err().to_string().contains("without end"));
        assert!(check(&[0x15, 0x02, 0x00]).is_ok());
    }
}
