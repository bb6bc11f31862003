//! Reads a table: whole columns, or stretches of columns of numbers.
//!
//! In: a file that may be damaged. Out: values, or a [`BlockProblem`]; nothing here panics.

use super::super::BlockProblem;
use super::PAGE_ROWS;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

/// A table that is read.
pub(in super::super) struct TableReader<R: ChunkReader + 'static> {
    file: SerializedFileReader<R>,
    name: &'static str,
}

impl<R: ChunkReader + 'static> TableReader<R> {
    pub fn new(file: R, name: &'static str) -> Result<Self, BlockProblem> {
        let file = SerializedFileReader::new(file).map_err(|e| BlockProblem::table(name, &e))?;
        Ok(Self { file, name })
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> Vec<u64> {
        self.file.metadata().row_groups().iter().map(|g| g.num_rows().max(0).cast_unsigned()).collect()
    }

    fn rows(&self) -> usize {
        self.row_groups().iter().sum::<u64>() as usize
    }

    fn place(&self, column: &str) -> Result<usize, BlockProblem> {
        let columns = self.file.metadata().file_metadata().schema_descr();
        let place = (0..columns.num_columns()).find(|place| columns.column(*place).name() == column);
        place.ok_or_else(|| BlockProblem::says(self.name, format!("has no column {column}")))
    }

    /// Whether it has a column: one that came later is missing in older blocks.
    pub fn has(&self, column: &str) -> bool {
        self.place(column).is_ok()
    }

    fn reader(&self, group: usize, column: &str) -> Result<ColumnReader, BlockProblem> {
        let place = self.place(column)?;
        let opened = self.file.get_row_group(group).and_then(|group| group.get_column_reader(place));
        opened.map_err(|e| BlockProblem::table(self.name, &e))
    }

    /// A number that a column has in all rows of a group, when its statistics say so.
    pub fn constant(&self, group: usize, column: &str) -> Option<i64> {
        let place = self.place(column).ok()?;
        let groups = self.file.metadata().row_groups();
        match groups.get(group)?.columns().get(place)?.statistics()? {
            Statistics::Int64(s) => s.min_opt().filter(|min| s.max_opt() == Some(min)).copied(),
            _ => None,
        }
    }

    /// Some rows of a column of numbers, for reading on.
    pub fn longs(&self, group: usize, column: &'static str) -> Result<Stretch<i64>, BlockProblem> {
        match self.reader(group, column)? {
            ColumnReader::Int64ColumnReader(reader) => Ok(Stretch(Box::new(reader), self.name)),
            _ => Err(BlockProblem::says(self.name, format!("has no long numbers in {column}"))),
        }
    }

    /// The same of small ones.
    pub fn ints(&self, group: usize, column: &'static str) -> Result<Stretch<i32>, BlockProblem> {
        match self.reader(group, column)? {
            ColumnReader::Int32ColumnReader(reader) => Ok(Stretch(Box::new(reader), self.name)),
            _ => Err(BlockProblem::says(self.name, format!("has no numbers in {column}"))),
        }
    }

    /// A whole column.
    pub fn all_longs(&self, column: &'static str) -> Result<Vec<u64>, BlockProblem> {
        let (mut all, mut some) = (Vec::with_capacity(self.rows()), Vec::new());
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            self.longs(group, column)?.read(rows as usize, &mut some)?;
            all.extend(some.iter().map(|value| value.cast_unsigned()));
        }
        Ok(all)
    }

    /// A whole column of places, each below the limit.
    pub fn all_places(&self, column: &'static str, limit: usize) -> Result<Vec<u32>, BlockProblem> {
        let all = self.all_ints(column)?;
        match all.iter().all(|place| (*place as usize) < limit) {
            true => Ok(all),
            false => Err(BlockProblem::says(self.name, format!("points to nothing in {column}"))),
        }
    }

    /// A whole column of small numbers.
    pub fn all_ints(&self, column: &'static str) -> Result<Vec<u32>, BlockProblem> {
        let (mut all, mut some) = (Vec::with_capacity(self.rows()), Vec::new());
        for (group, rows) in self.row_groups().into_iter().enumerate() {
            self.ints(group, column)?.read(rows as usize, &mut some)?;
            all.extend(some.iter().map(|value| value.cast_unsigned()));
        }
        Ok(all)
    }

    /// A whole column of truths.
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
    pub fn all_texts(
        &self,
        column: &'static str,
        mut take: impl FnMut(Option<&str>),
    ) -> Result<(), BlockProblem> {
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
        Ok(self.file.metadata().file_metadata().schema_descr().column(place).max_def_level() > 0)
    }
}

/// Rows of one column of numbers, in order.
pub(in super::super) struct Stretch<T>(Box<dyn Numbers<T>>, &'static str);

impl<T> Stretch<T> {
    /// Passes over rows.
    pub fn skip(&mut self, rows: usize) -> Result<(), BlockProblem> {
        let skipped = self.0.skip(rows).map_err(|e| BlockProblem::table(self.1, &e))?;
        if skipped == rows { Ok(()) } else { Err(BlockProblem::says(self.1, "ends early".to_owned())) }
    }
    /// The next rows, all of them.
    pub fn read(&mut self, rows: usize, out: &mut Vec<T>) -> Result<(), BlockProblem> {
        out.clear();
        while out.len() < rows {
            let left = rows - out.len();
            let read = self.0.read(left, out).map_err(|e| BlockProblem::table(self.1, &e))?;
            if read == 0 {
                return Err(BlockProblem::says(self.1, "ends early".to_owned()));
            }
        }
        Ok(())
    }
}

trait Numbers<T> {
    fn skip(&mut self, rows: usize) -> Result<usize, ParquetError>;
    fn read(&mut self, rows: usize, out: &mut Vec<T>) -> Result<usize, ParquetError>;
}

impl<D: DataType> Numbers<D::T> for ColumnReaderImpl<D> {
    fn skip(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.skip_records(rows)
    }
    fn read(&mut self, rows: usize, out: &mut Vec<D::T>) -> Result<usize, ParquetError> {
        self.read_records(rows, None, None, out).map(|(rows, ..)| rows)
    }
}
