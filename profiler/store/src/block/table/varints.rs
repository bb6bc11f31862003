//! Numbers as Thrift's compact protocol and Parquet's encodings write them (ULEB128, zigzag), out of bytes that
//! somebody else may have written.

use parquet::errors::ParquetError;

/// Bytes that make no sense, in what way.
pub(super) fn malformed(says: &str) -> ParquetError {
    ParquetError::General(says.to_owned())
}

/// What is left to be read.
pub(super) struct Varints<'a> {
    /// Bytes that were not read.
    pub rest: &'a [u8],
    /// What is wrong where they end too early.
    pub cut: &'static str,
}

impl<'a> Varints<'a> {
    /// The next byte.
    ///
    /// # Errors
    /// The bytes have ended; the error says [`Self::cut`].
    pub fn byte(&mut self) -> Result<u8, ParquetError> {
        let (byte, rest) = self.rest.split_first().ok_or_else(|| malformed(self.cut))?;
        self.rest = rest;
        Ok(*byte)
    }

    /// The next bytes, `count` of them.
    ///
    /// # Errors
    /// As [`Self::byte`], where fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ParquetError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(|| malformed(self.cut))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number in ULEB128.
    ///
    /// # Errors
    /// As [`Self::byte`], and where the number has more than 64 bits.
    pub fn unsigned(&mut self) -> Result<u64, ParquetError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(malformed("has a number of more than 64 bits"))
    }

    /// A number in ULEB128, its sign in the lowest bit (zigzag).
    ///
    /// # Errors
    /// As [`Self::unsigned`].
    pub fn signed(&mut self) -> Result<i64, ParquetError> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}
