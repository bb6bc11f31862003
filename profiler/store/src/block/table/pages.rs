//! The pages of a column, each no larger than may be.
//!
//! In: where a column chunk lies in a file that somebody else may have written. Out: its pages, inflated, for
//! Parquet's decoders. Parquet's own reader of pages reserves what a page's header says it has when inflated, and a
//! dictionary for as many values as it claims (parquet 60, `file/serialized_reader.rs`, `encodings/decoding.rs`).
//! Only what blocks are written with is read: data pages of version 1, zstd.
//!
//! Limits: [`MAX_PAGE`] bytes and [`MAX_VALUES`] values a page; inflated bytes of all pages of a table, where it is
//! read as a whole.

use super::thrift::{Thrift, is_struct};
use super::varints::malformed;
use super::{MAX_PAGE, front};
use bytes::Bytes;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values of a page: the writer ends one after 16,384.
const MAX_VALUES: i64 = 64 << 10;
/// A page's header has some 30 bytes.
const HEADER: u64 = 256;

/// Where a column chunk lies, and of what type it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub from: u64,
    pub until: u64,
    pub zstd: bool,
    pub physical: Physical,
    pub optional: bool,
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    dictionary: bool,
    /// Bytes of the header.
    own: u64,
    packed: usize,
    inflated: usize,
    values: u32,
    encoding: i64,
}

/// Reads the pages of a column chunk in order.
pub(super) struct Pages<R> {
    file: R,
    chunk: Chunk,
    next: Option<Header>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// Bytes that pages of this table may still have.
    left: Arc<AtomicU64>,
}

fn encoding(number: i64) -> Result<Encoding, ParquetError> {
    // The numbers of parquet-format, `parquet.thrift`, Encoding.
    match number {
        0 => Ok(Encoding::PLAIN),
        2 | 8 => Ok(Encoding::RLE_DICTIONARY),
        3 => Ok(Encoding::RLE),
        5 => Ok(Encoding::DELTA_BINARY_PACKED),
        7 => Ok(Encoding::DELTA_BYTE_ARRAY),
        _ => Err(malformed("has an encoding that blocks are not written with")),
    }
}

impl Header {
    /// Reads a header from a page's first bytes. The numbers are those of `parquet.thrift`, PageHeader.
    fn read(bytes: &[u8]) -> Result<Self, ParquetError> {
        let mut thrift = Thrift::new(bytes);
        let (mut kind, mut sizes, mut values, mut encoding, mut levels) = (-1, [-1, -1], -1, -1, 3);
        let mut last = 0;
        while let Some((field, of)) = thrift.field(&mut last)? {
            match field {
                1 => kind = thrift.number(of)?,
                2 => sizes[0] = thrift.number(of)?,
                3 => sizes[1] = thrift.number(of)?,
                5 | 7 if is_struct(of) => {
                    let mut inner = 0;
                    while let Some((known, of)) = thrift.field(&mut inner)? {
                        match (known, field) {
                            (1, _) => values = thrift.number(of)?,
                            (2, _) => encoding = thrift.number(of)?,
                            (3, 5) => levels = thrift.number(of)?,
                            _ => thrift.skip(of, 1)?,
                        }
                    }
                }
                _ => thrift.skip(of, 0)?,
            }
        }
        if !matches!(kind, 0 | 2) || levels != 3 {
            return Err(malformed("has a page of a kind that blocks are not written with"));
        }
        let size = |size: i64| {
            let size = usize::try_from(size).ok().filter(|size| *size <= MAX_PAGE);
            size.ok_or_else(|| malformed("has a page that is too large"))
        };
        if !(0..=MAX_VALUES).contains(&values) {
            return Err(malformed("has a page of too many values"));
        }
        Ok(Self {
            dictionary: kind == 2,
            own: (bytes.len() - thrift.left()) as u64,
            packed: size(sizes[1])?,
            inflated: size(sizes[0])?,
            values: values as u32,
            encoding,
        })
    }
}

impl<R: ChunkReader> Pages<R> {
    pub fn new(file: R, chunk: Chunk, left: Arc<AtomicU64>) -> Self {
        Self { file, chunk, next: None, zstd: None, left }
    }

    fn peek(&mut self) -> Result<Option<Header>, ParquetError> {
        if self.next.is_none() && self.chunk.from < self.chunk.until {
            let room = self.chunk.until - self.chunk.from;
            let header = Header::read(&self.file.get_bytes(self.chunk.from, room.min(HEADER) as usize)?)?;
            if header.own + header.packed as u64 > room {
                return Err(malformed("has a page that goes on behind its column"));
            }
            // Of a dictionary each value has its bytes.
            let least = match self.chunk.physical {
                Physical::INT64 => 8,
                _ => 4,
            };
            if header.dictionary && header.values as usize > header.inflated / least {
                return Err(malformed("has a dictionary of more values than bytes"));
            }
            self.next = Some(header);
        }
        Ok(self.next)
    }

    fn inflate(&mut self, packed: Bytes, header: &Header) -> Result<Bytes, ParquetError> {
        if !self.chunk.zstd || header.inflated == 0 {
            let same = packed.len() == header.inflated || header.inflated == 0;
            return if same {
                Ok(packed)
            } else {
                Err(malformed("has a page of another length than it says"))
            };
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self.zstd.insert(zstd::bulk::Decompressor::new()?),
        };
        // Into room of that size: a frame that has more is refused, whatever it says.
        let inflated = zstd.decompress(&packed, header.inflated)?;
        match inflated.len() == header.inflated {
            true => Ok(inflated.into()),
            false => Err(malformed("has a page of another length than it says")),
        }
    }

    fn charge(&self, bytes: usize) -> Result<(), ParquetError> {
        let took = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes as u64));
        took.map(|_| ()).map_err(|_| malformed("inflates to more than may be"))
    }

    /// The levels that tell which rows have a text, as they stand before the texts.
    fn levels<'a>(&self, page: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ParquetError> {
        if !self.chunk.optional {
            return Ok((&[], page));
        }
        let length = page.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        let split = length.and_then(|length| page.split_at_checked(length.checked_add(4)?));
        split.ok_or_else(|| malformed("has levels that are longer than their page"))
    }
}

impl<R: ChunkReader> PageReader for Pages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(header) = self.peek()? else { return Ok(None) };
        self.charge(header.inflated)?;
        let packed = self.file.get_bytes(self.chunk.from + header.own, header.packed)?;
        let mut buf = self.inflate(packed, &header)?;
        self.skip_next_page()?;
        let mut encoding = encoding(header.encoding)?;
        if header.dictionary {
            let num_values = header.values;
            return Ok(Some(Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            }));
        }
        if encoding == Encoding::DELTA_BYTE_ARRAY {
            let (levels, texts) = self.levels(&buf)?;
            let mut plain = levels.to_vec();
            front::to_plain(texts, header.values as usize, &mut plain)?;
            self.charge(plain.len().saturating_sub(header.inflated))?;
            (buf, encoding) = (plain.into(), Encoding::PLAIN);
        }
        Ok(Some(Page::DataPage {
            buf,
            num_values: header.values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        let of = |header: Header| {
            let values = (!header.dictionary).then_some(header.values as usize);
            // Columns are flat: a value is a row.
            PageMetadata { num_rows: values, num_levels: values, is_dict: header.dictionary }
        };
        Ok(self.peek()?.map(of))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        if let Some(header) = self.peek()? {
            self.chunk.from += header.own + header.packed as u64;
            self.next = None;
        }
        Ok(())
    }
}

impl<R: ChunkReader> Iterator for Pages<R> {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
