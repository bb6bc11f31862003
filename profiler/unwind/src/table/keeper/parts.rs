//! Large files in a [`Keeper`]: code that ran without a table in, what is to be made for it out.
//!
//! Such a file has no table of its own. Each part of its code that ran ([`PART_SHIFT`]) has one, which takes room and goes as
//! that of a file. The list of a process has a range for each part; between them is code whose table is not there yet.

use super::super::file::{Found, Inode, Made, New, Wanted};
use super::super::image::Image;
use super::super::ranges::{Code, Ranges};
use super::super::sparse::{PART_SHIFT, part_key};
use super::{Keeper, Known, State, Walker, WalkerError};
use emberscope_model::{Pid, Tenant};
use emberscope_target::maps::Mapping;
use profiler_ebpf::{NoTable, PAGE_SHIFT};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// Parts of one file: those of 1 GiB of code.
const MAX_PARTS: usize = 4096;

/// A part of a large file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The key of its table, which is held as a file's own.
    Made(u64),
    /// It has none.
    Without(NoTable),
}

/// What is to be done about code that ran without a table.
#[derive(Debug)]
pub enum Missing {
    /// Nothing: it has none, has one by now, or is not of a file in parts.
    Nothing,
    /// The process is to be looked at: another one's look brought the table.
    Look,
    /// A part is to be made first.
    Part(Box<Wanted>),
}

impl<W: Walker> Keeper<W> {
    /// Where a process has code of files in parts.
    pub fn large(&self, pid: Pid) -> impl Iterator<Item = Range<u64>> {
        let large = self.processes.get(&pid).map(|process| process.large.as_slice()).unwrap_or_default();
        large.iter().map(|(mapping, _)| mapping.start..mapping.end)
    }

    /// A process ran code of a file in parts, at this address. `dir` is its directory in /proc.
    pub fn missing(&self, dir: &Path, pid: Pid, address: u64) -> Missing {
        let Some(process) = self.processes.get(&pid) else { return Missing::Nothing };
        let holds = |(mapping, _): &&(Mapping, u64)| (mapping.start..mapping.end).contains(&address);
        let Some((mapping, file)) = process.large.iter().find(holds) else { return Missing::Nothing };
        let known = self.parts(*file);
        let known =
            known.and_then(|(known, parts)| Some((parts, known.segments.address_at(mapping.offset)?)));
        let Some((parts, begin)) = known else { return Missing::Nothing };
        let in_file = begin.saturating_add(address - mapping.start);
        let Some(part) = u32::try_from(in_file >> PART_SHIFT).ok() else { return Missing::Nothing };
        match parts.get(&part) {
            Some(Part::Without(_)) => return Missing::Nothing,
            Some(Part::Made(key)) => match self.files.get(key).map(|known| &known.state) {
                Some(State::Built { .. }) if process.ranges.all.iter().any(|(_, file)| file == key) => {
                    return Missing::Nothing;
                }
                Some(State::Built { .. }) => return Missing::Look,
                Some(State::Evicted(until)) if Instant::now() < *until => return Missing::Nothing,
                _ => {}
            },
            None if parts.len() >= MAX_PARTS => return Missing::Nothing,
            None => {}
        }
        let Some(inode) = Inode::of(mapping) else { return Missing::Nothing };
        let (dir, mapping) = (dir.to_owned(), mapping.clone());
        Missing::Part(Box::new(Wanted { dir, mapping, inode: inode.part(part) }))
    }

    /// A file in parts, and them.
    pub(super) fn parts(&self, file: u64) -> Option<(&Known, &BTreeMap<u32, Part>)> {
        let known = self.files.get(&file)?;
        match &known.state {
            State::InParts(parts) => Some((known, parts)),
            State::Built { .. } | State::Evicted(_) => None,
        }
    }

    /// Adds the parts of a file that a mapping has. Between them is nothing: to the walker that is code whose table is not there yet.
    pub(super) fn add_parts(
        &self,
        ranges: &mut Ranges,
        mapping: &Mapping,
        known: &Known,
        parts: &BTreeMap<u32, Part>,
    ) {
        let Some(from) = known.segments.address_at(mapping.offset).filter(|at| at & 0xfff == 0) else {
            ranges.add(mapping.start, mapping.end, Code::Without(NoTable::None));
            return;
        };
        let to = from.saturating_add(mapping.end - mapping.start);
        let part_of = |address: u64| u32::try_from(address >> PART_SHIFT).unwrap_or(u32::MAX);
        for (number, part) in parts.range(part_of(from)..=part_of(to)) {
            let begin = (u64::from(*number) << PART_SHIFT).max(from);
            let end = ((u64::from(*number) + 1) << PART_SHIFT).min(to);
            let (begin, code) = match part {
                Part::Without(why) => (begin, Code::Without(*why)),
                Part::Made(key) => {
                    let Some(Known { state: State::Built { address, .. }, page, pages, .. }) =
                        self.files.get(key)
                    else {
                        continue;
                    };
                    let begin = begin.max(page << PAGE_SHIFT);
                    let first = ((begin >> PAGE_SHIFT) - page) as u32;
                    let pages = pages.saturating_sub(first);
                    (begin, Code::With { file: *key, table: *address, first, pages })
                }
            };
            if begin < end {
                ranges.add(mapping.start + (begin - from), mapping.start + (end - from), code);
            }
        }
    }

    /// A file is in parts: those that there are already stay.
    pub(super) fn put_in_parts(&mut self, key: u64, segments: Image, inode: &Inode) {
        if !matches!(self.files.get(&key).map(|known| &known.state), Some(State::InParts(_))) {
            let state = State::InParts(BTreeMap::new());
            let known = Known::new(state, inode.path(), segments);
            self.files.insert(key, known);
        }
    }

    /// Takes what was made of a part.
    pub(super) fn learn_part(
        &mut self,
        made: Made,
        (inode, number): (&Inode, u32),
        tenant: Tenant,
    ) -> Result<(), WalkerError> {
        // If the file went meanwhile, the part is wanted again.
        let Some(file) = self.inodes.get(inode).and_then(|known| known.seen.ok()) else { return Ok(()) };
        let part = match made.found {
            Found::Part(table) => {
                let key = part_key(file, number);
                self.counts.built += 1;
                let new = New { key, segments: Image::default(), table: *table };
                let seen = self.put(new, inode.path(), made.ns, tenant)?;
                if let Some(known) = self.files.get_mut(&key) {
                    known.of = Some(file);
                }
                seen.map_or_else(Part::Without, Part::Made)
            }
            // What could not be read in time is wanted again.
            _ if made.stamp.is_none() => return Ok(()),
            Found::Without(why) => {
                self.counts.refused += u64::from(why == NoTable::Refused);
                Part::Without(why)
            }
            Found::New(_) | Found::InParts(..) | Found::Known(_) | Found::Large => return Ok(()),
        };
        if let Some(State::InParts(parts)) = self.files.get_mut(&file).map(|known| &mut known.state) {
            parts.insert(number, part);
        }
        Ok(())
    }
}
