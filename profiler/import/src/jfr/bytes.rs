//! Numbers and texts of a chunk.
//!
//! In: the chunk's bytes. Out: values; an error with its place where they end too early or make no sense. Integers are
//! LEB128 of at most nine bytes (the ninth with all its bits), or big-endian where the chunk says so; one byte is one
//! byte either way.

use std::borrow::Cow;

/// What is wrong, and where in the chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct Bad {
    /// Bytes from the chunk's beginning.
    pub at: usize,
    /// What is wrong, as the rest of a sentence that begins with the place.
    pub says: String,
}

/// A text, as a field has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// There is no text.
    Null,
    /// The characters stand here.
    Here(Cow<'a, str>),
    /// The text is in the pool of texts, by this number.
    Pool(i64),
}

/// A place in a chunk from which reading goes on.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    /// Offset in the chunk of the byte that is read next.
    pub at: usize,
    compressed: bool,
}

impl<'a> Reader<'a> {
    /// A reader of a chunk, from an offset on.
    pub fn new(data: &'a [u8], at: usize, compressed: bool) -> Self {
        Self { data, at, compressed }
    }

    /// An error at this place.
    pub fn bad(&self, says: impl Into<String>) -> Bad {
        Bad { at: self.at, says: says.into() }
    }

    /// Bytes until the chunk's end.
    pub fn left(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// The chunk ends before. Nothing is passed over then.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Bad> {
        let end = self.at.checked_add(length);
        let found = end.and_then(|end| self.data.get(self.at..end));
        let found = found.ok_or_else(|| self.bad("needs more bytes than the chunk has"))?;
        self.at += length;
        Ok(found)
    }

    /// The next byte.
    ///
    /// # Errors
    /// The chunk ends here.
    pub fn byte(&mut self) -> Result<u8, Bad> {
        self.take(1)?.first().copied().ok_or_else(|| self.bad("needs a byte"))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Bad> {
        let mut all = [0; N];
        all.copy_from_slice(self.take(N)?);
        Ok(all)
    }

    /// A `long`.
    ///
    /// # Errors
    /// The chunk ends before.
    pub fn long(&mut self) -> Result<i64, Bad> {
        if !self.compressed {
            return Ok(i64::from_be_bytes(self.fixed()?));
        }
        let mut value = 0_u64;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value.cast_signed());
            }
        }
        Ok((value | u64::from(self.byte()?) << 56).cast_signed())
    }

    /// An `int`. A compressed one may be larger than its type.
    ///
    /// # Errors
    /// The chunk ends before.
    pub fn int(&mut self) -> Result<i64, Bad> {
        if self.compressed { self.long() } else { Ok(i64::from(i32::from_be_bytes(self.fixed()?))) }
    }

    /// A `short` or a `char`. A compressed one may be larger than its type.
    ///
    /// # Errors
    /// The chunk ends before.
    pub fn short(&mut self) -> Result<i64, Bad> {
        if self.compressed { self.long() } else { Ok(i64::from(i16::from_be_bytes(self.fixed()?))) }
    }

    /// How many items follow: never more than there are bytes, for each takes one at least.
    ///
    /// # Errors
    /// The count is negative or more than the bytes that are left, or the chunk ends before.
    pub fn count(&mut self) -> Result<usize, Bad> {
        let at = self.at;
        let count = self.int()?;
        let found = usize::try_from(count).ok().filter(|count| *count <= self.left());
        found.ok_or_else(|| Bad { at, says: format!("counts {count} items, more than the chunk has bytes") })
    }

    /// A text: 0 null, 1 empty, 2 in the pool, 3 UTF-8, 4 characters, 5 Latin-1.
    ///
    /// # Errors
    /// The kind is another, the length is more than the chunk has, or the chunk ends before.
    pub fn text(&mut self) -> Result<Text<'a>, Bad> {
        let at = self.at;
        Ok(match self.byte()? {
            0 => Text::Null,
            1 => Text::Here(Cow::Borrowed("")),
            2 => Text::Pool(self.long()?),
            3 => {
                let length = self.count()?;
                Text::Here(String::from_utf8_lossy(self.take(length)?))
            }
            4 => {
                let length = self.count()?;
                let mut units = Vec::with_capacity(length);
                for _ in 0..length {
                    units.push(self.short()? as u16);
                }
                Text::Here(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let length = self.count()?;
                Text::Here(Cow::Owned(self.take(length)?.iter().map(|byte| char::from(*byte)).collect()))
            }
            other => return Err(Bad { at, says: format!("has a text of the unknown kind {other}") }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_short_or_fixed() {
        let mut reader = Reader::new(&[0x85, 0xb0, 0x03], 0, true);
        assert_eq!((reader.long().unwrap(), reader.at), (55_301, 3));
        assert_eq!(Reader::new(&[0xff; 9], 0, true).long().unwrap(), -1);
        assert_eq!(Reader::new(&[0, 0, 0, 7], 0, false).int().unwrap(), 7);
        assert_eq!(Reader::new(&[0x80], 0, true).long().unwrap_err().at, 1);
    }

    #[test]
    fn texts_of_all_kinds_and_no_other() {
        let text = |bytes: &[u8]| Reader::new(bytes, 0, true).text().map(|text| format!("{text:?}"));
        assert_eq!(text(&[0]).unwrap(), "Null");
        assert_eq!(text(&[2, 9]).unwrap(), "Pool(9)");
        assert_eq!(text(&[3, 2, b'h', b'i']).unwrap(), "Here(\"hi\")");
        assert_eq!(text(&[4, 1, 0x84, 0x07]).unwrap(), "Here(\"΄\")");
        assert_eq!(text(&[5, 1, 0xe9]).unwrap(), "Here(\"é\")");
        assert!(text(&[6, 1]).unwrap_err().says.contains("kind 6"));
        // A length that no memory would have.
        assert!(text(&[3, 0xff, 0xff, 0xff, 0xff, 0x07]).unwrap_err().says.contains("more than the chunk"));
    }
}
