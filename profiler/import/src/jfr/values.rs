//! Values of a chunk, one after the other, as the metadata say what they are made of.
//!
//! In: bytes and types. Out: numbers and texts of the fields that are asked for; others are walked over. Limits: [`DEPTH`]
//! values in values; [`STEPS`] fields for each byte of the chunk.

use super::bytes::{Bad, Reader, Text};
use super::metadata::{Class, Field, Types};

/// Most values in values.
const DEPTH: usize = 16;
/// Types without any field take no bytes: fields are counted too.
const STEPS: usize = 4;

/// Reads fields of values of one chunk.
pub struct Values<'t> {
    types: &'t Types,
    text: Option<i64>,
    steps: usize,
}

impl<'t> Values<'t> {
    /// A reader for a chunk of so many bytes.
    pub fn new(types: &'t Types, bytes: usize) -> Self {
        let steps = bytes.saturating_mul(STEPS).saturating_add(1 << 20);
        Self { types, text: types.number("java.lang.String"), steps }
    }

    /// The type of a number.
    ///
    /// # Errors
    /// The metadata lack it.
    pub fn class(&self, number: i64, reader: &Reader<'_>) -> Result<&'t Class, Bad> {
        self.types
            .get(number)
            .ok_or_else(|| reader.bad(format!("is of type {number}, which the metadata lack")))
    }

    /// Walks over a field.
    ///
    /// # Errors
    /// Its type is one that the metadata lack, values nest deeper than [`DEPTH`], there are more than [`STEPS`] for each byte
    /// of the chunk, or the chunk ends before.
    pub fn skip(&mut self, field: &Field, reader: &mut Reader<'_>) -> Result<(), Bad> {
        self.skip_field(field, reader, 0)
    }

    fn skip_field(&mut self, field: &Field, reader: &mut Reader<'_>, depth: usize) -> Result<(), Bad> {
        let count = if field.list { reader.count()? } else { 1 };
        for _ in 0..count {
            if field.pooled {
                self.step(reader)?;
                reader.long()?;
            } else {
                self.skip_value(field.class, reader, depth)?;
            }
        }
        Ok(())
    }

    /// Counts a field.
    ///
    /// # Errors
    /// There are more than [`STEPS`] for each byte of the chunk.
    pub fn step(&mut self, reader: &Reader<'_>) -> Result<(), Bad> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| reader.bad("has more values than bytes"))?;
        Ok(())
    }

    /// Walks over a value of a type, inside of so many others.
    ///
    /// # Errors
    /// As for [`skip`](Self::skip).
    pub fn skip_value(&mut self, number: i64, reader: &mut Reader<'_>, depth: usize) -> Result<(), Bad> {
        self.step(reader)?;
        let class = self.class(number, reader)?;
        match class.name.as_str() {
            "boolean" | "byte" => reader.byte().map(|_| ()),
            "short" | "char" => reader.short().map(|_| ()),
            "int" => reader.int().map(|_| ()),
            "long" => reader.long().map(|_| ()),
            "float" => reader.take(4).map(|_| ()),
            "double" => reader.take(8).map(|_| ()),
            _ if Some(number) == self.text => reader.text().map(|_| ()),
            _ if depth >= DEPTH => Err(reader.bad("has values that nest too deep")),
            _ => class.fields.iter().try_for_each(|field| self.skip_field(field, reader, depth + 1)),
        }
    }

    /// A field that is a number, or a place in a pool; another is walked over and is 0.
    ///
    /// # Errors
    /// Its type is one that the metadata lack, values nest deeper than [`DEPTH`], there are more than [`STEPS`] for each byte
    /// of the chunk, or the chunk ends before.
    pub fn number(&mut self, field: &Field, reader: &mut Reader<'_>) -> Result<i64, Bad> {
        if field.list {
            return self.skip(field, reader).map(|()| 0);
        }
        self.step(reader)?;
        if field.pooled {
            return reader.long();
        }
        match self.class(field.class, reader)?.name.as_str() {
            "boolean" | "byte" => reader.byte().map(i64::from),
            "short" | "char" => reader.short(),
            "int" => reader.int(),
            "long" => reader.long(),
            _ => self.skip(field, reader).map(|()| 0),
        }
    }

    /// A field that is a text, in the pool or not; another is walked over and is null.
    ///
    /// # Errors
    /// Its type is one that the metadata lack, values nest deeper than [`DEPTH`], there are more than [`STEPS`] for each byte
    /// of the chunk, or the chunk ends before.
    pub fn text<'a>(&mut self, field: &Field, reader: &mut Reader<'a>) -> Result<Text<'a>, Bad> {
        if field.list || Some(field.class) != self.text {
            return self.skip(field, reader).map(|()| Text::Null);
        }
        self.step(reader)?;
        if field.pooled { reader.long().map(Text::Pool) } else { reader.text() }
    }
}
