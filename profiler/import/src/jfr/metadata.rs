//! A chunk's metadata: which types it has, and their fields.
//!
//! In: a table of texts, then elements (name, attributes, children), all by places in the table. Out: [`Types`]. Only
//! `class` and what is in it matters. Limits: [`DEPTH`]; counts are compared with the bytes that are left.

use super::bytes::{Bad, Reader, Text};
use std::collections::HashMap;

/// Elements in elements: `root/metadata/class/field/annotation` are five.
const DEPTH: usize = 16;

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As the class in Java calls it: `sampledThread`.
    pub name: String,
    /// Number of its type.
    pub class: i64,
    /// A value is a number in the pool of its type.
    pub pooled: bool,
    /// There are any number of it, a count before them.
    pub list: bool,
    /// A value is a time or a length of time in ticks.
    pub ticks: bool,
}

/// A type, as the metadata describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Java's: `jdk.ExecutionSample`, `long`.
    pub name: String,
    /// The type's fields, in the order in which they are written.
    pub fields: Vec<Field>,
}

/// A chunk's types by number, and their numbers by name.
#[derive(Debug, Default)]
pub struct Types {
    by_number: HashMap<i64, Class>,
    by_name: HashMap<String, i64>,
}

impl Types {
    /// A type by its number.
    pub fn get(&self, number: i64) -> Option<&Class> {
        self.by_number.get(&number)
    }
    /// The number of a type, by its name.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.by_name.get(name).copied()
    }
}

struct Element<'a> {
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
    fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }
}

/// Reads the metadata that `reader` stands before.
///
/// # Errors
/// There are no metadata here, they name texts that they do not have, a field has no type, elements nest deeper than
/// [`DEPTH`], or the chunk ends before.
pub fn read(reader: &mut Reader<'_>) -> Result<Types, Bad> {
    let at = reader.at;
    reader.int()?;
    if reader.long()? != 0 {
        return Err(Bad { at, says: "has no metadata where the header says".to_owned() });
    }
    for _ in 0..3 {
        // Start, length, number.
        reader.long()?;
    }
    let count = reader.count()?;
    let mut texts = Vec::with_capacity(count.min(1 << 16));
    for _ in 0..count {
        texts.push(match reader.text()? {
            Text::Here(text) => text.into_owned(),
            Text::Null | Text::Pool(_) => String::new(),
        });
    }
    let mut types = Types::default();
    let mut walk = Walk { texts: &texts, types: &mut types };
    walk.element(reader, 0, None)?;
    Ok(types)
}

struct Walk<'a> {
    texts: &'a [String],
    types: &'a mut Types,
}

impl<'a> Walk<'a> {
    fn text(&self, reader: &mut Reader<'_>) -> Result<&'a str, Bad> {
        let at = reader.at;
        let place = reader.int()?;
        let found = usize::try_from(place).ok().and_then(|place| self.texts.get(place));
        found
            .map(String::as_str)
            .ok_or_else(|| Bad { at, says: format!("names text {place}, which is not there") })
    }

    /// An element and those in it. Out: the class that it is, or adds to the one that it is in.
    fn element(
        &mut self,
        reader: &mut Reader<'_>,
        depth: usize,
        outer: Option<&mut Class>,
    ) -> Result<(), Bad> {
        if depth > DEPTH {
            return Err(reader.bad("has metadata that nest too deep"));
        }
        let name = self.text(reader)?;
        let count = reader.count()?;
        let mut element = Element { attributes: Vec::with_capacity(count.min(16)) };
        for _ in 0..count {
            let pair = (self.text(reader)?, self.text(reader)?);
            element.attributes.push(pair);
        }
        let children = reader.count()?;
        match name {
            "class" => {
                let mut class =
                    Class { name: element.get("name").unwrap_or_default().to_owned(), fields: Vec::new() };
                for _ in 0..children {
                    self.element(reader, depth + 1, Some(&mut class))?;
                }
                if let Some(number) = element.number("id") {
                    self.types.by_name.insert(class.name.clone(), number);
                    self.types.by_number.insert(number, class);
                }
            }
            "field" => {
                let mut inner = Class::default();
                for _ in 0..children {
                    self.element(reader, depth + 1, Some(&mut inner))?;
                }
                let Some(class) = element.number("class") else {
                    return Err(reader.bad("has a field without a type"));
                };
                if let Some(outer) = outer {
                    outer.fields.push(Field {
                        name: element.get("name").unwrap_or_default().to_owned(),
                        class,
                        pooled: element.get("constantPool") == Some("true"),
                        list: element.number("dimension").unwrap_or_default() > 0,
                        // An annotation left its mark below.
                        ticks: inner.name == TICKS,
                    });
                }
            }
            "annotation" => {
                if element.get("value") == Some(TICKS)
                    && let Some(outer) = outer
                    && outer.name.is_empty()
                {
                    TICKS.clone_into(&mut outer.name);
                }
                for _ in 0..children {
                    self.element(reader, depth + 1, None)?;
                }
            }
            _ => {
                for _ in 0..children {
                    self.element(reader, depth + 1, None)?;
                }
            }
        }
        Ok(())
    }
}

/// The value of `jdk.jfr.Timespan` and `jdk.jfr.Timestamp` for ticks.
const TICKS: &str = "TICKS";
