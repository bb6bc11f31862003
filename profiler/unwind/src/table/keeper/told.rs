//! What a [`Keeper`] tells of itself: counts, the largest tables, whose they are.

use super::{Counts, Held, Keeper, Known, State, Walker};
use emberscope_model::{Pid, Refusals};
use std::collections::{HashMap, HashSet};

impl<W: Walker> Keeper<W> {
    /// What there is, and what was done since the start.
    pub fn counts(&self) -> Counts {
        let rows =
            |known: &Known| if let State::Built { rows, .. } = known.state { Some(rows) } else { None };
        Counts {
            bytes: self.space.bytes(),
            files: self.files.values().filter_map(rows).count(),
            rows: self.files.values().filter_map(rows).sum(),
            rules: self.rules.len(),
            processes: self.processes.len(),
            refused: self.counts.refused + self.refusals.total() + self.rules.refused,
            ..self.counts
        }
    }

    /// What there was no room for, and whose it was.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The largest tables, at most `most` of them.
    pub fn largest(&self, most: usize) -> Vec<Held> {
        let mut by_file: HashMap<u64, Held> = HashMap::new();
        for (key, known) in &self.files {
            let State::Built { words, rows, .. } = &known.state else { continue };
            // The parts of a file are told as one.
            let held = by_file.entry(known.of.unwrap_or(*key)).or_insert_with(|| Held {
                file: known.path.clone(),
                bytes: 0,
                rows: 0,
                mappings: 0,
                ns: 0,
            });
            held.bytes += words * 4;
            held.rows += rows;
            held.mappings = held.mappings.max(known.users);
            held.ns += known.ns;
        }
        let mut all: Vec<Held> = by_file.into_values().collect();
        all.sort_unstable_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.file.cmp(&b.file)));
        all.truncate(most);
        all
    }

    /// How many files a process's list names, and the bytes of their tables, which others may share.
    pub fn share(&self, pid: Pid) -> (usize, usize) {
        let ranges =
            self.processes.get(&pid).map(|process| process.ranges.all.as_slice()).unwrap_or_default();
        let mut keys: Vec<u64> = ranges.iter().map(|(_, file)| *file).filter(|file| *file != 0).collect();
        keys.sort_unstable();
        keys.dedup();
        let known = || keys.iter().filter_map(|key| Some((*key, self.files.get(key)?)));
        let bytes = |(_, known): (u64, &Known)| match &known.state {
            State::Built { words, .. } => words * 4,
            State::Evicted(_) | State::InParts(_) => 0,
        };
        let files: HashSet<u64> = known().map(|(key, known)| known.of.unwrap_or(key)).collect();
        (files.len(), known().map(bytes).sum())
    }
}
