//! How and how much the store on disk keeps.

use super::super::journal::Fsync;
use super::super::limits::AnswerLimits;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What happens on a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest block goes, so that the newest windows are kept.
    DropOldest,
    /// Nothing new is written until there is room: what is on the disk stays.
    Stop,
}

/// How much of the file system is left free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFree {
    /// A twentieth, but 1 GiB at least and 4 GiB at most; of a small one 15 %.
    Auto,
    /// So many bytes of the file system.
    Bytes(u64),
    /// So many hundredths of the file system.
    Percent(u8),
}

impl KeepFree {
    /// Bytes to be left free of a file system of `size` bytes.
    pub fn bytes(self, size: u64) -> u64 {
        match self {
            // As journald's SystemKeepFree, which has 15 % and at most 4 GiB: a disk of some TB need not lose so much.
            Self::Auto => (size / 20).clamp(1 << 30, 4 << 30).min(size / 100 * 15),
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => size / 100 * u64::from(percent.min(100)),
        }
    }

    /// Whether a directory's file system has more free than is kept free, counted in what is about to be free.
    ///
    /// # Errors
    /// It has not: how much it has.
    pub fn has_room(self, dir: &Path, about_to_be: u64) -> io::Result<()> {
        if self == Self::Bytes(0) {
            return Ok(());
        }
        // Where it cannot be told, writing tells.
        let Ok(about) = rustix::fs::statvfs(dir) else { return Ok(()) };
        let keep = self.bytes(about.f_blocks.saturating_mul(about.f_frsize));
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        match free.saturating_add(about_to_be) < keep {
            true => {
                Err(io::Error::other(format!("{free} bytes are free, and {keep} are kept free (keep-free)")))
            }
            false => Ok(()),
        }
    }
}

/// Windows that become coarser with age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollUp {
    /// A block whose windows are all so old,
    pub after: Duration,
    /// gets windows of at least this length.
    pub window: Duration,
}

/// How and how much a store on disk keeps.
#[derive(Clone, Debug)]
pub struct DiskStoreConfig {
    /// Directory of the store: `journal`, `blocks` and `damaged` are made in it.
    pub dir: PathBuf,
    /// Length of the windows that are appended: answers are rounded to it.
    pub window_length: Duration,
    /// Memory for windows that are not in a block yet. A part that takes half of it is sealed; over it the
    /// oldest sealed parts leave memory though no block could be written. Blocks are merged until the new one
    /// takes three quarters of it, and that beside it.
    pub memory_bytes: usize,
    /// Memory for tables of blocks, beside what a query needs while it runs.
    pub cache_bytes: usize,
    /// A part holds the windows of one such stretch of wall-clock time.
    pub block_length: Duration,
    /// How long after such a stretch its blocks are merged.
    pub merge_after: Duration,
    /// When the journal is flushed to the disk.
    pub fsync: Fsync,
    /// Windows become coarser with age; none: they stay as they are.
    pub roll_ups: Vec<RollUp>,
    /// Blocks go when all their windows are older.
    pub retention_age: Duration,
    /// The oldest blocks go when all files together take more.
    pub retention_bytes: u64,
    /// What happens on a full disk.
    pub when_full: WhenFull,
    /// How much of the file system is left free: less, and it counts as full.
    pub keep_free: KeepFree,
    /// How large an answer may be, and what it may cost.
    pub answers: AnswerLimits,
}

impl DiskStoreConfig {
    /// The defaults for a directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            window_length: Duration::from_secs(10),
            memory_bytes: 12 << 20,
            cache_bytes: 5 << 20,
            block_length: Duration::from_secs(3600),
            merge_after: Duration::from_secs(300),
            fsync: Fsync::Window,
            roll_ups: Vec::new(),
            retention_age: Duration::from_secs(14 * 86_400),
            retention_bytes: 10 << 30,
            when_full: WhenFull::DropOldest,
            keep_free: KeepFree::Bytes(0),
            answers: AnswerLimits::default(),
        }
    }
}
