//! A flat Parquet table: a line for each stack of each group, for DuckDB, pandas, Spark and spreadsheets.
//!
//! Columns: one for each label of `group` (null where it is not set), `stack` (as of folded stacks), `leaf`, `count`
//! and `weight` (in the unit of the kind: nanoseconds of CPU time). The span is in the file's own metadata
//! (`emberscope.from_ns`, `emberscope.until_ns`). Lines go out in row groups of [`GROUP_BYTES`] of text, so memory
//! holds one of them and the file; stacks lie in the order of their names and each is stored as what differs from
//! the one before.

use super::ExportOptions;
use super::text::clean;
use super::walk::{Below, Path, preorder};
use emberscope_model::{Answer, FrameKind, nobody_waits};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes of text after which a row group is written.
const GROUP_BYTES: usize = 8 << 20;
/// What a prefix frame reads where its label is not set (`model`'s promise of `group`).
pub(super) const NOT_SET: &str = "(none)";

pub(super) fn write<W: Write + Send>(
    answer: &Answer,
    options: &ExportOptions,
    out: &mut W,
) -> io::Result<()> {
    let labels = labels(answer);
    let mut table = Table::new(answer, &labels, out).map_err(io::Error::other)?;
    let (mut path, mut values) = (Path::default(), vec![None; labels.len()]);
    preorder::<io::Error>(&answer.tree, |visit| {
        let frame = &visit.node.frame;
        if visit.depth > 0 && visit.depth <= labels.len() {
            // A prefix frame: labels stand before all frames, each at the depth of its column.
            let value = frame.name.split_once('=').map(|(_, value)| value).filter(|value| *value != NOT_SET);
            if let Some(slot) = values.get_mut(visit.depth - 1) {
                *slot = value.map(str::to_owned);
            }
        } else if visit.depth > labels.len() {
            let name = clean(&frame.name, '_');
            let suffix = if options.annotate { frame.kind.suffix() } else { "" };
            path.set(visit.depth - labels.len(), &format!("{name}{suffix}"));
        }
        if visit.node.self_count > 0 || visit.node.self_weight > 0 {
            let (stack, leaf) = match visit.depth > labels.len() {
                true => (path.text(), &*frame.name),
                false => ("", ""),
            };
            table.line(&values, stack, leaf, visit.node.self_count, visit.node.self_weight)?;
        }
        Ok(Below::Go)
    })?;
    table.finish().map_err(io::Error::other)
}

/// Labels of the prefix frames, from the root on: every way down has the same.
pub(super) fn labels(answer: &Answer) -> Vec<String> {
    let (mut labels, mut at) = (Vec::new(), 0);
    for (place, node) in answer.tree.nodes.iter().enumerate().skip(1) {
        if node.frame.kind == FrameKind::Label && node.parent as usize == at {
            labels.push(node.frame.name.split('=').next().unwrap_or_default().to_owned());
            at = place;
        }
    }
    labels
}

/// The file in the making.
struct Table<'a, W: Write + Send> {
    file: SerializedFileWriter<&'a mut W>,
    /// Values of each label, and whether there is one.
    labels: Vec<(Vec<ByteArray>, Vec<i16>)>,
    stacks: Vec<ByteArray>,
    leaves: Vec<ByteArray>,
    counts: Vec<i64>,
    weights: Vec<i64>,
    bytes: usize,
}

impl<'a, W: Write + Send> Table<'a, W> {
    fn new(answer: &Answer, labels: &[String], out: &'a mut W) -> Result<Self, ParquetError> {
        let text = |name: &str, repetition| {
            let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
            let column = column.with_logical_type(Some(LogicalType::String)).with_repetition(repetition);
            Ok::<_, ParquetError>(Arc::new(column.build()?))
        };
        let number = |name: &str| {
            let column = Type::primitive_type_builder(name, Physical::INT64);
            Ok::<_, ParquetError>(Arc::new(column.with_repetition(Repetition::REQUIRED).build()?))
        };
        let mut fields = Vec::new();
        for label in labels {
            fields.push(text(label, Repetition::OPTIONAL)?);
        }
        fields.extend([text("stack", Repetition::REQUIRED)?, text("leaf", Repetition::REQUIRED)?]);
        fields.extend([number("count")?, number("weight")?]);
        let schema = Type::group_type_builder("stacks").with_fields(fields).build()?;
        let said = |key: &str, value: u64| KeyValue::new(key.to_owned(), value.to_string());
        let stack = || ColumnPath::from("stack");
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_column_dictionary_enabled(stack(), false)
            .set_column_encoding(stack(), Encoding::DELTA_BYTE_ARRAY)
            .set_created_by(concat!("emberscope ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![
                said("emberscope.from_ns", answer.range.from.0),
                said("emberscope.until_ns", answer.range.until.0),
            ]));
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        let labels = vec![(Vec::new(), Vec::new()); labels.len()];
        let (stacks, leaves, counts, weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file, labels, stacks, leaves, counts, weights, bytes: 0 })
    }

    fn line(
        &mut self,
        values: &[Option<String>],
        stack: &str,
        leaf: &str,
        count: u64,
        weight: u64,
    ) -> io::Result<()> {
        for ((texts, there), value) in self.labels.iter_mut().zip(values) {
            there.push(i16::from(value.is_some()));
            texts.extend(value.as_deref().map(ByteArray::from));
        }
        self.stacks.push(stack.into());
        self.leaves.push(leaf.into());
        self.counts.push(i64::try_from(count).unwrap_or(i64::MAX));
        self.weights.push(i64::try_from(weight).unwrap_or(i64::MAX));
        // A value that is held takes some words beside its text.
        self.bytes += stack.len() + leaf.len() + 64 * (values.len() + 2);
        if self.bytes < GROUP_BYTES {
            return Ok(());
        }
        if nobody_waits() {
            return Err(io::Error::other("nobody waits for it"));
        }
        self.group().map_err(io::Error::other)
    }

    /// Writes the lines that are held as a row group.
    fn group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for (texts, there) in &mut self.labels {
            if let Some(mut column) = group.next_column()? {
                column.typed::<ByteArrayType>().write_batch(texts, Some(there), None)?;
                column.close()?;
            }
            texts.clear();
            there.clear();
        }
        for texts in [&mut self.stacks, &mut self.leaves] {
            if let Some(mut column) = group.next_column()? {
                column.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                column.close()?;
            }
            texts.clear();
        }
        for numbers in [&mut self.counts, &mut self.weights] {
            if let Some(mut column) = group.next_column()? {
                column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                column.close()?;
            }
            numbers.clear();
        }
        self.bytes = 0;
        group.close().map(|_| ())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        if !self.stacks.is_empty() {
            self.group()?;
        }
        self.file.close().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, render};
    use super::*;
    use bytes::Bytes;
    use emberscope_model::{Frame, Node, Quality, TimeRange, Tree, WallTime};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn answer(grouped: bool) -> Answer {
        let node = |kind, name: &str, parent, own: u64| Node {
            frame: Arc::new(Frame::new(kind, name, "")),
            parent,
            self_count: own,
            self_weight: own * 10,
            total_count: own,
            total_weight: own * 10,
        };
        let mut nodes = vec![node(FrameKind::Label, "total", 0, u64::from(!grouped))];
        if grouped {
            nodes.push(node(FrameKind::Label, "stage=3", 0, 2));
            nodes.push(node(FrameKind::JavaCompiled, "a.B;c", 1, 0));
            nodes.push(node(FrameKind::Native, "memcpy", 2, 5));
            nodes.push(node(FrameKind::Label, "stage=(none)", 0, 0));
            nodes.push(node(FrameKind::Native, "main", 4, 7));
        }
        let range = TimeRange { from: WallTime(5), until: WallTime(25) };
        Answer { tree: Tree::with_totals(nodes), range, windows: 1, quality: Quality::default() }
    }

    #[test]
    fn a_line_for_each_stack_of_each_group() {
        let bytes = render(Format::Parquet, &answer(true), &ExportOptions::default()).unwrap();
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let mut lines = Vec::new();
        for row in file.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let text = |place| row.get_string(place).map_or("-", |text| text.as_str()).to_owned();
            lines.push((text(0), text(1), text(2), row.get_long(3).unwrap(), row.get_long(4).unwrap()));
        }
        let line = |stage: &str, stack: &str, leaf: &str, count: i64| {
            (stage.to_owned(), stack.to_owned(), leaf.to_owned(), count, count * 10)
        };
        let want =
            [line("3", "", "", 2), line("3", "a.B:c;memcpy", "memcpy", 5), line("-", "main", "main", 7)];
        assert_eq!(lines, want);
        let said = file.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(said[0].value.as_deref(), Some("5"));
    }

    #[test]
    fn without_groups_and_without_samples() {
        let bytes = render(Format::Parquet, &answer(false), &ExportOptions::default()).unwrap();
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 1);
        let empty = Answer { tree: Tree { nodes: Vec::new() }, ..answer(false) };
        let bytes = render(Format::Parquet, &empty, &ExportOptions::default()).unwrap();
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }
}
