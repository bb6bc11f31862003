//! What a part writes of each change, and reads again: the journal's records.
//!
//! A record is a kind, then what is new since the record before (texts, processes' labels, sets, frames,
//! nodes, stacks, processes), then the change itself. Everything is named by its place, kinds and reasons
//! by their slugs: docs/store.md has it byte by byte. In: bytes whose checksum is right; what makes no
//! sense all the same is refused, and the part is then to be thrown away.

use super::super::facts::{LedgerLine, NO_TEXT, Record, Set, StackNode, TextId, WindowFacts};
use super::codec::{Malformed, Reader, put, put_signed, put_text};
use super::{GroupHead, Part, Taken};
use crate::model::{
    Accounts, DropReason, Frame, FrameKind, JvmFacts, LabelKey, LedgerSums, LostCounts, NameSource,
    ProcessKey, ProcessRecord, SampleKind, StackEnd, TimeRange, UnknownReason, WallTime,
};
use std::sync::Arc;

/// Kinds of records.
const WINDOW: u8 = 1;
const RELABEL: u8 = 2;
const FORGET: u8 = 3;

/// How long a part's lists were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    texts: usize,
    processes: usize,
    sets: usize,
    frames: usize,
    nodes: usize,
    stacks: usize,
    records: usize,
}

impl Part {
    pub(super) fn lengths(&self) -> Lengths {
        let (labels, stacks) = (&self.facts.labels, &self.stacks);
        Lengths {
            texts: labels.texts.len(),
            processes: labels.processes.len(),
            sets: labels.sets.len(),
            frames: stacks.frames.len(),
            nodes: stacks.nodes.len(),
            stacks: stacks.stacks.len(),
            records: self.facts.records.len(),
        }
    }

    pub(super) fn window_record(&mut self, before: &Lengths, taken: &Taken) -> Vec<u8> {
        // All words have their places before the list of texts is written.
        let lost: Vec<(TextId, u64)> = (DropReason::ALL.iter())
            .filter(|reason| taken.window.lost.get(**reason) > 0)
            .map(|reason| (self.word(reason.slug()), taken.window.lost.get(*reason)))
            .collect();
        let kinds: Vec<TextId> = taken.heads.iter().map(|head| self.word(head.kind.slug())).collect();
        let mut out = self.head(WINDOW, before);
        let (window, out_ref) = (&taken.window, &mut out);
        put(out_ref, window.range.from.0);
        put(out_ref, window.range.until.0.saturating_sub(window.range.from.0));
        put(out_ref, u64::from(window.partial));
        put(out_ref, lost.len() as u64);
        for (reason, count) in lost {
            put(out_ref, u64::from(reason));
            put(out_ref, count);
        }
        put(out_ref, window.records.len() as u64);
        for record in &window.records {
            put(out_ref, u64::from(*record));
        }
        put(out_ref, taken.ledger.len() as u64);
        for line in &taken.ledger {
            put_line(out_ref, line, window.range.from);
        }
        put(out_ref, taken.heads.len() as u64);
        for (head, kind) in taken.heads.iter().zip(kinds) {
            for number in [head.set.into(), kind.into(), head.period, head.rows.into()] {
                put(out_ref, number);
            }
        }
        out.extend_from_slice(&taken.rows);
        out
    }

    pub(super) fn relabel_record(&mut self, before: &Lengths, places: &[u32], to: u32) -> Vec<u8> {
        let mut out = self.head(RELABEL, before);
        put(&mut out, u64::from(to));
        put_places(&mut out, places);
        out
    }

    pub(super) fn forget_record(&mut self, places: &[u32]) -> Vec<u8> {
        let mut out = self.head(FORGET, &self.lengths());
        put_places(&mut out, places);
        out
    }

    fn known(&self, word: &str) -> TextId {
        self.names.text_id(word)
    }

    /// The kind, and what is new.
    fn head(&self, kind: u8, before: &Lengths) -> Vec<u8> {
        let mut out = vec![kind];
        let (labels, stacks) = (&self.facts.labels, &self.stacks);
        let texts = labels.texts.get(before.texts..).unwrap_or_default();
        put(&mut out, texts.len() as u64);
        texts.iter().for_each(|text| put_text(&mut out, text));
        let processes = labels.processes.get(before.processes..).unwrap_or_default();
        put(&mut out, processes.len() as u64);
        for pairs in processes {
            put(&mut out, pairs.len() as u64);
            for (key, value) in pairs {
                put(&mut out, u64::from(self.known(key.name())));
                put(&mut out, u64::from(*value));
            }
        }
        let sets = labels.sets.get(before.sets..).unwrap_or_default();
        put(&mut out, sets.len() as u64);
        for set in sets {
            put(&mut out, u64::from(set.process));
            set.thread.iter().for_each(|text| put(&mut out, u64::from(*text)));
        }
        let frames = stacks.frames.get(before.frames..).unwrap_or_default();
        put(&mut out, frames.len() as u64);
        frames.iter().for_each(|frame| self.put_frame(&mut out, frame));
        let nodes = stacks.nodes.get(before.nodes..).unwrap_or_default();
        put(&mut out, nodes.len() as u64);
        for node in nodes {
            put(&mut out, u64::from(node.parent));
            put(&mut out, u64::from(node.frame));
        }
        let lines = stacks.stacks.get(before.stacks..).unwrap_or_default();
        put(&mut out, lines.len() as u64);
        for line in lines {
            put(&mut out, u64::from(line.node));
            put(&mut out, u64::from(self.known(line.end.slug())));
        }
        let records = self.facts.records.get(before.records..).unwrap_or_default();
        put(&mut out, records.len() as u64);
        records.iter().for_each(|record| put_record(&mut out, record));
        out
    }

    fn put_frame(&self, out: &mut Vec<u8>, frame: &Frame) {
        let signature = frame.signature.as_ref().map_or(0, |text| u64::from(self.known(text)) + 1);
        for number in [
            self.known(frame.kind.slug()).into(),
            self.known(&frame.name).into(),
            self.known(&frame.module).into(),
            signature,
            frame.line.into(),
            frame.approximate.into(),
            frame.unknown.map_or(NO_TEXT, |reason| self.known(reason.slug())).into(),
        ] {
            put(out, number);
        }
    }

    /// Takes a record that a part wrote, the one after the last that this one has.
    pub fn replay(&mut self, record: &[u8]) -> Result<(), Malformed> {
        let (kind, rest) = record.split_first().ok_or(Malformed("a record is empty"))?;
        let mut reader = Reader(rest);
        self.read_new(&mut reader)?;
        match *kind {
            WINDOW => {
                let taken = self.read_window(&mut reader)?;
                self.push(taken)
            }
            RELABEL => {
                let to = reader.place(self.facts.labels.processes.len())?;
                let places = self.read_places(&mut reader)?;
                self.move_to(&places, to);
                Ok(())
            }
            FORGET => {
                let places = self.read_places(&mut reader)?;
                self.drop_processes(&places);
                Ok(())
            }
            _ => Err(Malformed("a record is of an unknown kind")),
        }
    }

    fn read_new(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        for _ in 0..reader.count()? {
            self.push_text(reader.text()?.into());
        }
        for _ in 0..reader.count()? {
            let mut pairs = Vec::new();
            for _ in 0..reader.count()? {
                let key = LabelKey::from_name(self.read_word(reader)?)
                    .ok_or(Malformed("a label's name is unknown"))?;
                pairs.push((key, self.read_text(reader)?));
            }
            self.push_process(pairs.into());
        }
        for _ in 0..reader.count()? {
            let process = reader.place(self.facts.labels.processes.len())?;
            let mut set = Set { process, thread: Default::default() };
            for text in &mut set.thread {
                *text = self.read_text(reader)?;
            }
            self.push_set(set);
        }
        for _ in 0..reader.count()? {
            let frame = self.read_frame(reader)?;
            self.push_frame(Arc::new(frame));
        }
        for _ in 0..reader.count()? {
            let parent = reader.place(self.stacks.nodes.len())?;
            let frame = reader.place(self.stacks.frames.len())?;
            self.push_node(StackNode { parent, frame });
        }
        for _ in 0..reader.count()? {
            let node = reader.place(self.stacks.nodes.len())?;
            let end = self.read_slug(reader, StackEnd::ALL, |end| end.slug())?;
            self.push_stack(node, end);
        }
        for _ in 0..reader.count()? {
            let record = self.read_record(reader)?;
            self.push_record(record);
        }
        Ok(())
    }

    fn read_window(&mut self, reader: &mut Reader<'_>) -> Result<Taken, Malformed> {
        let from = WallTime(reader.number()?);
        let until = WallTime(from.0.saturating_add(reader.number()?));
        let partial = reader.number()? != 0;
        let mut lost = LostCounts::default();
        for _ in 0..reader.count()? {
            let reason = self.read_slug(reader, DropReason::ALL, |reason| reason.slug())?;
            if let Some(slot) = lost.0.get_mut(reason as usize) {
                *slot = reader.number()?;
            }
        }
        let mut records = Vec::new();
        for _ in 0..reader.count()? {
            records.push(reader.place(self.facts.records.len())?);
        }
        let mut ledger = Vec::new();
        for _ in 0..reader.count()? {
            ledger.push(self.read_line(reader, from)?);
        }
        let mut heads = Vec::new();
        for _ in 0..reader.count()? {
            let set = reader.place(self.facts.labels.sets.len())?;
            let kind = self.read_slug(reader, SampleKind::ALL, |kind| kind.slug())?;
            heads.push(GroupHead { set, kind, period: reader.number()?, rows: reader.small()? });
        }
        let window = WindowFacts { range: TimeRange { from, until }, partial, lost, records };
        Ok(Taken { window, heads, rows: std::mem::take(&mut reader.0).into(), ledger })
    }

    fn read_text(&self, reader: &mut Reader<'_>) -> Result<TextId, Malformed> {
        reader.place(self.facts.labels.texts.len() + 1)
    }

    fn read_word(&self, reader: &mut Reader<'_>) -> Result<&str, Malformed> {
        Ok(self.facts.labels.text(self.read_text(reader)?))
    }

    fn read_shared(&self, reader: &mut Reader<'_>) -> Result<Arc<str>, Malformed> {
        Ok(self.facts.labels.shared(self.read_text(reader)?).cloned().unwrap_or_default())
    }

    fn read_slug<T: Copy>(
        &self,
        reader: &mut Reader<'_>,
        all: &[T],
        slug: fn(&T) -> &'static str,
    ) -> Result<T, Malformed> {
        let word = self.read_word(reader)?;
        all.iter().find(|known| slug(known) == word).copied().ok_or(Malformed("a kind or reason is unknown"))
    }

    fn read_frame(&self, reader: &mut Reader<'_>) -> Result<Frame, Malformed> {
        let kind = self.read_slug(reader, FrameKind::ALL, |kind| kind.slug())?;
        let (name, module) = (self.read_shared(reader)?, self.read_shared(reader)?);
        let signature = reader.small()?.checked_sub(1);
        let signature = signature.map(|text| self.facts.labels.shared(text).cloned().unwrap_or_default());
        let (line, approximate) = (reader.small()?, reader.number()? != 0);
        let word = self.read_word(reader)?;
        let unknown = match word {
            "" => None,
            word => Some(UnknownReason::from_slug(word).ok_or(Malformed("a kind or reason is unknown"))?),
        };
        Ok(Frame { kind, name, module, signature, line, approximate, unknown })
    }

    fn read_record(&self, reader: &mut Reader<'_>) -> Result<Record, Malformed> {
        let set = reader.place(self.facts.labels.sets.len())?;
        let key = ProcessKey { pid: reader.small()?, start_ticks: reader.number()? };
        let (host, cores, program) = (reader.text()?.to_owned(), reader.small()?, reader.text()?.to_owned());
        let jvm = match reader.number()? {
            0 => None,
            _ => {
                let version = reader.text()?.to_owned();
                let (slug, says) = (reader.text()?, reader.text()?.to_owned());
                let names = name_source(slug, says).ok_or(Malformed("a source of names is unknown"))?;
                Some(JvmFacts { version, names })
            }
        };
        let process = ProcessRecord { key, labels: Arc::default(), host, cores, program, jvm };
        Ok(Record { set, process })
    }

    fn read_line(&self, reader: &mut Reader<'_>, from: WallTime) -> Result<LedgerLine, Malformed> {
        let set = reader.place(self.facts.labels.sets.len())?;
        let mut sums = LedgerSums::default();
        for number in numbers(&mut sums) {
            *number = reader.number()?;
        }
        let seen_from = WallTime(from.0.wrapping_add_signed(reader.signed()?));
        let until = WallTime(seen_from.0.wrapping_add(reader.number()?));
        let window = self.facts.windows.len() as u32;
        Ok(LedgerLine { window, set, sums, seen: TimeRange { from: seen_from, until } })
    }

    fn read_places(&self, reader: &mut Reader<'_>) -> Result<Vec<u32>, Malformed> {
        let count = reader.count()?;
        (0..count).map(|_| reader.place(self.facts.labels.processes.len())).collect()
    }
}

fn put_places(out: &mut Vec<u8>, places: &[u32]) {
    put(out, places.len() as u64);
    places.iter().for_each(|place| put(out, u64::from(*place)));
}

fn put_record(out: &mut Vec<u8>, record: &Record) {
    let process = &record.process;
    put(out, record.set.into());
    put(out, process.key.pid.into());
    put(out, process.key.start_ticks);
    put_text(out, &process.host);
    put(out, process.cores.into());
    put_text(out, &process.program);
    put(out, u64::from(process.jvm.is_some()));
    if let Some(jvm) = &process.jvm {
        put_text(out, &jvm.version);
        put_text(out, jvm.names.slug());
        put_text(out, jvm.names.says());
    }
}

fn put_line(out: &mut Vec<u8>, line: &LedgerLine, from: WallTime) {
    put(out, line.set.into());
    let mut sums = line.sums;
    numbers(&mut sums).into_iter().for_each(|number| put(out, *number));
    put_signed(out, line.seen.from.0.wrapping_sub(from.0).cast_signed());
    put(out, line.seen.until.0.wrapping_sub(line.seen.from.0));
}

/// A source of names by its slug and sentence.
pub(in crate::store) fn name_source(slug: &str, says: String) -> Option<NameSource> {
    let all = [
        NameSource::Waiting(says.clone()),
        NameSource::Memory,
        NameSource::Asked,
        NameSource::Found,
        NameSource::None(says),
    ];
    all.into_iter().find(|source| source.slug() == slug)
}

/// The numbers of a ledger's sums, in the order in which they are stored.
pub(in crate::store) fn numbers(sums: &mut LedgerSums) -> [&mut u64; 12] {
    let LedgerSums { accounts, wall_ns, begun } = sums;
    let Accounts {
        cpu_ns,
        run_delay_ns,
        user_ns,
        system_ns,
        voluntary_switches,
        involuntary_switches,
        minor_faults,
        major_faults,
        read_bytes,
        written_bytes,
    } = accounts;
    [
        cpu_ns,
        run_delay_ns,
        user_ns,
        system_ns,
        voluntary_switches,
        involuntary_switches,
        minor_faults,
        major_faults,
        read_bytes,
        written_bytes,
        wall_ns,
        begun,
    ]
}
