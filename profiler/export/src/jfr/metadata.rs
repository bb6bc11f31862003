//! The metadata of a chunk: which types it has and their fields, as elements with attributes whose texts are in a table.

use super::bytes;
use std::collections::HashMap;

/// A type that the chunk describes.
#[derive(Clone, Debug, Default)]
pub struct Class<'a> {
    /// The type's number in the chunk, as events and pools have it.
    pub id: u64,
    /// The type's name, Java's: `jdk.ExecutionSample`, `long`.
    pub name: &'a str,
    /// What the type extends: `jdk.jfr.Event` of events.
    pub extends: &'a str,
    /// A value of the type is its only field's.
    pub simple: bool,
    /// What readers show of the type: its label, its category.
    pub notes: Vec<Note<'a>>,
    /// The type's fields, in the order in which they are written.
    pub fields: Vec<Field<'a>>,
}

/// A field of a type.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// As the JDK calls it: `sampledThread`.
    pub name: &'a str,
    /// The number of the field's type.
    pub class: u64,
    /// A value is a number in the pool of its type.
    pub pooled: bool,
    /// There are any number of values, a count before them.
    pub list: bool,
    /// What readers show of the field: its label, its unit.
    pub notes: Vec<Note<'a>>,
}

/// An annotation: the number of its type and its values.
#[derive(Clone, Debug)]
pub struct Note<'a> {
    /// The number of the annotation's type.
    pub class: u64,
    /// `value`, or `value-0` and so on where `list`.
    pub values: Vec<&'a str>,
    /// The annotation's value is a list.
    pub list: bool,
}

/// Appends the metadata event.
pub fn write(out: &mut Vec<u8>, classes: &[Class<'_>]) {
    let (mut table, mut tree) = (Table::default(), Vec::new());
    table.element(&mut tree, "root", &[], 2);
    table.element(&mut tree, "metadata", &[], classes.len());
    for class in classes {
        let id = class.id.to_string();
        let mut attributes = vec![("id", id.as_str()), ("name", class.name)];
        attributes.extend((!class.extends.is_empty()).then_some(("superType", class.extends)));
        attributes.extend(class.simple.then_some(("simpleType", "true")));
        table.element(&mut tree, "class", &attributes, class.notes.len() + class.fields.len());
        class.notes.iter().for_each(|note| table.note(&mut tree, note));
        for field in &class.fields {
            let of = field.class.to_string();
            let mut attributes = vec![("name", field.name), ("class", of.as_str())];
            attributes.extend(field.pooled.then_some(("constantPool", "true")));
            attributes.extend(field.list.then_some(("dimension", "1")));
            table.element(&mut tree, "field", &attributes, field.notes.len());
            field.notes.iter().for_each(|note| table.note(&mut tree, note));
        }
    }
    table.element(&mut tree, "region", &[("locale", "en_US"), ("gmtOffset", "0")], 0);
    // Start, length and number of the metadata.
    let mut body = vec![0, 0, 1];
    bytes::long(&mut body, table.texts.len() as u64);
    table.texts.iter().for_each(|text| bytes::text(&mut body, text));
    body.extend_from_slice(&tree);
    bytes::framed(out, 0, &body);
}

/// Texts by their place.
#[derive(Default)]
struct Table {
    texts: Vec<String>,
    places: HashMap<String, u64>,
}

impl Table {
    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn element(&mut self, out: &mut Vec<u8>, name: &str, attributes: &[(&str, &str)], inside: usize) {
        bytes::long(out, self.place(name));
        bytes::long(out, attributes.len() as u64);
        for (key, value) in attributes {
            bytes::long(out, self.place(key));
            bytes::long(out, self.place(value));
        }
        bytes::long(out, inside as u64);
    }

    fn note(&mut self, out: &mut Vec<u8>, note: &Note<'_>) {
        let class = note.class.to_string();
        let keys: Vec<String> = match note.list {
            true => (0..note.values.len()).map(|place| format!("value-{place}")).collect(),
            false => vec!["value".to_owned()],
        };
        let mut attributes = vec![("class", class.as_str())];
        attributes.extend(keys.iter().map(String::as_str).zip(note.values.iter().copied()));
        self.element(out, "annotation", &attributes, 0);
    }
}
