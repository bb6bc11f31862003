//! The files of a [`Keeper`]: mappings in, tables in the walker's space out; and which of them go when there is no room.

use super::super::build::Table;
use super::super::image::{Image, Section};
use super::super::space::QUIET;
use super::super::{TableError, table_of};
use super::{
    IN_USE, INODE_FRESH, Keeper, Known, MAX_INODES, MAX_VDSO, Process, Seen, State, Walker, WalkerError,
};
use crate::target::maps::{Backing, Mapping};
use crate::target::memory::{Memory as _, ProcessMemory};
use crate::target::open;
use profiler_ebpf::NoTable;
use std::path::Path;
use std::time::Instant;

impl<W: Walker> Keeper<W> {
    /// What is known of a mapping without opening its file.
    pub(super) fn recall(&self, mapping: &Mapping) -> Option<Seen> {
        match &mapping.backing {
            Backing::File { path, .. } => {
                let (major, minor) = mapping.device;
                let (seen, at) = self.inodes.get(&(major, minor, mapping.inode, path.clone()))?;
                // As long as a process has it mapped it is the same: who writes into mapped code breaks it.
                let mapped = seen.is_ok_and(|key| self.files.get(&key).is_some_and(|known| known.users > 0));
                (mapped || at.elapsed() < INODE_FRESH).then_some(*seen)
            }
            Backing::Vdso => None,
            Backing::Anonymous | Backing::Special(_) => Some(Err(NoTable::None)),
        }
    }

    /// Opens a mapping's file, and builds its table unless it has one.
    pub(super) fn find(&mut self, dir: &Path, mapping: &Mapping, most: u64) -> Result<Seen, WalkerError> {
        let image = match &mapping.backing {
            Backing::Vdso => vdso(dir, mapping),
            _ => file(dir, mapping, most),
        };
        let seen = match image {
            Err(TableError::Large) => return Ok(Err(NoTable::Building)),
            Ok(image) => self.of_image(image)?,
            Err(error) => Err(self.refuse(&error, mapping)),
        };
        if let Backing::File { path, .. } = &mapping.backing {
            if self.inodes.len() >= MAX_INODES {
                self.inodes.clear();
            }
            let (major, minor) = mapping.device;
            self.inodes.insert((major, minor, mapping.inode, path.clone()), (seen, Instant::now()));
        }
        Ok(seen)
    }

    fn refuse(&mut self, error: &TableError, mapping: &Mapping) -> NoTable {
        if *error == TableError::Nothing {
            return NoTable::None;
        }
        self.counts.refused += 1;
        tracing::debug!(file = mapping.module_name(), %error, "no unwind table");
        NoTable::Refused
    }

    fn of_image(&mut self, image: Image) -> Result<Seen, WalkerError> {
        // 0 stands for no file.
        let key = image.key().max(1);
        if self.files.contains_key(&key) {
            return Ok(Ok(key));
        }
        let begun = Instant::now();
        let kept = self.disk.as_ref().and_then(|disk| disk.get(key));
        let loaded = kept.is_some();
        let table = match kept.map_or_else(|| table_of(&image), Ok) {
            Ok(table) => table,
            Err(TableError::Nothing) => return Ok(Err(NoTable::None)),
            Err(error) => {
                tracing::debug!(%error, "no unwind table");
                self.counts.refused += 1;
                return Ok(Err(NoTable::Refused));
            }
        };
        self.counts.build_ns += u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if loaded {
            self.counts.loaded += 1;
        } else {
            self.counts.built += 1;
            if let Some(Err(error)) = self.disk.as_ref().map(|disk| disk.put(key, &table)) {
                tracing::debug!(%error, "an unwind table is not kept on disk");
            }
        }
        let segments = Image { frames: Section::default(), ..image };
        let (page, pages) = (table.page, table.pages());
        let state = self.upload(&table)?;
        self.files.insert(key, Known { state, segments, page, pages, users: 0, used: Instant::now() });
        Ok(Ok(key))
    }

    /// Gives the walker a table, after making room.
    fn upload(&mut self, table: &Table) -> Result<State, WalkerError> {
        let Some(address) = self.room(table.words())? else {
            self.counts.refused += 1;
            return Ok(State::Evicted);
        };
        let mut numbers = Vec::with_capacity(table.rules.len());
        for rule in &table.rules {
            let (number, new) = self.rules.take(*rule);
            if new {
                self.walker.rule(number, rule.word())?;
            }
            numbers.push(number);
        }
        self.walker.write(address, &table.numbered(&numbers))?;
        Ok(State::Built { address, words: table.words(), rows: table.rows.len(), rules: table.rules.clone() })
    }

    /// Room for so many words; others' tables go for it.
    pub(super) fn room(&mut self, words: usize) -> Result<Option<u32>, WalkerError> {
        let mut now = Instant::now();
        if let Some(address) = self.space.take(words, now) {
            return Ok(Some(address));
        }
        let mut freed = 0usize;
        while freed < words + words / 2 {
            let idle = |known: &Known| {
                matches!(known.state, State::Built { .. })
                    && now.saturating_duration_since(known.used) >= IN_USE
            };
            let victim = self.files.iter().filter(|(_, known)| idle(known));
            let victim = victim.min_by_key(|(_, known)| (known.users > 0, known.used)).map(|(key, _)| *key);
            let Some(key) = victim else { break };
            freed += self.evict(key, now)?;
        }
        if freed == 0 {
            return Ok(None);
        }
        // Until no walk reads it any more.
        std::thread::sleep(QUIET);
        now = Instant::now();
        Ok(self.space.take(words, now))
    }

    /// Takes a file's table away; its processes are told first. The answer is its words.
    fn evict(&mut self, key: u64, now: Instant) -> Result<usize, WalkerError> {
        self.counts.evicted += 1;
        let has = |process: &Process| process.ranges.all.iter().any(|(_, file)| *file == key);
        let users = self.processes.iter().filter(|(_, process)| has(process)).map(|(pid, _)| *pid);
        for pid in users.collect::<Vec<_>>() {
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            process.lacking = true;
            let mut ranges = process.ranges.clone();
            for (range, file) in &mut ranges.all {
                if *file == key {
                    range.table = NoTable::Refused as u32;
                }
            }
            // As long as before, so written in place: a range has its table or none at any moment.
            self.walker.write(process.list, &ranges.words())?;
            process.ranges = ranges;
        }
        Ok(self.drop_table(key, now))
    }

    pub(super) fn drop_table(&mut self, key: u64, now: Instant) -> usize {
        let Some(known) = self.files.get_mut(&key) else { return 0 };
        let State::Built { address, words, rules, .. } = std::mem::replace(&mut known.state, State::Evicted)
        else {
            return 0;
        };
        self.space.give(address, words, now);
        for rule in rules {
            self.rules.give(rule);
        }
        words
    }

    /// A table that was thrown out is built anew, for a process that needs it.
    pub(super) fn rebuild_if_evicted(
        &mut self,
        dir: &Path,
        mappings: &[Mapping],
        seen: &[Seen],
        key: u64,
    ) -> Result<(), WalkerError> {
        let evicted = self.files.get(&key).is_some_and(|known| matches!(known.state, State::Evicted));
        let of = |seen: &&(&Seen, &Mapping)| *seen.0 == Ok(key);
        let Some((_, mapping)) = seen.iter().zip(mappings).find(|pair| of(&pair)).filter(|_| evicted) else {
            return Ok(());
        };
        let image = match &mapping.backing {
            Backing::Vdso => vdso(dir, mapping),
            _ => file(dir, mapping, u64::MAX),
        };
        let table = image.ok().filter(|image| image.key().max(1) == key).map(|image| table_of(&image));
        let state = match table {
            Some(Ok(table)) => self.upload(&table)?,
            _ => State::Refused,
        };
        if let Some(known) = self.files.get_mut(&key) {
            known.state = state;
        }
        Ok(())
    }
}

fn file(dir: &Path, mapping: &Mapping, most: u64) -> Result<Image, TableError> {
    let (file, stat) = open::mapped_file(dir, mapping).map_err(|_| TableError::Unreadable)?;
    Image::of_file(&file, u64::try_from(stat.st_size).unwrap_or(0), most)
}

fn vdso(dir: &Path, mapping: &Mapping) -> Result<Image, TableError> {
    let len = (mapping.end - mapping.start).min(MAX_VDSO);
    let memory = ProcessMemory::open(dir).map_err(|_| TableError::Unreadable)?;
    let mut bytes = vec![0; len as usize];
    memory.read(mapping.start, &mut bytes).map_err(|_| TableError::Unreadable)?;
    Image::of_bytes(&bytes)
}
