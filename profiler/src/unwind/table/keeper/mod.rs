//! Which file and which process has which table, and what the walker is told of it.
//!
//! In: processes whose code was mapped, that ended, that were sampled. Out: tables, rules and lists of ranges in the
//! walker's maps. A file's table is shared by all processes that map its contents, whatever its name or inode. When the
//! room is used up the file whose processes were longest not sampled loses its table; its code is then walked by
//! frame pointers and says so, until one of its processes is sampled again. Belongs on a thread of its own: files are
//! read here.

mod files;

use super::dictionary::Dictionary;
use super::disk::Disk;
use super::image::Image;
use super::ranges::{Code, Ranges};
use super::space::Space;
use crate::model::Pid;
use crate::target::maps::{self, Mapping};
use crate::target::open;
use profiler_ebpf::{MAX_TABLED, NoTable, PAGE_SHIFT, ProcessTables, UnwindRule};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of /proc/PID/maps; a line takes about 100 bytes.
const MAX_MAPS: u64 = 8 << 20;
/// Files whose inode is remembered; then all are forgotten at once.
const MAX_INODES: usize = 16_384;
/// How long an inode is believed to hold what it held.
const INODE_FRESH: Duration = Duration::from_secs(60);
/// How long a table stays that no process has.
const UNUSED: Duration = Duration::from_secs(600);
/// A table that was in use this shortly before does not go.
const IN_USE: Duration = Duration::from_secs(30);
/// How long a process's mappings are believed, once it is sampled again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// A vdso has two pages or four.
const MAX_VDSO: u64 = 64 << 10;

/// Telling the walker failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WalkerError(pub String);

/// The walker's maps.
pub trait Walker {
    /// Writes words from this address up, to the end of the last granule.
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError>;
    /// A rule gets a number.
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError>;
    /// From now on, this process is walked by this list.
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<(), WalkerError>;
    /// This process has none.
    fn forget(&mut self, pid: Pid);
    /// Slabs for which this holds are not needed any more.
    fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool);
}

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of tables and lists.
    pub bytes: usize,
    /// Processes.
    pub processes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 48 << 20, processes: MAX_TABLED as usize }
    }
}

/// What there is, and what was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of tables and lists.
    pub bytes: usize,
    /// Tables.
    pub files: usize,
    /// Rows of these.
    pub rows: usize,
    /// Different rules of these.
    pub rules: usize,
    /// Processes with a list.
    pub processes: usize,
    /// Tables built from files.
    pub built: u64,
    /// Tables taken from the disk.
    pub loaded: u64,
    /// Nanoseconds that building and loading took.
    pub build_ns: u64,
    /// Tables thrown out to make room.
    pub evicted: u64,
    /// Files whose unwind information was refused, and processes and ranges that there was no room for.
    pub refused: u64,
}

enum State {
    Built { address: u32, words: usize, rows: usize, rules: Vec<UnwindRule> },
    Evicted,
    Refused,
}

struct Known {
    state: State,
    segments: Image,
    page: u64,
    pages: u32,
    users: u32,
    used: Instant,
}

struct Process {
    ranges: Ranges,
    list: u32,
    words: usize,
    incarnation: u32,
    /// A table of it was thrown out.
    lacking: bool,
    /// When its mappings were read.
    looked: Instant,
}

/// A mapped file, as the kernel prints it: device, inode, path.
type Inode = (u32, u32, u64, Box<Path>);
/// What a file was found to be.
type Seen = Result<u64, NoTable>;

/// All of it.
pub struct Keeper<W> {
    walker: W,
    disk: Option<Disk>,
    limits: Limits,
    space: Space,
    rules: Dictionary,
    files: HashMap<u64, Known>,
    inodes: HashMap<Inode, (Seen, Instant)>,
    processes: HashMap<Pid, Process>,
    incarnation: u32,
    counts: Counts,
}

impl<W: Walker> Keeper<W> {
    /// Nothing yet.
    pub fn new(mut walker: W, disk: Option<Disk>, limits: Limits) -> Result<Self, WalkerError> {
        walker.rule(0, UnwindRule::GAP.word())?;
        walker.rule(Dictionary::UNSUPPORTED, UnwindRule::UNSUPPORTED.word())?;
        Ok(Self {
            walker,
            disk,
            limits,
            space: Space::new(limits.bytes),
            rules: Dictionary::default(),
            files: HashMap::new(),
            inodes: HashMap::new(),
            processes: HashMap::new(),
            incarnation: 0,
            counts: Counts::default(),
        })
    }

    /// The walker's maps.
    pub fn walker(&self) -> &W {
        &self.walker
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        let rows =
            |known: &Known| if let State::Built { rows, .. } = known.state { Some(rows) } else { None };
        Counts {
            bytes: self.space.bytes(),
            files: self.files.values().filter_map(rows).count(),
            rows: self.files.values().filter_map(rows).sum(),
            rules: self.rules.len(),
            processes: self.processes.len(),
            refused: self.counts.refused + self.rules.refused,
            ..self.counts
        }
    }

    /// The code of a process changed, or it is new: its mappings are read. `dir` is its directory in /proc. Files with
    /// more than `most` bytes of unwind information are left for another time; whether there are any.
    pub fn look(&mut self, dir: &Path, pid: Pid, most: u64) -> Result<bool, WalkerError> {
        let text = open::read_bounded(&dir.join("maps"), MAX_MAPS).unwrap_or_default();
        let (mappings, _) = maps::parse(&text);
        if mappings.is_empty() {
            // It ended, or it is a kernel thread.
            self.forget(pid);
            return Ok(false);
        }
        if !self.processes.contains_key(&pid) && self.processes.len() >= self.limits.processes {
            self.counts.refused += 1;
            return Ok(false);
        }
        // Files that are known are told at once; the others are built first, which takes a moment.
        let known: Vec<Option<Seen>> = mappings.iter().map(|mapping| self.recall(mapping)).collect();
        if known.iter().any(Option::is_none) {
            let seen = known.iter().map(|seen| seen.unwrap_or(Err(NoTable::Building)));
            let ranges = self.ranges(&mappings, seen.collect());
            self.tell(pid, ranges)?;
        }
        let mut seen = Vec::with_capacity(mappings.len());
        for (mapping, known) in mappings.iter().zip(known) {
            seen.push(match known {
                Some(seen) => seen,
                None => self.find(dir, mapping, most)?,
            });
        }
        for key in seen.iter().flatten() {
            self.rebuild_if_evicted(dir, &mappings, &seen, *key)?;
        }
        let left = seen.contains(&Err(NoTable::Building));
        let ranges = self.ranges(&mappings, seen);
        self.tell(pid, ranges)?;
        Ok(left)
    }

    /// A process was sampled: its tables are in use. True: it should be looked at, for it is new, a table of it was
    /// thrown out, or it was not looked at for a while (memory without a file is mapped without an event).
    pub fn used(&mut self, pid: Pid) -> bool {
        let now = Instant::now();
        let Some(process) = self.processes.get(&pid) else { return true };
        for (_, file) in &process.ranges.all {
            if let Some(known) = self.files.get_mut(file) {
                known.used = now;
            }
        }
        process.lacking || now.saturating_duration_since(process.looked) >= LOOK_AGAIN
    }

    /// A process ended or runs another program: the kernel has dropped its list already.
    pub fn forget(&mut self, pid: Pid) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.walker.forget(pid);
        self.space.give(process.list, process.words, Instant::now());
        self.release(&process.ranges);
    }

    /// From time to time: processes that ended unseen go, and tables that nobody has.
    pub fn sweep(&mut self, proc: &Path) {
        let gone = |pid: &&Pid| !proc.join(pid.to_string()).exists();
        for pid in self.processes.keys().filter(gone).copied().collect::<Vec<_>>() {
            self.forget(pid);
        }
        let now = Instant::now();
        let unused = |known: &Known| known.users == 0 && now.saturating_duration_since(known.used) >= UNUSED;
        let unused = self.files.iter().filter(|(_, known)| unused(known)).map(|(key, _)| *key);
        for key in unused.collect::<Vec<_>>() {
            self.drop_table(key, now);
            self.files.remove(&key);
        }
        self.inodes.retain(|_, (seen, at)| {
            let fresh = now.saturating_duration_since(*at) < INODE_FRESH;
            match seen {
                Ok(key) => self.files.get(key).is_some_and(|known| fresh || known.users > 0),
                Err(_) => fresh,
            }
        });
        self.space.settle(now);
        let space = &self.space;
        self.walker.free_slabs(&|slab| space.is_empty(slab));
    }

    /// The list of a process.
    fn ranges(&self, mappings: &[Mapping], seen: Vec<Seen>) -> Ranges {
        let mut ranges = Ranges::default();
        for (mapping, seen) in mappings.iter().zip(seen) {
            let code = seen.map_or_else(Code::Without, |key| self.code(key, mapping));
            ranges.add(mapping.start, mapping.end, code);
        }
        ranges
    }

    fn code(&self, file: u64, mapping: &Mapping) -> Code {
        let Some(known) = self.files.get(&file) else { return Code::Without(NoTable::Refused) };
        let table = match known.state {
            State::Built { address, .. } => address,
            State::Evicted | State::Refused => NoTable::Refused as u32,
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
    fn tell(&mut self, pid: Pid, ranges: Ranges) -> Result<(), WalkerError> {
        let now = Instant::now();
        if let Some(process) = self.processes.get_mut(&pid).filter(|process| process.ranges == ranges) {
            process.looked = now;
            return Ok(());
        }
        let words = ranges.words();
        let Some(list) = self.room(words.len())? else {
            self.counts.refused += 1;
            self.forget(pid);
            return Ok(());
        };
        self.counts.refused += ranges.cut as u64;
        let before = self.processes.get(&pid);
        let incarnation = match before {
            Some(process) if !ranges.contradicts(&process.ranges) => process.incarnation,
            _ => {
                self.incarnation = self.incarnation.wrapping_add(1);
                self.incarnation | 1 << 31
            }
        };
        self.walker.write(list, &words)?;
        let tables = ProcessTables { list, ranges: ranges.all.len() as u32, incarnation, pad: 0 };
        self.walker.set(pid, tables)?;
        for (_, file) in &ranges.all {
            if let Some(known) = self.files.get_mut(file) {
                known.users += 1;
                known.used = Instant::now();
            }
        }
        let refused = |(range, file): &(profiler_ebpf::CodeRange, u64)| {
            *file != 0 && range.table == NoTable::Refused as u32
        };
        let lacking = ranges.all.iter().any(refused);
        let new = Process { ranges, list, words: words.len(), incarnation, lacking, looked: now };
        if let Some(old) = self.processes.insert(pid, new) {
            self.space.give(old.list, old.words, Instant::now());
            self.release(&old.ranges);
        }
        Ok(())
    }

    fn release(&mut self, ranges: &Ranges) {
        for (_, file) in &ranges.all {
            if let Some(known) = self.files.get_mut(file) {
                known.users = known.users.saturating_sub(1);
            }
        }
    }
}
