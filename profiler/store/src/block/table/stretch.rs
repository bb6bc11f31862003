//! Rows of one column of numbers, in order.

use super::super::BlockProblem;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;

/// Rows of one column of numbers, in order.
pub(in super::super) struct Stretch<T>(pub(super) Box<dyn Numbers<T>>, pub(super) &'static str);

impl<T> Stretch<T> {
    /// Passes over so many rows.
    ///
    /// # Errors
    /// A page cannot be decoded, or the column ends before the rows do.
    pub fn skip(&mut self, rows: usize) -> Result<(), BlockProblem> {
        let skipped = self.0.skip(rows).map_err(|e| BlockProblem::table(self.1, &e))?;
        if skipped == rows { Ok(()) } else { Err(BlockProblem::says(self.1, "ends early".to_owned())) }
    }
    /// The next rows, all of them.
    ///
    /// # Errors
    /// As [`Self::skip`]; `out` has the rows before then.
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

/// Parquet's reader of a column, whatever type its numbers have.
pub(super) trait Numbers<T> {
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
