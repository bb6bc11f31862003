//! The processes of a [`Keeper`]: mappings and what is known of them in, lists of ranges in the walker's space out.
//!
//! Before a list's ranges lies its stamp: a process that was just forked is walked by its parent's list, and the stamp
//! goes when the list does.

use super::super::ranges::{Code, Ranges};
use super::{Keeper, Process, Seen, State, Walker, WalkerError};
use emberscope_model::Pid;
use emberscope_target::maps::Mapping;
use emberscope_target::open::{self, Refusal};
use profiler_ebpf::{CodeRange, GRANULE_WORDS, NoTable, PAGE_SHIFT, ProcessTables, STAMP_WORDS};
use std::path::Path;
use std::time::Instant;

/// Threads whose maps are tried where the first one ended.
const MAX_THREADS: usize = 4;

/// The executable mappings of a process; None: they do not come in time. When its first thread has ended, another one's
/// file tells them.
pub(super) fn mappings(dir: &Path, pid: Pid) -> Option<Vec<Mapping>> {
    let read = |dir: &Path| match open::mappings_soon(dir) {
        Err(Refusal::Late) => None,
        read => Some(read.unwrap_or_default().mappings),
    };
    let all = read(dir)?;
    if !all.is_empty() {
        return Some(all);
    }
    let threads = std::fs::read_dir(dir.join("task")).into_iter().flatten().flatten();
    let others = threads.filter(|thread| *thread.file_name() != *pid.to_string());
    let mut all = others.take(MAX_THREADS).map_while(|thread| read(&thread.path()));
    Some(all.find(|all| !all.is_empty()).unwrap_or_default())
}

impl<W: Walker> Keeper<W> {
    /// A process ended or runs another program: the kernel has dropped its list already.
    pub fn forget(&mut self, pid: Pid) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.walker.forget(pid);
        self.give_up(&process);
    }

    fn give_up(&mut self, process: &Process) {
        // Its children are not walked by it any more. What fails here fails whenever the walker is told something.
        let first = process.ranges.words(0).into_iter().take(GRANULE_WORDS as usize).collect::<Vec<_>>();
        if let Err(error) = self.walker.write(process.list, &first) {
            tracing::debug!(%error, "a list of code is not marked as given up");
        }
        self.space.give(process.list, process.words, Instant::now());
        for file in process.files() {
            if let Some(known) = self.files.get_mut(&file) {
                known.users = known.users.saturating_sub(1);
            }
        }
    }

    /// The list of a process.
    fn ranges(&self, mappings: &[Mapping], seen: &[Seen]) -> Ranges {
        let mut ranges = Ranges::default();
        for (mapping, seen) in mappings.iter().zip(seen) {
            if let Ok(key) = seen
                && let Some((known, parts)) = self.parts(*key)
            {
                self.add_parts(&mut ranges, mapping, known, parts);
                continue;
            }
            let code = seen.map_or_else(Code::Without, |key| self.code(key, mapping));
            ranges.add(mapping.start, mapping.end, code);
        }
        ranges
    }

    fn code(&self, file: u64, mapping: &Mapping) -> Code {
        let Some(known) = self.files.get(&file) else { return Code::Without(NoTable::Refused) };
        let table = match known.state {
            State::Built { address, .. } => address,
            State::Evicted(_) | State::InParts(_) => NoTable::Refused as u32,
        };
        let Some(address) = known.segments.address_at(mapping.offset).filter(|at| at & 0xfff == 0) else {
            return Code::Without(NoTable::None);
        };
        let first =
            (address >> PAGE_SHIFT).checked_sub(known.page).and_then(|first| u32::try_from(first).ok());
        match first.and_then(|first| Some((first, known.pages.checked_sub(first)?))) {
            Some((first, pages)) if pages > 0 => Code::With { file, table, first, pages },
            _ => Code::Without(NoTable::None),
        }
    }

    /// Tells the walker a process's list, if it is another than before.
    pub(super) fn tell(&mut self, pid: Pid, mappings: &[Mapping], seen: &[Seen]) -> Result<(), WalkerError> {
        let now = Instant::now();
        let ranges = self.ranges(mappings, seen);
        if let Some(process) = self.processes.get_mut(&pid).filter(|process| process.ranges == ranges) {
            process.looked = now;
            return Ok(());
        }
        let words = ranges.words(0).len();
        let tenant = self.tenant(pid);
        let Some(list) = self.room(words, tenant)? else {
            self.refuse(tenant);
            self.forget(pid);
            return Ok(());
        };
        // Tables may have gone for that room.
        let ranges = self.ranges(mappings, seen);
        self.counts.refused += ranges.cut as u64;
        let before = self.processes.get(&pid);
        let incarnation = match before {
            Some(process) if !ranges.contradicts(&process.ranges) => process.incarnation,
            _ => {
                self.incarnation = self.incarnation.wrapping_add(1);
                self.incarnation | 1 << 31
            }
        };
        self.stamp = self.stamp.wrapping_add(1).max(1);
        self.walker.write(list, &ranges.words(self.stamp))?;
        let tables = ProcessTables {
            list: list + STAMP_WORDS,
            ranges: ranges.all.len() as u32,
            incarnation,
            stamp: self.stamp,
        };
        if !self.walker.set(pid, tables)? {
            // It will be told of, and looked at again.
            self.space.give(list, words, now);
            self.forget(pid);
            return Ok(());
        }
        let refused = |(range, file): &(CodeRange, u64)| *file != 0 && range.table == NoTable::Refused as u32;
        let lacking = ranges.all.iter().any(refused);
        let large = mappings.iter().zip(seen).filter_map(|(mapping, seen)| {
            let key = seen.ok().filter(|key| self.parts(*key).is_some())?;
            Some((mapping.clone(), key))
        });
        let large = large.collect();
        let new =
            Process { ranges, list, words, incarnation, stamp: self.stamp, lacking, looked: now, large };
        for file in new.files() {
            if let Some(known) = self.files.get_mut(&file) {
                known.users += 1;
                known.used = now;
            }
        }
        if let Some(old) = self.processes.insert(pid, new) {
            self.give_up(&old);
        }
        Ok(())
    }

    /// A file's table goes: its processes are told.
    pub(super) fn without(&mut self, file: u64) -> Result<(), WalkerError> {
        let has = |process: &Process| process.ranges.all.iter().any(|(_, of)| *of == file);
        let users = self.processes.iter().filter(|(_, process)| has(process)).map(|(pid, _)| *pid);
        for pid in users.collect::<Vec<_>>() {
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            process.lacking = true;
            for (range, of) in &mut process.ranges.all {
                if *of == file {
                    range.table = NoTable::Refused as u32;
                }
            }
            // As long as before, so written in place: a range has its table or none at any moment.
            self.walker.write(process.list, &process.ranges.words(process.stamp))?;
        }
        Ok(())
    }
}
