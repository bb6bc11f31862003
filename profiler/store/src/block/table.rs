//! One table of a block as a Parquet file: columns in, bytes out, and back.
//!
//! Flat columns, one name each, zstd, encodings that every reader of Parquet knows (also Spark 3.3's). A
//! table says its name and the format's version in the file's own metadata. Columns are found by name, so
//! a later version may add some.

mod front;
mod pages;
mod reader;
mod stretch;
mod thrift;
mod varints;
mod writer;

use bytes::Bytes;
use emberscope_model::FastMap;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::schema::types::Type;
pub(super) use reader::{Room, TableReader};
pub(super) use stretch::Stretch;
pub(super) use writer::{TableWriter, to_bytes};

/// Rows of a page: what is decoded at least to reach one row.
const PAGE_ROWS: usize = 16_384;

/// Bytes of a page, inflated: the writer ends one at 1 MiB, or after 1024 texts more.
const MAX_PAGE: usize = 16 << 20;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Numbers near their neighbours: distances, bit-packed.
    Delta,
    /// Numbers in patterns that come again: left to zstd.
    Plain,
    /// Few different values: places in a dictionary.
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

/// A column of a table, before it is written.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: &'static str,
    pub how: How,
    pub values: Values,
}

/// The texts of a column in one piece of memory: one of its own for each text would take three times as much.
struct Texts<'a> {
    bytes: Vec<u8>,
    /// From where to where in `bytes` each text is.
    spans: Vec<(usize, usize)>,
    /// Where those are that are there already; None: each is another.
    known: Option<FastMap<&'a str, (usize, usize)>>,
}

impl<'a> Texts<'a> {
    fn new(how: How) -> Self {
        let known = (how == How::Dictionary).then(FastMap::default);
        Self { bytes: Vec::new(), spans: Vec::new(), known }
    }

    fn push(&mut self, text: &'a str) {
        let mut put = || {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(text.as_bytes());
            (from, self.bytes.len())
        };
        let span = match &mut self.known {
            Some(known) => *known.entry(text).or_insert_with(put),
            None => put(),
        };
        self.spans.push(span);
    }

    fn finish(self) -> Vec<ByteArray> {
        let bytes = Bytes::from(self.bytes);
        self.spans.iter().map(|(from, until)| ByteArray::from(bytes.slice(*from..*until))).collect()
    }
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
        let mut texts = Texts::new(how);
        values.into_iter().for_each(|text| texts.push(text));
        Self { name, how, values: Values::Text(texts.finish()) }
    }
    pub fn maybe<'a>(
        name: &'static str,
        how: How,
        values: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Self {
        let (mut texts, mut there) = (Texts::new(how), Vec::new());
        for value in values {
            there.push(i16::from(value.is_some()));
            value.into_iter().for_each(|text| texts.push(text));
        }
        Self { name, how, values: Values::Maybe(texts.finish(), there) }
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
