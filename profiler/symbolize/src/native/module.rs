//! A file that addresses are in: what tells it from others, and what is known of it.

use super::NativeCounters;
use super::demangle::{self, Mangled};
use super::table::Table;
use emberscope_model::{Frame, thread_cpu_time};
use emberscope_supervise::quarantine::Item;
use emberscope_target::elf::Headers;
use emberscope_target::text::hex;
use rustix::fs::Stat;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A name that takes longer to demangle is one too many. It cannot: the worst that are known take 0.3 ms, and an emulated
/// machine, whose first names of all take some ms, 30 times as long.
const SLOW: Duration = Duration::from_millis(50);
/// So many of them, and the names of their file stay as they are.
const MAX_SLOW: u8 = 3;

/// Handle of a file; valid for one [`Natives::generation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(pub(super) u32);

/// What tells a file from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModuleKey {
    /// Its build id, owner and size.
    BuildId {
        /// Its build id.
        id: Box<[u8]>,
        /// Who owns it.
        owner: u32,
        /// Bytes.
        size: u64,
    },
    /// Where it has none: which it is, and when it was written.
    File {
        /// Of its file system.
        device: u64,
        /// Its number there.
        inode: u64,
        /// Bytes.
        size: u64,
        /// Seconds and nanoseconds.
        modified: (i64, u64),
    },
}

impl ModuleKey {
    /// Reads the file's headers.
    pub fn of(file: &File, stat: &Stat) -> Self {
        let size = stat.st_size as u64;
        match Headers::read(file, size).ok().and_then(|h| h.build_id(file)) {
            Some(id) => Self::BuildId { id, owner: stat.st_uid, size },
            None => Self::File {
                device: stat.st_dev,
                inode: stat.st_ino,
                size,
                modified: (stat.st_mtime, stat.st_mtime_nsec),
            },
        }
    }

    /// What a daemon that comes down over it remembers.
    pub(super) fn item(&self, name: &str) -> Item {
        match self {
            Self::BuildId { id, owner, size } => Item::file(&format!("{} {owner} {size}", hex(id)), name),
            Self::File { device, inode, size, modified: (seconds, nanos) } => {
                Item::file(&format!("{device:x}:{inode}:{size}:{seconds}.{nanos}"), name)
            }
        }
    }
}

/// A file.
pub(super) struct Module {
    pub name: Arc<str>,
    pub item: Item,
    pub table: Option<Table>,
    /// No symbols can be had from it.
    pub barren: bool,
    pub used: Instant,
    /// Names of it that took too long.
    slow: u8,
    /// Frames by the offset from which they hold, with that to which they do.
    pub functions: BTreeMap<u64, (u64, Arc<Frame>)>,
}

impl Module {
    /// One of which nothing was read yet.
    pub fn new(name: &str, item: Item) -> Self {
        let (table, functions) = (None, BTreeMap::new());
        Self { name: name.into(), item, table, barren: false, used: Instant::now(), slow: 0, functions }
    }

    /// A symbol's name for people, if it has one that can be had within bounds.
    pub fn demangle(&mut self, symbol: String, counters: &mut NativeCounters) -> String {
        let shown = if self.slow < MAX_SLOW {
            // By what this thread used: another one in its place is no fault of a name.
            let began = thread_cpu_time();
            let (shown, _) = demangle::demangle(&symbol);
            self.slow += u8::from(thread_cpu_time().saturating_sub(began) > SLOW);
            shown
        } else if symbol.starts_with('_') {
            Err(Mangled::Slow)
        } else {
            Ok(None)
        };
        match shown {
            Ok(Some(name)) => name,
            Ok(None) => symbol,
            Err(why) => {
                let at = Mangled::ALL.iter().position(|reason| *reason == why);
                if let Some(count) = at.and_then(|at| counters.mangled.get_mut(at)) {
                    *count += 1;
                }
                symbol
            }
        }
    }
}

/// What an address is called that no symbol covers.
pub fn offset_name(module: &str, offset: u64) -> String {
    format!("{module}+0x{offset:x}")
}
