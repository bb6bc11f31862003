//! Reads a table: whole columns, or stretches of columns of numbers.
//!
//! In: a file that may be damaged, or made to harm. Out: values, or a [`BlockProblem`]. Its footer is looked through
//! before Parquet's reader sees it (`thrift`), its pages are read here (`pages`). Parquet's decoders may panic on what
//! a page holds: [`super::super::guarded`] is around all that reads.
//!
//! Limits: [`MAX_FOOTER`], [`ROWS_PER_BYTE`]; of a table that is read as a whole its [`Room`], [`MAX_INFLATED`],
//! [`MAX_TEXTS`].

use super::super::BlockProblem;
use super::PAGE_ROWS;
use super::pages::{Chunk, Pages};
use super::stretch::Stretch;
use super::thrift;
use super::varints::malformed;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a footer: one of four columns and a row group has 700, and a row group has half a million rows.
const MAX_FOOTER: u64 = 4 << 20;
/// The most that rows can be packed: a page of 16,384 like ones has some 60 bytes a column.
const ROWS_PER_BYTE: u64 = 1024;
/// Bytes of all pages of a table that is read as a whole, inflated: ten times those of a large one.
const MAX_INFLATED: u64 = 64 << 20;
/// Bytes of texts that rows of such a table point to, each as often as it comes: a second's work.
const MAX_TEXTS: u64 = 1 << 30;

/// What the rows of some tables may take in memory together.
#[derive(Debug)]
pub(in super::super) struct Room(AtomicU64);

impl Room {
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Takes room for so many rows of so many bytes.
    /// # Errors
    /// The room has less left than the rows take; none of it is taken then.
    pub fn take(&self, table: &str, rows: u64, bytes: u64) -> Result<(), BlockProblem> {
        let left = |left: u64| left.checked_sub(rows.checked_mul(bytes)?);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(BlockProblem::says(table, format!("has {rows} rows, which are too many to be held")))
            }
        }
    }
}

/// A table that is read.
pub(in super::super) struct TableReader<R: ChunkReader + Clone + 'static> {
    file: R,
    metadata: ParquetMetaData,
    name: &'static str,
    /// Bytes that pages may still inflate to, of a table that is read as a whole.
    inflated: Arc<AtomicU64>,
}

/// The footer of a file.
fn footer<R: ChunkReader>(file: &R) -> Result<ParquetMetaData, ParquetError> {
    let length = file.len();
    if length < 12 {
        return Err(malformed("is too short"));
    }
    // Its length and `PAR1` are the last eight bytes.
    let end = file.get_bytes(length - 8, 8)?;
    let size = end.first_chunk().map_or(0, |size| u64::from(u32::from_le_bytes(*size)));
    if !end.ends_with(b"PAR1") || size > MAX_FOOTER || size > length - 12 {
        return Err(malformed("has no footer"));
    }
    let bytes = file.get_bytes(length - 8 - size, size as usize)?;
    thrift::check(&bytes)?;
    ParquetMetaDataReader::decode_metadata(&bytes)
}

impl<R: ChunkReader + Clone + 'static> TableReader<R> {
    /// Opens a table of which stretches are read.
    /// # Errors
    /// The file cannot be read, has no footer or one that is too large, or claims more rows than its bytes can hold.
    pub fn new(file: R, name: &'static str) -> Result<Self, BlockProblem> {
        let length = file.len();
        let metadata = footer(&file).map_err(|e| BlockProblem::table(name, &e))?;
        let table = Self { file, metadata, name, inflated: Arc::new(AtomicU64::new(u64::MAX)) };
        let mut groups = table.metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
        let rows = groups.try_fold(0_u64, |sum, rows| sum.checked_add(rows?));
        match rows.is_some_and(|rows| rows <= length.saturating_mul(ROWS_PER_BYTE)) {
            true => Ok(table),
            false => Err(BlockProblem::says(name, "has more rows than its bytes can hold".to_owned())),
        }
    }

    /// Opens a table that is read as a whole: each of its rows takes so many bytes of the room.
    /// # Errors
    /// As [`Self::new`], and where the room has too little left.
    pub fn whole(file: R, name: &'static str, room: &Room, bytes: u64) -> Result<Self, BlockProblem> {
        let table = Self { inflated: Arc::new(AtomicU64::new(MAX_INFLATED)), ..Self::new(file, name)? };
        room.take(name, table.rows() as u64, bytes)?;
        Ok(table)
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> Vec<u64> {
        self.metadata.row_groups().iter().map(|g| g.num_rows().max(0).cast_unsigned()).collect()
    }

    fn rows(&self) -> usize {
        self.row_groups().iter().sum::<u64>() as usize
    }

    fn place(&self, column: &str) -> Result<usize, BlockProblem> {
        let columns = self.metadata.file_metadata().schema_descr();
        let place = (0..columns.num_columns()).find(|place| columns.column(*place).name() == column);
        place.ok_or_else(|| BlockProblem::says(self.name, format!("has no column {column}")))
    }

    /// Whether the table has a column: one that came later is missing in older blocks.
    pub fn has(&self, column: &str) -> bool {
        self.place(column).is_ok()
    }

    fn reader(&self, group: usize, column: &str) -> Result<ColumnReader, BlockProblem> {
        let says = |says: &str| BlockProblem::says(self.name, format!("{says} in {column}"));
        let place = self.place(column)?;
        let about = self.metadata.file_metadata().schema_descr().column(place);
        if about.max_rep_level() != 0 || about.max_def_level() > 1 {
            return Err(says("has lists"));
        }
        let groups = self.metadata.row_groups();
        let chunk = groups.get(group).and_then(|group| group.columns().get(place));
        let chunk = chunk.ok_or_else(|| says("has no values"))?;
        // A physical type of its own would be decoded as another's.
        if chunk.column_type() != about.physical_type() {
            return Err(says("has values of another type"));
        }
        let begins = chunk
            .dictionary_page_offset()
            .map_or(chunk.data_page_offset(), |at| at.min(chunk.data_page_offset()));
        let from = u64::try_from(begins).map_err(|_| says("has values that are nowhere"))?;
        let until = u64::try_from(chunk.compressed_size()).ok().and_then(|size| from.checked_add(size));
        let until = until.filter(|until| *until <= self.file.len());
        let until = until.ok_or_else(|| says("has values behind its end"))?;
        let zstd = match chunk.compression() {
            Compression::ZSTD(_) => true,
            Compression::UNCOMPRESSED => false,
            other => return Err(says(&format!("has values packed by {other}"))),
        };
        let optional = about.max_def_level() > 0;
        let chunk = Chunk { from, until, zstd, physical: about.physical_type(), optional };
        let pages = Pages::new(self.file.clone(), chunk, self.inflated.clone());
        Ok(get_column_reader(about, Box::new(pages)))
    }

    /// A number that a column has in all rows of a group, when its statistics say so.
    pub fn constant(&self, group: usize, column: &str) -> Option<i64> {
        let place = self.place(column).ok()?;
        let groups = self.metadata.row_groups();
        match groups.get(group)?.columns().get(place)?.statistics()? {
            Statistics::Int64(s) => s.min_opt().filter(|min| s.max_opt() == Some(min)).copied(),
            _ => None,
        }
    }

    /// Some rows of a column of numbers, for reading on.
    /// # Errors
    /// No such column or row group; values of another type, outside of the file, or packed by anything but zstd.
    pub fn longs(&self, group: usize, column: &'static str) -> Result<Stretch<i64>, BlockProblem> {
        match self.reader(group, column)? {
            ColumnReader::Int64ColumnReader(reader) => Ok(Stretch(Box::new(reader), self.name)),
            _ => Err(BlockProblem::says(self.name, format!("has no long numbers in {column}"))),
        }
    }

    /// Some rows of a column of small numbers.
    /// # Errors
    /// As [`Self::longs`].
    pub fn ints(&self, group: usize, column: &'static str) -> Result<Stretch<i32>, BlockProblem> {
        match self.reader(group, column)? {
            ColumnReader::Int32ColumnReader(reader) => Ok(Stretch(Box::new(reader), self.name)),
            _ => Err(BlockProblem::says(self.name, format!("has no numbers in {column}"))),
        }
    }

    /// A whole column of numbers.
    /// # Errors
    /// As [`Self::longs`], and where a page cannot be decoded or the column ends early.
    pub fn all_longs(&self, column: &'static str) -> Result<Vec<u64>, BlockProblem> {
        let (mut all, mut some) = (Vec::with_capacity(self.rows()), Vec::new());
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            self.longs(group, column)?.read(rows as usize, &mut some)?;
            all.extend(some.iter().map(|value| value.cast_unsigned()));
        }
        Ok(all)
    }

    /// A whole column of places, each below the limit.
    /// # Errors
    /// As [`Self::all_longs`], and where a place is not below the limit.
    pub fn all_places(&self, column: &'static str, limit: usize) -> Result<Vec<u32>, BlockProblem> {
        let all = self.all_ints(column)?;
        match all.iter().all(|place| (*place as usize) < limit) {
            true => Ok(all),
            false => Err(BlockProblem::says(self.name, format!("points to nothing in {column}"))),
        }
    }

    /// A whole column of small numbers.
    /// # Errors
    /// As [`Self::all_longs`].
    pub fn all_ints(&self, column: &'static str) -> Result<Vec<u32>, BlockProblem> {
        let (mut all, mut some) = (Vec::with_capacity(self.rows()), Vec::new());
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            self.ints(group, column)?.read(rows as usize, &mut some)?;
            all.extend(some.iter().map(|value| value.cast_unsigned()));
        }
        Ok(all)
    }

    /// A whole column of truths.
    /// # Errors
    /// As [`Self::all_longs`].
    pub fn all_bools(&self, column: &'static str) -> Result<Vec<bool>, BlockProblem> {
        let mut all = Vec::with_capacity(self.rows());
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            let ColumnReader::BoolColumnReader(reader) = self.reader(group, column)? else {
                return Err(BlockProblem::says(self.name, format!("has no truths in {column}")));
            };
            let mut some = Vec::new();
            Stretch(Box::new(reader), self.name).read(rows as usize, &mut some)?;
            all.append(&mut some);
        }
        Ok(all)
    }

    /// A whole column of texts, each given to `take`; None where a row has none.
    /// # Errors
    /// As [`Self::all_longs`], and where a text is no UTF-8 or all have more than [`MAX_TEXTS`] bytes.
    pub fn all_texts(
        &self,
        column: &'static str,
        mut take: impl FnMut(Option<&str>),
    ) -> Result<(), BlockProblem> {
        let mut told = 0_u64;
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            let ColumnReader::ByteArrayColumnReader(mut reader) = self.reader(group, column)? else {
                return Err(BlockProblem::says(self.name, format!("has no texts in {column}")));
            };
            let (mut texts, mut there, mut left) = (Vec::new(), Vec::new(), rows as usize);
            let optional = self.is_optional(column)?;
            while left > 0 {
                texts.clear();
                there.clear();
                let (read, ..) = reader
                    .read_records(left.min(PAGE_ROWS), optional.then_some(&mut there), None, &mut texts)
                    .map_err(|e| BlockProblem::table(self.name, &e))?;
                if read == 0 {
                    return Err(BlockProblem::says(self.name, format!("ends early in {column}")));
                }
                left -= read;
                told += texts.iter().map(|text| text.len() as u64).sum::<u64>();
                if told > MAX_TEXTS {
                    return Err(BlockProblem::says(self.name, format!("has too much text in {column}")));
                }
                let mut texts = texts.iter();
                for row in 0..read {
                    let has = !optional || there.get(row).is_some_and(|level| *level > 0);
                    match has.then(|| texts.next()).flatten() {
                        None => take(None),
                        Some(text) => match std::str::from_utf8(text.data()) {
                            Ok(text) => take(Some(text)),
                            Err(_) => {
                                return Err(BlockProblem::says(
                                    self.name,
                                    format!("is no UTF-8 in {column}"),
                                ));
                            }
                        },
                    }
                }
            }
        }
        Ok(())
    }

    fn is_optional(&self, column: &str) -> Result<bool, BlockProblem> {
        let place = self.place(column)?;
        Ok(self.metadata.file_metadata().schema_descr().column(place).max_def_level() > 0)
    }
}
