//! Numbers and texts as bytes: LEB128 without sign, zigzag for signed, texts by length.
//!
//! In: bytes that a disk gave back. Every read is checked; what makes no sense is [`Malformed`], never a
//! panic and never a large allocation.

/// The bytes are not what this program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub &'static str);

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number with a sign.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a text.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads what [`put`], [`put_signed`] and [`put_text`] wrote: the bytes that are left.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// A number.
    ///
    /// # Errors
    /// The bytes end within the number, or it has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed("a number is cut off"))?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number has more than 64 bits"))
    }
    /// A number of 32 bits.
    ///
    /// # Errors
    /// As [`Self::number`], and where it has more than 32 bits.
    pub fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number has more than 32 bits"))
    }
    /// A place in a list of that length.
    ///
    /// # Errors
    /// As [`Self::small`], and where the list has no such place.
    pub fn place(&mut self, length: usize) -> Result<u32, Malformed> {
        let place = self.small()?;
        if (place as usize) < length { Ok(place) } else { Err(Malformed("a reference points to nothing")) }
    }
    /// How many items follow, each of at least a byte.
    ///
    /// # Errors
    /// As [`Self::number`], and where fewer bytes follow than items.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(Malformed("a list is longer than its record")),
        }
    }
    /// A number with a sign.
    ///
    /// # Errors
    /// As [`Self::number`].
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
    /// The next bytes, `length` of them.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed("bytes are cut off"))?;
        self.0 = rest;
        Ok(bytes)
    }
    /// A text.
    ///
    /// # Errors
    /// As [`Self::count`], and where the text is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.count()?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_read(number: u64, signed: i64, text in "\\PC{0,20}") {
            let mut out = Vec::new();
            put(&mut out, number);
            put_signed(&mut out, signed);
            put_text(&mut out, &text);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.text(), Ok(&*text));
            prop_assert!(reader.0.is_empty());
        }
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader(&bytes);
            while reader.number().is_ok() {}
            let _ = Reader(&bytes).text();
        }
    }
}
