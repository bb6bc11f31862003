//! What a part writes of each change: the journal's records.
//!
//! A record is a kind, then what is new since the record before (texts, processes' labels, sets, frames,
//! nodes, stacks, processes), then the change itself. Everything is named by its place, kinds and reasons
//! by their slugs: docs/store.md has it byte by byte. In: a change of the part. Out: its bytes, which
//! [`super::replay`] reads.

use super::super::facts::{LedgerLine, NO_TEXT, Record, TextId};
use super::codec::{put, put_signed, put_text};
use super::{Part, Taken};
use emberscope_model::{Accounts, DropReason, Frame, LedgerSums, NameSource, WallTime};

/// Kinds of records: the first byte. This one is a window.
pub(super) const WINDOW: u8 = 11;
pub(super) const RELABEL: u8 = 10;
pub(super) const FORGET: u8 = 3;
/// A window in journals of 0.1: their label sets have no `wait`, and their ledger does not say what tasks waited for
/// Python.
pub(super) const OLD_WINDOW: u8 = 1;
/// A change of labels in journals of 0.1.
pub(super) const OLD_RELABEL: u8 = 2;
/// Values of a thread's labels in journals of 0.1.
pub(super) const OLD_THREAD_KEYS: usize = 6;
/// Numbers of a line of the ledger in journals of 0.1.
pub(super) const OLD_NUMBERS: usize = 12;
/// A window, and a change of labels, whose label sets have no `event`.
pub(super) const EVENTLESS_WINDOW: u8 = 9;
/// See [`EVENTLESS_WINDOW`].
pub(super) const EVENTLESS_RELABEL: u8 = 8;
/// Values of a thread's labels there.
pub(super) const EVENTLESS_THREAD_KEYS: usize = 9;
/// A window, and a change of labels, whose label sets have no `lock` and no `lock_owner`.
pub(super) const LOCKLESS_WINDOW: u8 = 7;
/// See [`LOCKLESS_WINDOW`].
pub(super) const LOCKLESS_RELABEL: u8 = 5;
/// Values of a thread's labels there, and in the windows below.
pub(super) const LOCKLESS_THREAD_KEYS: usize = 7;
/// A window whose ledger does not say for how long tasks were throttled.
pub(super) const UNTHROTTLED_WINDOW: u8 = 4;
/// Numbers of a line of the ledger in such a window.
pub(super) const UNTHROTTLED_NUMBERS: usize = 13;

/// A window whose ledger does not say for how long JVMs stood still, and that lists no pauses.
pub(super) const UNPAUSED_WINDOW: u8 = 6;
/// Numbers of a line of the ledger in such a window.
pub(super) const UNPAUSED_NUMBERS: usize = 14;

/// How long a part's lists were before a change: what is behind is new.
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
        self.put_pauses(out_ref, &taken.pauses, window.range.from);
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

    pub(super) fn known(&self, word: &str) -> TextId {
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
pub(crate) fn name_source(slug: &str, says: String) -> Option<NameSource> {
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
pub(crate) fn numbers(sums: &mut LedgerSums) -> [&mut u64; 15] {
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
        python_wait_ns,
        throttled_ns,
        paused_ns,
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
        python_wait_ns,
        throttled_ns,
        paused_ns,
    ]
}
