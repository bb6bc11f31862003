//! A chunk's pools of constants, as far as samples need them: stacks, methods, names.
//!
//! In: the check points of a chunk, which hold values of any type one after the other; what is not needed is walked
//! over by what the metadata say of it. Out: [`Pools`]. Values that name each other are looked up when they are asked for.
//! Limits: those of [`Values`], and [`limits::MEMORY`].

use super::super::{limits, name};
use super::bytes::{Bad, Reader, Text};
use super::metadata::Class;
use super::values::Values;
use std::collections::HashMap;

/// A frame as the recording has it.
#[derive(Clone, Copy, Debug)]
pub struct RawFrame {
    pub method: i64,
    pub line: u32,
    pub kind: i64,
}

/// A stack, leaf first.
#[derive(Clone, Debug, Default)]
pub struct RawTrace {
    pub frames: Box<[RawFrame]>,
    pub truncated: bool,
}

/// A method: numbers of its class, name and descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawMethod {
    pub class: i64,
    pub name: i64,
    pub descriptor: i64,
}

/// Values by number. Classes, and the parts of methods, are numbers of symbols; names of threads, kinds of frames and
/// states of threads are texts.
#[derive(Debug, Default)]
pub struct Pools {
    pub traces: HashMap<i64, RawTrace>,
    pub methods: HashMap<i64, RawMethod>,
    pub classes: HashMap<i64, i64>,
    pub symbols: HashMap<i64, String>,
    pub threads: HashMap<i64, String>,
    pub kinds: HashMap<i64, String>,
    pub states: HashMap<i64, String>,
    texts: HashMap<i64, String>,
    /// Bytes of all pools, estimated.
    memory: usize,
}

impl Pools {
    /// A text of an event or a value.
    pub fn text(&self, text: &Text<'_>) -> String {
        match text {
            Text::Null => String::new(),
            Text::Here(text) => text.to_string(),
            Text::Pool(number) => self.texts.get(number).cloned().unwrap_or_default(),
        }
    }

    /// The name of a class as people write it; empty: it is not there.
    pub fn class(&self, number: i64) -> String {
        let symbol = self.classes.get(&number).and_then(|name| self.symbols.get(name));
        symbol.map(|symbol| name::class(symbol)).unwrap_or_default()
    }

    /// Reads the pools of a check point; `reader` stands behind its size and type.
    ///
    /// # Errors
    /// As for [`Values`], or the pools take more memory than [`limits::MEMORY`].
    pub fn read(&mut self, values: &mut Values<'_>, reader: &mut Reader<'_>) -> Result<(), Bad> {
        for _ in 0..3 {
            // Start, length, the distance to the check point before.
            reader.long()?;
        }
        reader.byte()?;
        for _ in 0..reader.count()? {
            let number = reader.long()?;
            let class = values.class(number, reader)?;
            for _ in 0..reader.count()? {
                let key = reader.long()?;
                let before = reader.at;
                self.value(key, number, class, values, reader)?;
                // A value of two bytes takes a place in a table; a frame of four takes twenty-four.
                self.memory += 96 + 6 * (reader.at - before);
                if self.memory > limits::MEMORY {
                    return Err(reader.bad(format!("has pools of more than {} MiB", limits::MEMORY >> 20)));
                }
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        key: i64,
        number: i64,
        class: &Class,
        values: &mut Values<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<(), Bad> {
        match class.name.as_str() {
            "java.lang.String" => {
                let text = reader.text()?;
                let text = self.text(&text);
                self.texts.insert(key, text);
            }
            "jdk.types.StackTrace" => {
                let trace = trace(class, values, reader)?;
                self.traces.insert(key, trace);
            }
            "jdk.types.Method" => {
                let mut method = RawMethod::default();
                for field in &class.fields {
                    let number = values.number(field, reader)?;
                    match field.name.as_str() {
                        "type" => method.class = number,
                        "name" => method.name = number,
                        "descriptor" => method.descriptor = number,
                        _ => {}
                    }
                }
                self.methods.insert(key, method);
            }
            "java.lang.Class" => {
                for field in &class.fields {
                    let number = values.number(field, reader)?;
                    if field.name == "name" {
                        self.classes.insert(key, number);
                    }
                }
            }
            "jdk.types.Symbol" => {
                let text = self.texts_of(class, values, reader, &["string"])?;
                self.symbols.insert(key, text);
            }
            "jdk.types.FrameType" => {
                let text = self.texts_of(class, values, reader, &["description"])?;
                self.kinds.insert(key, text);
            }
            "jdk.types.ThreadState" => {
                let text = self.texts_of(class, values, reader, &["name"])?;
                self.states.insert(key, text);
            }
            "java.lang.Thread" => {
                let text = self.texts_of(class, values, reader, &["javaName", "osName"])?;
                self.threads.insert(key, text);
            }
            _ => values.skip_value(number, reader, 0)?,
        }
        Ok(())
    }

    /// The first of some fields that has a text.
    fn texts_of(
        &self,
        class: &Class,
        values: &mut Values<'_>,
        reader: &mut Reader<'_>,
        names: &[&str],
    ) -> Result<String, Bad> {
        let mut best = (names.len(), String::new());
        for field in &class.fields {
            match names.iter().position(|name| *name == field.name) {
                Some(place) => {
                    let text = values.text(field, reader)?;
                    let text = self.text(&text);
                    if place < best.0 && !text.is_empty() {
                        best = (place, text);
                    }
                }
                None => values.skip(field, reader)?,
            }
        }
        Ok(best.1)
    }
}

fn trace(class: &Class, values: &mut Values<'_>, reader: &mut Reader<'_>) -> Result<RawTrace, Bad> {
    let (mut frames, mut truncated) = (Vec::new(), false);
    for field in &class.fields {
        match field.name.as_str() {
            "truncated" => truncated = values.number(field, reader)? != 0,
            "frames" if field.list && !field.pooled => {
                let inner = values.class(field.class, reader)?;
                let count = reader.count()?;
                if count > limits::FRAMES {
                    return Err(reader.bad(format!("has a stack of {count} frames")));
                }
                for _ in 0..count {
                    // Each has a method at least: a byte.
                    values.step(reader)?;
                    if inner.fields.is_empty() {
                        return Err(reader.bad("has frames without fields"));
                    }
                    let mut frame = RawFrame { method: 0, line: 0, kind: 0 };
                    for field in &inner.fields {
                        let number = values.number(field, reader)?;
                        match field.name.as_str() {
                            "method" => frame.method = number,
                            "lineNumber" => frame.line = u32::try_from(number).unwrap_or_default(),
                            "type" => frame.kind = number,
                            _ => {}
                        }
                    }
                    frames.push(frame);
                }
            }
            _ => values.skip(field, reader)?,
        }
    }
    Ok(RawTrace { frames: frames.into(), truncated })
}
