//! A JDK Flight Recorder file (version 2.1), as JDK Mission Control's parser and `jfr` read it.
//!
//! In: an [`Answer`]. Out: one chunk: events, a check point with all pools, metadata. CPU samples are `jdk.ExecutionSample`,
//! waits `profiler.WallClockSample` of a thread that sleeps, other kinds events of ours; each has the labels of the answer's
//! groups as fields (`stage`, `task`, ...), how many samples it stands for, and what they weigh. A thread is a set of labels:
//! answers know no others. Limits: `MAX_EVENTS` of layout.rs, [`super::pprof::MAX_FRAMES`], [`super::MAX_BYTES`].

mod bytes;
mod layout;
mod metadata;
mod pools;
mod types;

use super::flat::{NOT_SET, labels};
use super::text::one_line;
use super::{ExportError, ExportOptions, MAX_BYTES};
use emberscope_model::{Answer, FrameKind, SampleKind, nobody_waits};
use layout::{Each, Run};
use pools::Pools;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use types::Shape;

/// Bytes of a chunk's header.
const HEADER: usize = 68;
/// Key of the setting that says who wrote a recording; its value is the version.
pub const WRITER: &str = "emberscope";
/// The event that samples of a kind are written as: `jdk.ExecutionSample`, `emberscope.Alloc`.
pub fn event(kind: SampleKind) -> String {
    Shape::of(kind).name
}

/// Events between two questions whether anybody still waits.
const ASK: usize = 1 << 14;

/// An answer as a recording of one chunk.
pub(super) fn file(answer: &Answer, options: &ExportOptions) -> Result<Vec<u8>, ExportError> {
    let kind = answer.quality.kind;
    let root = answer.tree.nodes.first().map_or((0, 0), |root| (root.total_count, root.total_weight));
    let each = Each::of(kind, root.0, root.1);
    let labels = labels(answer);
    let mut chunk = Chunk::of(kind, labels.len());
    let runs = chunk.runs(answer, each)?;
    chunk.settings(kind, each, root);
    chunk.name(each, &options.title);
    chunk.samples(answer, runs)?;
    chunk.finish(answer, &labels)
}

/// Labels that samples have in common.
#[derive(Clone, Default)]
struct Set {
    /// Numbers of the values; None: not set.
    values: Vec<Option<u64>>,
    /// All values, as the thread's name.
    name: String,
    /// The thread's number; 0: no samples yet.
    thread: u64,
}

/// A chunk in the making.
struct Chunk {
    /// Room for the header, then what is written.
    out: Vec<u8>,
    pools: Pools,
    shape: Shape,
    /// Sets of labels, by place; the first has none.
    sets: Vec<Set>,
}

impl Chunk {
    fn of(kind: SampleKind, labels: usize) -> Self {
        let none = Set { values: vec![None; labels], ..Set::default() };
        Self { out: vec![0; HEADER], pools: Pools::default(), shape: Shape::of(kind), sets: vec![none] }
    }

    /// The samples of each stack of each group.
    fn runs(&mut self, answer: &Answer, each: Each) -> Result<Vec<Run>, ExportError> {
        let nodes = &answer.tree.nodes;
        // Of each node: its set of labels, its depth among them, its frame (None of a label).
        let mut places: Vec<(u32, usize, Option<u32>)> = Vec::with_capacity(nodes.len());
        let mut known: HashMap<(u32, Arc<str>), u32> = HashMap::new();
        let (mut runs, mut frames) = (Vec::new(), Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            let (above, depth, _) = places.get(node.parent as usize).copied().unwrap_or_default();
            places.push(match node.frame.kind {
                _ if index == 0 => (0, 0, None),
                FrameKind::Label => {
                    let key = (above, node.frame.name.clone());
                    let set = known.entry(key).or_insert_with(|| self.set(above, depth, &node.frame.name));
                    (*set, depth + 1, None)
                }
                _ => (above, depth, Some(self.pools.frame(&node.frame))),
            });
            if node.self_count == 0 && node.self_weight == 0 {
                continue;
            }
            frames.clear();
            let mut at = index;
            while let Some((_, _, Some(frame))) = places.get(at) {
                frames.push(*frame);
                at = nodes.get(at).map_or(0, |node| node.parent as usize);
            }
            let trace = self.pools.trace(&frames)?;
            self.check()?;
            let set = places.last().map_or(0, |(set, ..)| *set);
            self.name_thread(set);
            runs.push(Run::new((set, trace), each, node.self_count, node.self_weight));
        }
        Ok(runs)
    }

    /// A set of labels with one more, `key=value`.
    fn set(&mut self, above: u32, depth: usize, label: &str) -> u32 {
        let mut set = self.sets.get(above as usize).cloned().unwrap_or_default();
        set.thread = 0;
        if let Some((_, value)) = label.split_once('=').filter(|(_, value)| *value != NOT_SET)
            && let Some(slot) = set.values.get_mut(depth)
        {
            *slot = Some(self.pools.text(value));
            set.name.push_str(if set.name.is_empty() { "" } else { ", " });
            set.name.push_str(label);
        }
        self.sets.push(set);
        (self.sets.len() - 1) as u32
    }

    fn name_thread(&mut self, set: u32) {
        if let Some(set) = self.sets.get_mut(set as usize).filter(|set| set.thread == 0) {
            let name = if set.name.is_empty() { "(all)" } else { &set.name };
            set.thread = self.pools.thread(name);
        }
    }

    fn check(&self) -> Result<(), ExportError> {
        match self.out.len().saturating_add(self.pools.size()) > MAX_BYTES {
            true => Err(ExportError::TooLarge { limit: MAX_BYTES }),
            false => Ok(()),
        }
    }

    /// Appends an event at the beginning.
    fn event(&mut self, number: u64, fields: impl FnOnce(&mut Vec<u8>)) {
        let mut body = vec![0];
        fields(&mut body);
        bytes::framed(&mut self.out, number, &body);
    }

    fn setting(&mut self, id: u64, name: &str, value: &str) {
        self.event(types::SETTING, |out| {
            bytes::long(out, id);
            bytes::text(out, name);
            bytes::text(out, value);
        });
    }

    /// Who wrote it, and what a sample stands for, where the JDK and async-profiler say it.
    fn settings(&mut self, kind: SampleKind, each: Each, (count, weight): (u64, u64)) {
        self.setting(types::RECORDING, WRITER, env!("CARGO_PKG_VERSION"));
        match (kind, each) {
            (SampleKind::Cpu, _) if count > 0 => {
                self.setting(types::SAMPLE, "period", &format!("{} ns", weight.div_ceil(count)));
            }
            (SampleKind::OffCpu, Each::Weight(each)) => {
                self.setting(types::SAMPLE, "wall", &each.to_string());
            }
            _ => {}
        }
    }

    /// The recording's name: what was selected, and what an event stands for where that is not one sample.
    fn name(&mut self, each: Each, title: &str) {
        let each = match each {
            Each::Samples(1) => String::new(),
            Each::Samples(each) => format!(", an event for {each} samples of a stack"),
            Each::Weight(each) => format!(", an event for each {} ms of a stack", each / 1_000_000),
        };
        let title = one_line(title);
        let name = format!("Emberscope: {}{each}", if title.is_empty() { "all" } else { &title });
        self.event(types::RECORDING, |out| {
            bytes::long(out, 1);
            bytes::text(out, &name);
        });
    }

    /// Appends the samples, in the order of time.
    fn samples(&mut self, answer: &Answer, mut runs: Vec<Run>) -> Result<(), ExportError> {
        let span = answer.range.until.0.saturating_sub(answer.range.from.0).max(1);
        let mut events: Vec<(u64, u32)> = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            events.extend(run.times(place, span).map(|time| (time, place as u32)));
        }
        events.sort_unstable();
        let mut body = Vec::new();
        for (number, (time, place)) in events.into_iter().enumerate() {
            if number % ASK == 0 {
                self.check()?;
                if nobody_waits() {
                    let source = io::Error::other("nobody waits for it");
                    return Err(ExportError::Write { format: "jfr", source });
                }
            }
            let Some(run) = runs.get_mut(place as usize) else { continue };
            let Some(set) = self.sets.get(run.set as usize) else { continue };
            let (samples, weight) = run.next();
            body.clear();
            for value in [time, set.thread, run.trace].into_iter().chain(self.shape.state) {
                bytes::long(&mut body, value);
            }
            bytes::long(&mut body, samples);
            bytes::long(&mut body, weight);
            set.values.iter().for_each(|value| bytes::pooled(&mut body, *value));
            bytes::framed(&mut self.out, types::SAMPLE, &body);
        }
        self.check()
    }

    /// Appends pools and metadata, and fills the header in.
    fn finish(mut self, answer: &Answer, labels: &[String]) -> Result<Vec<u8>, ExportError> {
        let pools = self.out.len();
        self.pools.write(&mut self.out);
        let metadata = self.out.len();
        let labels: Vec<(String, String)> = labels.iter().map(|name| (name.clone(), shown(name))).collect();
        metadata::write(&mut self.out, &types::all(answer.quality.kind, &self.shape, &labels));
        let (from, until) = (answer.range.from.0, answer.range.until.0);
        // Size, offsets of pools and metadata, start, length, ticks at the start, ticks a second: a tick is a nanosecond.
        let numbers = [
            self.out.len() as u64,
            pools as u64,
            metadata as u64,
            from,
            until.saturating_sub(from),
            0,
            1_000_000_000,
        ];
        let mut header = Vec::from(*b"FLR\0\x00\x02\x00\x01");
        header.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        // Complete; integers are compressed.
        header.extend([0, 0, 0, 1]);
        if let Some(place) = self.out.get_mut(..HEADER) {
            place.copy_from_slice(&header);
        }
        self.check()?;
        Ok(self.out)
    }
}

/// A label as readers show it: `stage_attempt` as `Stage attempt`.
fn shown(name: &str) -> String {
    let mut chars = name.chars().map(|c| if c == '_' { ' ' } else { c });
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
