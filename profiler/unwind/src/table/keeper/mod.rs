//! Which file and which process has which table, and what the walker is told of it.
//!
//! In: processes whose code was mapped, that ended, that were sampled; tables that were made. Out: tables, rules and
//! lists of ranges in the walker's maps, and which files are wanted for them. A file's table is shared by all processes
//! that map its contents, whatever its name or inode. When the room is used up the file whose processes were longest
//! not sampled loses its table, and where all are sampled those of who holds more than his share
//! ([`Excess`](emberscope_model::Excess)); its code is then walked by frame pointers and says so, until one of its
//! processes is sampled again. Nothing here reads a target's file: what is known is told in some microseconds.

mod files;
mod lists;
mod parts;
mod room;
#[cfg(test)]
mod tests;
mod told;
mod walker;

use super::dictionary::Dictionary;
use super::file::{Inode, Keys, Stamp, Wanted};
use super::image::Image;
use super::ranges::Ranges;
use super::space::Space;
use super::vdso;
use emberscope_model::{Pid, Refusals, Tenant};
use emberscope_target::maps::Mapping;
pub use parts::Missing;
use parts::Part;
use profiler_ebpf::{NoTable, UnwindRule};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};
pub use walker::{Counts, Held, Limits, Walker, WalkerError};

/// How long a table stays that no process has: the next stage's program or the next compiler's run has it again, and a
/// large one comes back from the disk in milliseconds.
const UNUSED: Duration = Duration::from_secs(60);
/// How long a process's mappings are believed, once it is sampled again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

enum State {
    Built {
        address: u32,
        words: usize,
        rows: usize,
        rules: Vec<UnwindRule>,
    },
    /// Thrown out, or there was no room; not made again before this.
    Evicted(Instant),
    /// The file is large: what became of its parts that were wanted so far, by their numbers.
    InParts(BTreeMap<u32, Part>),
}

struct Known {
    state: State,
    /// Path of the file, where it was first met.
    path: Box<Path>,
    /// Nanoseconds that the table took.
    ns: u64,
    segments: Image,
    page: u64,
    pages: u32,
    /// The file that this is a part of.
    of: Option<u64>,
    users: u32,
    used: Instant,
}

struct Process {
    ranges: Ranges,
    list: u32,
    words: usize,
    incarnation: u32,
    stamp: u32,
    /// A table of the process was thrown out.
    lacking: bool,
    /// When the mappings of the process were read.
    looked: Instant,
    /// The mappings of the process that are of files in parts, and the files.
    large: Vec<(Mapping, u64)>,
}

impl Known {
    /// Nobody has it, and no code.
    fn new(state: State, path: &Path, segments: Image) -> Self {
        Self {
            state,
            path: path.into(),
            ns: 0,
            segments,
            page: 0,
            pages: 0,
            of: None,
            users: 0,
            used: Instant::now(),
        }
    }
}

impl Process {
    /// The keys of what it has, as often as it has it.
    fn files(&self) -> impl Iterator<Item = u64> {
        self.ranges.all.iter().map(|(_, file)| *file).chain(self.large.iter().map(|(_, file)| *file))
    }
}

/// What a file was found to be: the key of its table.
type Seen = Result<u64, NoTable>;

struct Remembered {
    seen: Seen,
    stamp: Option<Stamp>,
    at: Instant,
}

/// Tables by file, lists by process, and the room that both take in the walker's maps.
pub struct Keeper<W> {
    walker: W,
    limits: Limits,
    space: Space,
    rules: Dictionary,
    files: HashMap<u64, Known>,
    /// The keys of `files` that have a table, for whoever makes tables.
    keys: Keys,
    inodes: HashMap<Inode, Remembered>,
    /// Bytes that the vdso takes, and the key of its table.
    vdso: Option<(u64, u64)>,
    processes: HashMap<Pid, Process>,
    tenants: HashMap<Pid, Tenant>,
    incarnation: u32,
    stamp: u32,
    counts: Counts,
    refusals: Refusals,
    /// Who was found to hold his share since the last sweep: without room he is refused, and not all is counted again.
    over: HashSet<Tenant>,
}

impl<W: Walker> Keeper<W> {
    /// A keeper that knows the vdso only.
    ///
    /// # Errors
    /// The walker's maps cannot be written.
    pub fn new(mut walker: W, limits: Limits) -> Result<Self, WalkerError> {
        walker.rule(0, UnwindRule::GAP.word())?;
        walker.rule(Dictionary::UNSUPPORTED, UnwindRule::UNSUPPORTED.word())?;
        let mut keeper = Self {
            walker,
            limits,
            space: Space::new(limits.bytes),
            rules: Dictionary::default(),
            files: HashMap::new(),
            keys: Keys::default(),
            inodes: HashMap::new(),
            vdso: None,
            processes: HashMap::new(),
            tenants: HashMap::new(),
            incarnation: 0,
            stamp: 0,
            counts: Counts::default(),
            refusals: Refusals::default(),
            over: HashSet::new(),
        };
        if let Some((len, new)) = vdso::own() {
            let seen = keeper.put(new, Path::new("[vdso]"), 0, Tenant::default())?;
            keeper.vdso = seen.ok().map(|key| (len, key));
        }
        Ok(keeper)
    }

    /// The walker's maps.
    pub fn walker(&self) -> &W {
        &self.walker
    }

    /// Whether a process has a list.
    pub fn knows(&self, pid: Pid) -> bool {
        self.processes.contains_key(&pid)
    }

    /// The keys of all tables.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The processes that have a list.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.processes.keys().copied()
    }

    /// The code of a process changed, or the process is new: its mappings are read, and what is known of them is told.
    /// `dir` is its directory in /proc. The answer: files that must be made first.
    ///
    /// # Errors
    /// The walker's maps cannot be written: the process keeps the list that it had, if any.
    pub fn look(&mut self, dir: &Path, pid: Pid) -> Result<Vec<Wanted>, WalkerError> {
        if !self.processes.contains_key(&pid) && !self.place(pid) {
            self.refuse(self.tenant(pid));
            return Ok(Vec::new());
        }
        self.walker.expect(pid)?;
        let Some(mappings) = lists::mappings(dir, pid) else {
            // What is known of it stays; it is looked at again when it is sampled.
            self.counts.refused += 1;
            return Ok(Vec::new());
        };
        if mappings.is_empty() {
            // It ended, or it is a kernel thread.
            self.walker.forget(pid);
            self.forget(pid);
            return Ok(Vec::new());
        }
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut seen = Vec::with_capacity(mappings.len());
        for mapping in &mappings {
            let known = self.recall(dir, mapping);
            if known.is_none_or(|seen| self.may_come_back(seen))
                && let Some(inode) = Inode::of(mapping)
                && wanted.iter().all(|other| other.inode != inode)
            {
                wanted.push(Wanted { dir: dir.to_owned(), mapping: mapping.clone(), inode });
            }
            seen.push(known.unwrap_or(Err(NoTable::Building)));
        }
        self.tell(pid, &mappings, &seen)?;
        Ok(wanted)
    }

    /// A process was sampled: its tables are in use. True: it should be looked at, for it is new, a table of it was
    /// thrown out, or it was not looked at for a while (memory without a file is mapped without an event).
    pub fn used(&mut self, pid: Pid) -> bool {
        let now = Instant::now();
        let Some(process) = self.processes.get(&pid) else { return true };
        for file in process.files() {
            if let Some(known) = self.files.get_mut(&file) {
                known.used = now;
            }
        }
        process.lacking || now.saturating_duration_since(process.looked) >= LOOK_AGAIN
    }

    /// From time to time: processes that ended unseen go, and tables that nobody has.
    pub fn sweep(&mut self, proc: &Path) {
        let gone = |pid: &&Pid| !proc.join(pid.to_string()).exists();
        for pid in self.processes.keys().filter(gone).copied().collect::<Vec<_>>() {
            self.forget(pid);
        }
        self.tenants.retain(|pid, _| self.processes.contains_key(pid) || !gone(&pid));
        self.over.clear();
        let now = Instant::now();
        let vdso = self.vdso.map(|(_, key)| key);
        let unused = |known: &Known| known.users == 0 && now.saturating_duration_since(known.used) >= UNUSED;
        let unused = self.files.iter().filter(|(_, known)| unused(known)).map(|(key, _)| *key);
        for key in unused.filter(|key| Some(*key) != vdso).collect::<Vec<_>>() {
            self.drop_table(key, now);
            self.files.remove(&key);
        }
        let files = &self.files;
        self.inodes.retain(|_, known| match known.seen {
            Ok(key) => files.contains_key(&key),
            Err(_) => now.saturating_duration_since(known.at) < UNUSED,
        });
        self.space.settle(now);
        let space = &self.space;
        self.walker.free_slabs(&|slab| space.is_empty(slab));
    }
}
