//! A call tree as a pprof profile.
//!
//! In: an [`Answer`] and which of its numbers are wanted. Out: a [`Profile`] with one
//! sample for each node that has a value of its own, leaf first, with lines, signatures and the files
//! that code came from. Refused when its stacks hold more than [`MAX_FRAMES`] frames in all.

pub mod numbers;
mod proto;

pub use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

use super::{ExportError, Unit};
use emberscope_model::{Answer, Frame, SampleKind, TimeRange, Tree, ValueFacts};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Most frames of all samples together: 8 bytes each, so 32 MB.
pub const MAX_FRAMES: usize = 4 << 20;

/// The answer's stacks hold more than [`MAX_FRAMES`] frames in all.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the profile has more than {MAX_FRAMES} frames: narrow the time range or the selection")]
pub struct TooManyFrames;

/// Writes the answer with these of its numbers.
///
/// # Errors
/// [`TooManyFrames`]: the stacks have more than [`MAX_FRAMES`] together.
pub fn profile(answer: &Answer, units: &[Unit]) -> Result<Profile, TooManyFrames> {
    let mut out = Writer::begin(answer.range, answer.quality.kind, units);
    out.samples(&answer.tree, units)?;
    Ok(out.profile)
}

/// A profile of single stacks, in the making, which is kept beside those of other kinds.
pub struct Stacks {
    writer: Writer,
    units: &'static [Unit],
}

impl Stacks {
    /// A profile of no stacks yet.
    pub fn new(range: TimeRange, kind: SampleKind) -> Self {
        let units = Unit::beside_others(kind);
        Self { writer: Writer::begin(range, kind, units), units }
    }

    /// Adds a stack, its frames from the root.
    pub fn add(&mut self, frames: &[Arc<Frame>], count: u64, weight: u64) {
        let location_id = frames.iter().rev().map(|frame| self.writer.location(frame)).collect();
        let value = self.units.iter().map(|unit| signed(unit.of(count, weight)));
        self.writer.profile.sample.push(Sample { location_id, value: value.collect(), ..Sample::default() });
    }

    /// The profile of the stacks that were added.
    pub fn finish(self) -> Profile {
        self.writer.profile
    }
}

/// A profile packed with gzip.
pub fn packed(profile: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packed.write_all(profile);
    packed.finish().unwrap_or_default()
}

/// A file as `go tool pprof` reads it: packed with gzip.
pub(super) fn file(answer: &Answer, out: &mut impl Write) -> Result<(), ExportError> {
    let profile = profile(answer, &Unit::ALL)?;
    let written = out.write_all(&packed(&profile.encode_to_vec()));
    written.map_err(|source| ExportError::Write { format: "pprof", source })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The profile and what is in its tables already.
#[derive(Default)]
struct Writer {
    profile: Profile,
    texts: HashMap<String, i64>,
    mappings: HashMap<Arc<str>, u64>,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<Arc<Frame>, u64>,
}

impl Writer {
    fn begin(range: TimeRange, kind: SampleKind, units: &[Unit]) -> Self {
        let mut out = Writer::default();
        out.text("");
        for unit in units {
            let value = out.value_type(unit.facts(kind));
            out.profile.sample_type.push(value);
        }
        out.profile.period_type = Some(out.value_type(kind.facts().period));
        out.profile.time_nanos = signed(range.from.0);
        out.profile.duration_nanos = signed(range.until.0.saturating_sub(range.from.0));
        out
    }

    fn value_type(&mut self, value: ValueFacts) -> ValueType {
        ValueType { r#type: self.text(value.name), unit: self.text(value.unit) }
    }

    fn samples(&mut self, tree: &Tree, units: &[Unit]) -> Result<(), TooManyFrames> {
        let mut location_of: Vec<u64> = Vec::with_capacity(tree.nodes.len());
        let mut frames = 0;
        for (index, node) in tree.nodes.iter().enumerate() {
            // The root is no function.
            location_of.push(if index == 0 { 0 } else { self.location(&node.frame) });
            let value: Vec<i64> = units.iter().map(|unit| signed(unit.own(node))).collect();
            if value.iter().all(|value| *value == 0) {
                continue;
            }
            let mut location_id = Vec::new();
            let mut at = index;
            while let Some(&location) = location_of.get(at)
                && location != 0
            {
                location_id.push(location);
                at = tree.nodes.get(at).map_or(0, |n| n.parent as usize);
            }
            frames += location_id.len();
            if frames > MAX_FRAMES {
                return Err(TooManyFrames);
            }
            self.profile.sample.push(Sample { location_id, value, ..Sample::default() });
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.texts.get(text) {
            return index;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, frame: &Arc<Frame>) -> u64 {
        if let Some(&id) = self.locations.get(frame) {
            return id;
        }
        let function_id = self.function(frame);
        let mapping_id = self.mapping(&frame.module);
        let id = self.profile.location.len() as u64 + 1;
        let line = vec![Line { function_id, line: i64::from(frame.line) }];
        self.profile.location.push(Location { id, mapping_id, line, ..Location::default() });
        self.locations.insert(frame.clone(), id);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.text(&frame.name);
        let system_name = match &frame.signature {
            Some(signature) => self.text(&format!("{}{signature}", frame.name)),
            None => name,
        };
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry((name, system_name)).or_insert(next);
        if id == next {
            self.profile.function.push(Function { id, name, system_name, ..Function::default() });
        }
        id
    }

    fn mapping(&mut self, module: &Arc<str>) -> u64 {
        if module.is_empty() {
            return 0;
        }
        if let Some(&id) = self.mappings.get(module) {
            return id;
        }
        let id = self.profile.mapping.len() as u64 + 1;
        let filename = self.text(module);
        self.profile.mapping.push(Mapping { id, filename, has_functions: true });
        self.mappings.insert(module.clone(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{FrameKind, Node, Quality, WallTime};

    fn node(name: &str, module: &str, parent: u32, own: u64) -> Node {
        let frame = Arc::new(Frame::new(FrameKind::Native, name, module));
        Node {
            frame,
            parent,
            self_count: own,
            self_weight: own * 10,
            total_count: own,
            total_weight: own * 10,
        }
    }

    #[test]
    fn stacks_come_out_leaf_first_with_shared_tables() {
        let nodes = vec![
            node("total", "", 0, 0),
            node("main", "app", 0, 1),
            node("f", "app", 1, 2),
            node("f", "app", 2, 3),
            node("g", "", 1, 0),
        ];
        let range = TimeRange { from: WallTime(5), until: WallTime(25) };
        let answer = Answer { tree: Tree { nodes }, range, windows: 1, quality: Quality::default() };
        let p = profile(&answer, &[Unit::Weight]).expect("small");
        let text = |i: i64| p.string_table[i as usize].as_str();
        let stacks: Vec<(Vec<&str>, i64)> = p
            .sample
            .iter()
            .map(|s| {
                let name = |id: &u64| {
                    let line = &p.location[*id as usize - 1].line[0];
                    text(p.function[line.function_id as usize - 1].name)
                };
                (s.location_id.iter().map(name).collect(), s.value[0])
            })
            .collect();
        assert_eq!(stacks, [(vec!["main"], 10), (vec!["f", "main"], 20), (vec!["f", "f", "main"], 30)]);
        assert_eq!((p.function.len(), p.mapping.len(), text(p.mapping[0].filename)), (3, 1, "app"));
        assert_eq!((text(p.sample_type[0].r#type), text(p.sample_type[0].unit)), ("cpu", "nanoseconds"));
        assert_eq!((p.time_nanos, p.duration_nanos, text(0)), (5, 20, ""));
    }
}
