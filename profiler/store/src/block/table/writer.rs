//! Writes a table: rows in, a Parquet file out.

use super::{Column, How, PAGE_ROWS};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// Writes tables of one shape, a row group at a time.
pub(in super::super) struct TableWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file; `shape` has the names, types and encodings of the columns, its values do not count.
    ///
    /// # Errors
    /// `out` does not take the file's first bytes, or Parquet refuses a column's type.
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

    /// Adds rows, as a row group of their own.
    ///
    /// # Errors
    /// `out` does not take the bytes, or the columns are not those of the shape, all of one length.
    pub fn write(&mut self, columns: &[Column]) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close().map(|_| ())
    }

    /// Ends the file with its footer.
    ///
    /// # Errors
    /// `out` does not take the bytes: the file has no footer then, and cannot be read.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.0.into_inner()
    }
}

/// A table of one row group as bytes.
pub(in super::super) fn to_bytes(name: &str, format: u32, columns: &[Column]) -> Result<Bytes, ParquetError> {
    let mut writer = TableWriter::new(Vec::new(), name, format, columns)?;
    writer.write(columns)?;
    Ok(writer.finish()?.into())
}
