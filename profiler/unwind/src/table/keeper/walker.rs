//! What a [`Keeper`](super::Keeper) is between: the walker's maps, how much it may hold, and what it counts.

use emberscope_model::Pid;
use profiler_ebpf::{MAX_TABLED, ProcessTables};
use std::path::Path;
use std::time::Duration;

/// Telling the walker failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WalkerError(pub String);

/// The walker's maps.
pub trait Walker {
    /// Writes words from this address up, to the end of the last granule.
    ///
    /// # Errors
    /// The map cannot be written.
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError>;
    /// Gives a rule its number.
    ///
    /// # Errors
    /// The map cannot be written.
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError>;
    /// Before a process's mappings are read: from now on the kernel notes whether it runs another program or ends.
    ///
    /// # Errors
    /// The map cannot be written.
    fn expect(&mut self, pid: Pid) -> Result<(), WalkerError>;
    /// Has a process walked by this list from now on. False: since [`expect`](Self::expect) it ended or runs another
    /// program.
    ///
    /// # Errors
    /// The map cannot be written.
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<bool, WalkerError>;
    /// Takes the list of a process away.
    fn forget(&mut self, pid: Pid);
    /// Slabs for which this holds are not needed any more.
    fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool);
}

/// How much a keeper may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of tables and lists.
    pub bytes: usize,
    /// Processes with a list, at most.
    pub processes: usize,
    /// A table that was in use this shortly before does not go.
    pub in_use: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 16 << 20, processes: MAX_TABLED as usize, in_use: Duration::from_secs(30) }
    }
}

/// A table that is held, for the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// A file that has it, where a process mapped it.
    pub file: Box<Path>,
    /// Bytes of the table.
    pub bytes: usize,
    /// How many rows the table has.
    pub rows: usize,
    /// Mappings of code that it is for, of all processes.
    pub mappings: u32,
    /// Nanoseconds that building or loading it took.
    pub ns: u64,
}

/// What there is, and what was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of tables and lists.
    pub bytes: usize,
    /// How many tables there are.
    pub files: usize,
    /// Rows of all tables.
    pub rows: usize,
    /// Different rules of all tables.
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
