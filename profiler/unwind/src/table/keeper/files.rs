//! The files of a [`Keeper`]: tables in, words in the walker's space out.

use super::super::build::Table;
use super::super::file::{Found, Inode, Made, New, Stamp};
use super::{Keeper, Known, Remembered, Seen, State, Walker, WalkerError};
use emberscope_model::Tenant;
use emberscope_target::maps::{Backing, Mapping};
use profiler_ebpf::NoTable;
use std::path::Path;
use std::time::{Duration, Instant};

/// Files whose inode is remembered; then all are forgotten at once.
const MAX_INODES: usize = 16_384;
/// A table that was thrown out, or had no room, is not made again before this.
pub(super) const AGAIN: Duration = Duration::from_secs(10);
/// Below this, a 32-bit process keeps its vdso.
const HIGH: u64 = 1 << 32;

impl<W: Walker> Keeper<W> {
    /// What is known of a mapping without opening its file.
    pub(super) fn recall(&self, dir: &Path, mapping: &Mapping) -> Option<Seen> {
        match &mapping.backing {
            Backing::File { .. } => {
                let known = self.inodes.get(&Inode::of(mapping)?)?;
                // As long as a process has it mapped it is the same: who writes into mapped code breaks it. Else an
                // inode may have been written, or be another file's.
                let mapped =
                    known.seen.is_ok_and(|key| self.files.get(&key).is_some_and(|file| file.users > 0));
                let same = || known.stamp.is_some() && Stamp::now(dir, mapping) == known.stamp;
                (mapped || same()).then_some(known.seen)
            }
            Backing::Vdso => Some(match self.vdso {
                Some((len, key)) if mapping.end - mapping.start == len && mapping.start >= HIGH => Ok(key),
                _ => Err(NoTable::None),
            }),
            Backing::Anonymous | Backing::Special(_) => Some(Err(NoTable::None)),
        }
    }

    /// Whether its table was thrown out long enough before.
    pub(super) fn may_come_back(&self, seen: Seen) -> bool {
        let state = seen.ok().and_then(|key| self.files.get(&key)).map(|known| &known.state);
        matches!(state, Some(State::Evicted(until)) if Instant::now() >= *until)
    }

    /// Takes what was made of a file, for a process of the tenant `tenant`.
    ///
    /// # Errors
    /// The walker's maps cannot be written. The file is not remembered then: it is wanted again.
    pub fn learn(&mut self, made: Made, tenant: Tenant) -> Result<(), WalkerError> {
        self.counts.build_ns += made.ns;
        if let Some((file, number)) = made.inode.parted() {
            return self.learn_part(made, (&file, number), tenant);
        }
        let seen = match made.found {
            Found::Large | Found::Part(_) => return Ok(()),
            Found::InParts(key, segments) => {
                self.put_in_parts(key, segments, &made.inode);
                Ok(key)
            }
            Found::Without(why) => {
                self.counts.refused += u64::from(why == NoTable::Refused);
                Err(why)
            }
            // If it went meanwhile, the file is wanted again.
            Found::Known(key) if !self.files.contains_key(&key) => return Ok(()),
            Found::Known(key) => Ok(key),
            Found::New(new) => {
                let which = if made.loaded { &mut self.counts.loaded } else { &mut self.counts.built };
                *which += 1;
                self.put(*new, made.inode.path(), made.ns, tenant)?
            }
        };
        if self.inodes.len() >= MAX_INODES {
            self.inodes.clear();
        }
        self.inodes.insert(made.inode, Remembered { seen, stamp: made.stamp, at: Instant::now() });
        Ok(())
    }

    /// Takes a table, for a process of the tenant `tenant`: its key.
    pub(super) fn put(
        &mut self,
        new: New,
        path: &Path,
        ns: u64,
        tenant: Tenant,
    ) -> Result<Seen, WalkerError> {
        let New { key, segments, table } = new;
        let (page, pages) = (table.page, table.pages());
        let state = match self.files.get(&key).map(|known| &known.state) {
            Some(State::Built { .. }) => return Ok(Ok(key)),
            _ => self.upload(&table, tenant)?,
        };
        self.keys.set(key, matches!(state, State::Built { .. }));
        let users = self.files.get(&key).map_or(0, |known| known.users);
        self.files.insert(key, Known { ns, page, pages, users, ..Known::new(state, path, segments) });
        Ok(Ok(key))
    }

    /// Gives the walker a table, after making room.
    fn upload(&mut self, table: &Table, tenant: Tenant) -> Result<State, WalkerError> {
        let Some(address) = self.room(table.words(), tenant)? else {
            self.refuse(tenant);
            return Ok(State::Evicted(Instant::now() + AGAIN));
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
}
