//! Which place a part gave to a text, a label set, a frame, a stack.
//!
//! In: things with content. Out: their places in the part's lists, new ones at the end. Stacks of the last
//! window are known by address, and held so that the address stays theirs: most come again.

use super::super::facts::{LedgerLine, NO_TEXT, Record, Set, StackLine, StackNode, THREAD_KEYS, TextId};
use super::super::pointer::{PairMap, PointerMap};
use super::Part;
use emberscope_model::{
    FastMap, Frame, LabelKey, LabelSet, LedgerRow, ProcessKey, ProcessRecord, Stack, StackEnd,
};
use std::sync::Arc;

/// The tables that find what the part has already.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: FastMap<Arc<str>, TextId>,
    processes: FastMap<Box<[(LabelKey, TextId)]>, u32>,
    sets: FastMap<Set, u32>,
    frames: FastMap<Arc<Frame>, u32>,
    nodes: PairMap<(u32, u32), u32>,
    stacks: FastMap<(u32, StackEnd), u32>,
    records: FastMap<ProcessKey, u32>,
    /// Stacks by address: the stack itself, its place, the window that had it last.
    recent: PointerMap<(Arc<Stack>, u32, usize)>,
}

/// Label sets and frames by address, while one window is taken.
#[derive(Debug, Default)]
pub(super) struct ByAddress {
    sets: PointerMap<u32>,
    processes: PointerMap<u32>,
    frames: PointerMap<u32>,
}

impl Names {
    /// The place of a text that has one.
    pub(super) fn text_id(&self, text: &str) -> TextId {
        self.texts.get(text).copied().unwrap_or(NO_TEXT)
    }
    /// Places of what has one.
    pub(super) fn set_of(&self, set: &Set) -> Option<u32> {
        self.sets.get(set).copied()
    }
    pub(super) fn frame_of(&self, frame: &Arc<Frame>) -> Option<u32> {
        self.frames.get(frame).copied()
    }
    pub(super) fn node_of(&self, parent: u32, frame: u32) -> Option<u32> {
        self.nodes.get(&(parent, frame)).copied()
    }
    pub(super) fn stack_of(&self, node: u32, end: StackEnd) -> Option<u32> {
        self.stacks.get(&(node, end)).copied()
    }
}

impl Part {
    pub(super) fn text(&mut self, text: &Arc<str>) -> TextId {
        if text.is_empty() {
            return NO_TEXT;
        }
        match self.names.texts.get(text) {
            Some(id) => *id,
            None => self.push_text(text.clone()),
        }
    }

    /// A text of this program's own: a key, a slug.
    pub(super) fn word(&mut self, word: &str) -> TextId {
        match self.names.texts.get(word) {
            Some(id) => *id,
            None => self.text(&Arc::from(word)),
        }
    }

    pub(super) fn push_text(&mut self, text: Arc<str>) -> TextId {
        self.text_bytes += text.len();
        self.facts.labels.texts.push(text.clone());
        let id = self.facts.labels.texts.len() as TextId;
        self.names.texts.insert(text, id);
        id
    }

    pub(super) fn process(&mut self, labels: &LabelSet) -> u32 {
        let pairs: Box<[_]> =
            labels.process_part().iter().map(|(key, value)| (*key, self.text(value))).collect();
        match self.names.processes.get(&pairs) {
            Some(place) => *place,
            None => self.push_process(pairs),
        }
    }

    pub(super) fn push_process(&mut self, pairs: Box<[(LabelKey, TextId)]>) -> u32 {
        let place = self.facts.labels.processes.len() as u32;
        for (key, _) in &pairs {
            self.word(key.name());
        }
        self.facts.labels.processes.push(pairs.clone());
        self.names.processes.insert(pairs, place);
        place
    }

    /// Whoever comes with these labels from now on is another.
    pub(super) fn unname(&mut self, process: u32) {
        self.names.processes.retain(|_, place| *place != process);
    }

    pub(super) fn set(&mut self, labels: &Arc<LabelSet>, known: &mut ByAddress) -> u32 {
        if let Some(set) = known.sets.get(&(Arc::as_ptr(labels) as usize)) {
            return *set;
        }
        let part = labels.process_part().as_ptr() as usize;
        let process = match known.processes.get(&part).filter(|_| !labels.process_part().is_empty()) {
            Some(process) => *process,
            None => self.process(labels),
        };
        known.processes.insert(part, process);
        let mut set = Set { process, thread: [NO_TEXT; THREAD_KEYS.len()] };
        for (key, value) in labels.thread_part() {
            let text = self.text(value);
            let place = THREAD_KEYS.iter().position(|known| known == key);
            if let Some(slot) = place.and_then(|place| set.thread.get_mut(place)) {
                *slot = text;
            }
        }
        let place = match self.names.sets.get(&set) {
            Some(place) => *place,
            None => self.push_set(set),
        };
        known.sets.insert(Arc::as_ptr(labels) as usize, place);
        place
    }

    pub(super) fn push_set(&mut self, set: Set) -> u32 {
        let place = self.facts.labels.sets.len() as u32;
        self.facts.labels.sets.push(set);
        self.facts.labels.forgotten.push(false);
        self.names.sets.insert(set, place);
        place
    }

    pub(super) fn stack(&mut self, stack: &Arc<Stack>, known: &mut ByAddress) -> u32 {
        let window = self.facts.windows.len();
        if let Some((_, place, seen)) = self.names.recent.get_mut(&(Arc::as_ptr(stack) as usize)) {
            *seen = window;
            return *place;
        }
        let mut node = 0;
        for frame in &stack.frames {
            let frame = match known.frames.get(&(Arc::as_ptr(frame) as usize)) {
                Some(place) => *place,
                None => self.frame(frame, known),
            };
            node = match self.names.nodes.get(&(node, frame)) {
                Some(place) => *place,
                None => self.push_node(StackNode { parent: node, frame }),
            };
        }
        let place = match self.names.stacks.get(&(node, stack.end)) {
            Some(place) => *place,
            None => self.push_stack(node, stack.end),
        };
        self.names.recent.insert(Arc::as_ptr(stack) as usize, (stack.clone(), place, window));
        place
    }

    fn frame(&mut self, frame: &Arc<Frame>, known: &mut ByAddress) -> u32 {
        let place = match self.names.frames.get(frame) {
            Some(place) => *place,
            None => self.push_frame(frame.clone()),
        };
        known.frames.insert(Arc::as_ptr(frame) as usize, place);
        place
    }

    pub(super) fn push_frame(&mut self, frame: Arc<Frame>) -> u32 {
        for text in [&frame.name, &frame.module].into_iter().chain(&frame.signature) {
            self.text(text);
        }
        self.word(frame.kind.slug());
        if let Some(reason) = frame.unknown {
            self.word(reason.slug());
        }
        let place = self.stacks.frames.len() as u32;
        self.stacks.frames.push(frame.clone());
        self.names.frames.insert(frame, place);
        place
    }

    pub(super) fn push_node(&mut self, node: StackNode) -> u32 {
        let place = self.stacks.nodes.len() as u32;
        self.stacks.nodes.push(node);
        self.names.nodes.insert((node.parent, node.frame), place);
        place
    }

    pub(super) fn push_stack(&mut self, node: u32, end: StackEnd) -> u32 {
        self.word(end.slug());
        let line: StackLine = self.stacks.line(node, end);
        let place = self.stacks.stacks.len() as u32;
        self.stacks.stacks.push(line);
        self.names.stacks.insert((node, end), place);
        place
    }

    /// Stacks that the last window did not have are no longer held.
    pub(super) fn forget_addresses(&mut self) {
        let last = self.facts.windows.len();
        self.names.recent.retain(|_, (_, _, seen)| *seen + 1 >= last);
    }

    pub(super) fn record(&mut self, process: &ProcessRecord, known: &mut ByAddress) -> u32 {
        let set = self.set(&process.labels, known);
        self.place_of(Record { set, process: ProcessRecord { labels: Arc::default(), ..process.clone() } })
    }

    /// The place of a process as it is known, which is a new one only where it was last known otherwise.
    pub(super) fn place_of(&mut self, record: Record) -> u32 {
        let last = self.names.records.get(&record.process.key).copied();
        match last.and_then(|last| Some((last, self.facts.records.get(last as usize)?))) {
            Some((last, known)) if known.set == record.set && known.process == record.process => last,
            _ => self.push_record(record),
        }
    }

    pub(super) fn push_record(&mut self, record: Record) -> u32 {
        let place = self.facts.records.len() as u32;
        self.names.records.insert(record.process.key, place);
        self.facts.records.push(record);
        place
    }

    pub(super) fn line(&mut self, row: &LedgerRow, known: &mut ByAddress) -> LedgerLine {
        let window = self.facts.windows.len() as u32;
        LedgerLine { window, set: self.set(&row.labels, known), sums: row.sums, seen: row.seen }
    }

    /// Bytes of all that is named here, with the tables that know it.
    pub(super) fn named_bytes(&self) -> usize {
        // An entry of a table has some empty place beside it.
        let entry = |own: usize| own + own / 2;
        let labels = &self.facts.labels;
        let pairs: usize = labels.processes.iter().map(|pairs| 2 * size_of_val(&**pairs) + 64).sum();
        self.text_bytes
            + labels.texts.len() * (16 + 16 + 16 + entry(24))
            + pairs
            + labels.sets.len() * (size_of::<Set>() + 1 + entry(size_of::<Set>() + 4))
            + self.stacks.frames.len() * (16 + size_of::<Frame>() + 8 + entry(16))
            + self.stacks.nodes.len() * (size_of::<StackNode>() + entry(12))
            + self.stacks.stacks.len() * (size_of::<StackLine>() + entry(12))
            + self.names.recent.values().map(|(stack, ..)| 80 + stack.frames.len() * 8).sum::<usize>()
            + self.facts.records.len() * (size_of::<Record>() + 120)
    }
}
