//! One table of a block as a Parquet file: columns in, bytes out, and back.
//!
//! Flat columns, one name each, zstd, encodings that every reader of Parquet knows (also Spark 3.3's). A
//! table says its name and the format's version in the file's own metadata. Columns are found by name, so
//! a later version may add some.

use super::BlockProblem;
use bytes::Bytes;
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// Rows of a page: what is decoded at least to reach one row.
const PAGE_ROWS: usize = 16_384;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Numbers near their neighbours: distances, bit-packed.
    Delta,
    /// Numbers in patterns that come again: left to zstd.
    Plain,
    /// Few different values.
    Dictionary,
    /// Sorted texts: what differs from the one before.
    Front,
}

/// Values of a column.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
    /// Texts, and for each row whether it has one.
    Maybe(Vec<ByteArray>, Vec<i16>),
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: &'static str,
    pub how: How,
    pub values: Values,
}

impl Column {
    pub fn int(name: &'static str, how: How, values: impl IntoIterator<Item = u32>) -> Self {
        let values = values.into_iter().map(u32::cast_signed).collect();
        Self { name, how, values: Values::Int(values) }
    }
    pub fn long(name: &'static str, how: How, values: impl IntoIterator<Item = u64>) -> Self {
        let values = values.into_iter().map(u64::cast_signed).collect();
        Self { name, how, values: Values::Long(values) }
    }
    pub fn bool(name: &'static str, values: impl IntoIterator<Item = bool>) -> Self {
        Self { name, how: How::Plain, values: Values::Bool(values.into_iter().collect()) }
    }
    pub fn text<'a>(name: &'static str, how: How, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
        Self { name, how, values: Values::Text(values) }
    }
    pub fn maybe<'a>(
        name: &'static str,
        how: How,
        values: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Self {
        let (mut texts, mut there) = (Vec::new(), Vec::new());
        for value in values {
            there.push(i16::from(value.is_some()));
            texts.extend(value.map(|text| ByteArray::from(text.as_bytes().to_vec())));
        }
        Self { name, how, values: Values::Maybe(texts, there) }
    }

    fn schema(&self) -> Result<Type, ParquetError> {
        let (physical, repetition) = match self.values {
            Values::Int(_) => (Physical::INT32, Repetition::REQUIRED),
            Values::Long(_) => (Physical::INT64, Repetition::REQUIRED),
            Values::Bool(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
            Values::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
            Values::Maybe(..) => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(self.name, physical).with_repetition(repetition);
        match physical {
            Physical::BYTE_ARRAY => builder
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8)
                .build(),
            _ => builder.build(),
        }
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        match (&self.values, writer) {
            (Values::Int(values), ColumnWriter::Int32ColumnWriter(w)) => w.write_batch(values, None, None),
            (Values::Long(values), ColumnWriter::Int64ColumnWriter(w)) => w.write_batch(values, None, None),
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(w)) => w.write_batch(values, None, None),
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(values, None, None)
            }
            (Values::Maybe(values, there), ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(values, Some(there), None)
            }
            _ => Err(ParquetError::General(format!("column {} is of another type", self.name))),
        }
        .map(|_| ())
    }
}

/// Writes tables of one shape, a row group at a time.
pub(super) struct TableWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> TableWriter<W> {
    /// `shape` has the names, types and encodings; its values do not count.
    pub fn new(out: W, name: &str, format: u32, shape: &[Column]) -> Result<Self, ParquetError> {
        let fields = shape.iter().map(|column| Ok(Arc::new(column.schema()?)));
        let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let said = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_max_row_group_row_count(None)
            .set_created_by(concat!("emberscope ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![
                said("emberscope.table", name.to_owned()),
                said("emberscope.format", format.to_string()),
            ]));
        for column in shape {
            let path = || ColumnPath::from(column.name);
            properties = properties.set_column_dictionary_enabled(path(), column.how == How::Dictionary);
            properties = match column.how {
                How::Delta => properties.set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
                How::Front => properties.set_column_encoding(path(), Encoding::DELTA_BYTE_ARRAY),
                How::Plain => properties.set_column_encoding(path(), Encoding::PLAIN),
                How::Dictionary => properties,
            };
        }
        Ok(Self(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?))
    }

    /// Adds rows.
    pub fn write(&mut self, columns: &[Column]) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close().map(|_| ())
    }

    /// Ends the file.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.0.into_inner()
    }
}

/// A table that is read.
pub(super) struct TableReader<R: ChunkReader + 'static> {
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
pub(super) struct Stretch<T>(Box<dyn Numbers<T>>, &'static str);

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

/// A table of one row group as bytes.
pub(super) fn to_bytes(name: &str, format: u32, columns: &[Column]) -> Result<Bytes, ParquetError> {
    let mut writer = TableWriter::new(Vec::new(), name, format, columns)?;
    writer.write(columns)?;
    Ok(writer.finish()?.into())
}
