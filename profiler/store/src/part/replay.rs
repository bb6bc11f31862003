//! Reads the records of [`super::record`] again.
//!
//! In: bytes whose checksum is right. Out: the part as it was; what makes no sense is refused.

use super::super::facts::THREAD_KEYS;
use super::super::facts::{LedgerLine, Record, Set, StackNode, TextId, WindowFacts};
use super::codec::{Malformed, Reader};
use super::record::{
    EVENTLESS_RELABEL, EVENTLESS_THREAD_KEYS, EVENTLESS_WINDOW, FORGET, LOCKLESS_RELABEL,
    LOCKLESS_THREAD_KEYS, LOCKLESS_WINDOW, OLD_NUMBERS, OLD_RELABEL, OLD_THREAD_KEYS, OLD_WINDOW, RELABEL,
    UNPAUSED_NUMBERS, UNPAUSED_WINDOW, UNTHROTTLED_NUMBERS, UNTHROTTLED_WINDOW, WINDOW, name_source, numbers,
};
use super::{GroupHead, Part, Taken};
use emberscope_model::{
    DropReason, Frame, FrameKind, JvmFacts, LabelKey, LedgerSums, LostCounts, ProcessKey, ProcessRecord,
    SampleKind, StackEnd, TimeRange, UnknownReason, WallTime,
};
use std::sync::Arc;

/// Texts, processes, label sets, frames and records that one record may have: they take up to 150 bytes where a record
/// has one or two of each. A node's first window has some ten thousand.
const MAX_NEW: usize = 1 << 20;

impl Part {
    /// Takes a record that a part wrote, the one after the last that this one has.
    ///
    /// # Errors
    /// The record is empty, ends early, is of an unknown kind, or points to what the part does not have. Some of its
    /// names may be in the part then: who wants to go on reads the records before it again, into a new one.
    pub fn replay(&mut self, record: &[u8]) -> Result<(), Malformed> {
        let (kind, rest) = record.split_first().ok_or(Malformed("a record is empty"))?;
        let mut reader = Reader(rest);
        let thread_keys = match *kind {
            OLD_WINDOW | OLD_RELABEL => OLD_THREAD_KEYS,
            EVENTLESS_WINDOW | EVENTLESS_RELABEL => EVENTLESS_THREAD_KEYS,
            LOCKLESS_WINDOW | LOCKLESS_RELABEL | UNPAUSED_WINDOW | UNTHROTTLED_WINDOW => LOCKLESS_THREAD_KEYS,
            _ => THREAD_KEYS.len(),
        };
        self.read_new(&mut reader, thread_keys)?;
        match *kind {
            WINDOW | EVENTLESS_WINDOW | LOCKLESS_WINDOW | UNPAUSED_WINDOW | UNTHROTTLED_WINDOW
            | OLD_WINDOW => {
                let told = match *kind {
                    OLD_WINDOW => OLD_NUMBERS,
                    UNTHROTTLED_WINDOW => UNTHROTTLED_NUMBERS,
                    UNPAUSED_WINDOW => UNPAUSED_NUMBERS,
                    _ => usize::MAX,
                };
                let taken = self.read_window(&mut reader, told)?;
                self.push(taken)
            }
            RELABEL | EVENTLESS_RELABEL | LOCKLESS_RELABEL | OLD_RELABEL => {
                let to = reader.place(self.facts.labels.processes.len())?;
                let places = self.read_places(&mut reader)?;
                self.move_to(&places, to);
                Ok(())
            }
            FORGET => {
                let places = self.read_places(&mut reader)?;
                self.drop_processes(&places);
                self.read_facts(&mut reader)
            }
            _ => Err(Malformed("a record is of an unknown kind")),
        }
    }

    fn read_new(&mut self, reader: &mut Reader<'_>, thread_keys: usize) -> Result<(), Malformed> {
        let mut left = MAX_NEW;
        let mut few = |count: usize| {
            left = left.checked_sub(count).ok_or(Malformed("a record has too many new names"))?;
            Ok(count)
        };
        for _ in 0..few(reader.count()?)? {
            self.push_text(reader.text()?.into());
        }
        for _ in 0..few(reader.count()?)? {
            let mut pairs = Vec::new();
            for _ in 0..reader.count()? {
                let key = LabelKey::from_name(self.read_word(reader)?)
                    .ok_or(Malformed("a label's name is unknown"))?;
                pairs.push((key, self.read_text(reader)?));
            }
            self.push_process(pairs.into());
        }
        for _ in 0..few(reader.count()?)? {
            let process = reader.place(self.facts.labels.processes.len())?;
            let mut set = Set { process, thread: Default::default() };
            for text in set.thread.iter_mut().take(thread_keys) {
                *text = self.read_text(reader)?;
            }
            self.push_set(set);
        }
        for _ in 0..few(reader.count()?)? {
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
        for _ in 0..few(reader.count()?)? {
            let record = self.read_record(reader)?;
            self.push_record(record);
        }
        Ok(())
    }

    /// `told` is how many of a ledger's numbers each line has.
    fn read_window(&mut self, reader: &mut Reader<'_>, told: usize) -> Result<Taken, Malformed> {
        let from = WallTime(reader.number()?);
        let until = WallTime(from.0.saturating_add(reader.number()?));
        if until.0 > i64::MAX.cast_unsigned() {
            return Err(Malformed("a window has no time"));
        }
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
            ledger.push(self.read_line(reader, from, told)?);
        }
        let listed = told > UNPAUSED_NUMBERS;
        let pauses = if listed { self.read_pauses(reader, from)? } else { Vec::new() };
        let mut heads = Vec::new();
        for _ in 0..reader.count()? {
            let set = reader.place(self.facts.labels.sets.len())?;
            let kind = self.read_slug(reader, SampleKind::ALL, |kind| kind.slug())?;
            heads.push(GroupHead { set, kind, period: reader.number()?, rows: reader.small()? });
        }
        let window = WindowFacts { range: TimeRange { from, until }, partial, lost, records };
        Ok(Taken { window, heads, rows: std::mem::take(&mut reader.0).into(), ledger, pauses })
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

    fn read_line(
        &self,
        reader: &mut Reader<'_>,
        from: WallTime,
        told: usize,
    ) -> Result<LedgerLine, Malformed> {
        let set = reader.place(self.facts.labels.sets.len())?;
        let mut sums = LedgerSums::default();
        for number in numbers(&mut sums).into_iter().take(told) {
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

#[cfg(test)]
mod tests {
    use super::super::codec::{put, put_text};
    use super::*;

    /// A window without rows, of a task's thread; `values` are its label set's after the process's place. Its ledger
    /// has a line of so many numbers: 1, 2 and so on.
    fn record(kind: u8, values: &[u64], told: u64) -> Vec<u8> {
        let mut out = vec![kind];
        put(&mut out, 4);
        ["pid", "7", "stage", "3"].iter().for_each(|text| put_text(&mut out, text));
        // A process with a label; a set; no frames, nodes, stacks, records.
        [1, 1, 1, 2, 1, 0].iter().chain(values).chain(&[0; 4]).for_each(|number| put(&mut out, *number));
        // From, length, whole; nothing lost, no processes, a line, no pauses where such are told, no groups.
        [10, 10, 0, 0, 0, 1, 0].iter().for_each(|number| put(&mut out, *number));
        (1..=told).chain([0, 10, 0]).for_each(|number| put(&mut out, number));
        if [LOCKLESS_WINDOW, EVENTLESS_WINDOW, WINDOW].contains(&kind) {
            put(&mut out, 0);
        }
        out
    }

    #[test]
    fn older_journals_are_read() {
        let all = &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0][..];
        let (six, seven) = (&all[..OLD_THREAD_KEYS], &all[..LOCKLESS_THREAD_KEYS]);
        let kinds = [
            (OLD_WINDOW, six, OLD_NUMBERS),
            (UNTHROTTLED_WINDOW, seven, UNTHROTTLED_NUMBERS),
            (UNPAUSED_WINDOW, seven, UNPAUSED_NUMBERS),
            (LOCKLESS_WINDOW, seven, 15),
            (EVENTLESS_WINDOW, &all[..EVENTLESS_THREAD_KEYS], 15),
            (WINDOW, all, 15),
        ];
        for (kind, values, told) in kinds {
            let mut part = Part::default();
            part.replay(&record(kind, values, told as u64)).expect("it is read");
            let labels = &part.facts.labels;
            assert_eq!(labels.text(labels.value(0, LabelKey::Stage)), "3", "{kind}");
            assert_eq!(labels.text(labels.value(0, LabelKey::Wait)), "");
            assert_eq!(part.facts.windows.len(), 1);
            let sums = &mut part.ledger[0].sums.clone();
            let read: Vec<u64> = numbers(sums).into_iter().map(|number| *number).collect();
            let want: Vec<u64> = (1..=15).map(|n| if n <= told as u64 { n } else { 0 }).collect();
            assert_eq!(read, want, "{kind}");
        }
    }
}
