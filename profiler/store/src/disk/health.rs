//! What the disk did to the store, counted and told.
//!
//! In: errors and what was given up. Out: [`DiskUsage`], for the status and the metrics. Limits: the last
//! [`MAX_LISTED`] things set aside are named, all are counted; `gaps` keeps more of them, for answers. An error is
//! logged when it begins and when it ends, not each time.

use super::super::gaps::Gaps;
use emberscope_model::{MissingPart, TimeRange, WallTime};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of things set aside that are kept.
const MAX_LISTED: usize = 20;

/// What can fail on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failing {
    /// Appending to the journal.
    Journal,
    /// Flushing the journal to the disk.
    Sync,
    /// Writing a block.
    Block,
    /// Removing what is old.
    Remove,
    /// Making an old block's windows coarser.
    RollUp,
    /// Merging the blocks of an hour.
    Merge,
}

impl Failing {
    pub const ALL: [Self; 6] =
        [Self::Journal, Self::Sync, Self::Block, Self::Remove, Self::RollUp, Self::Merge];
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Sync => "sync",
            Self::Block => "block",
            Self::Remove => "remove",
            Self::RollUp => "roll-up",
            Self::Merge => "merge",
        }
    }
}

/// Files that are not answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where the files were.
    pub path: PathBuf,
    /// Where the files are now; None: they could not be moved.
    pub now: Option<PathBuf>,
    /// What is wrong with the files, in words.
    pub says: String,
}

/// What a store has on the disk, and how that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// How many blocks there are.
    pub blocks: usize,
    /// Windows' length, how many blocks have it, and the end of their last window, the shortest first.
    pub resolutions: Vec<(Duration, usize, WallTime)>,
    /// Bytes of blocks and journals.
    pub bytes: u64,
    /// Bytes of journals.
    pub journal_bytes: u64,
    /// Bytes of records that wait in memory until the journal takes them.
    pub pending_bytes: u64,
    /// What fails now, and how; empty while all goes well.
    pub failing: Vec<(&'static str, String)>,
    /// Errors since start, by what failed.
    pub errors: Vec<(&'static str, u64)>,
    /// Windows that are in memory only, because the journal could not take them.
    pub unjournaled_windows: u64,
    /// Bytes cut off torn journals at the start.
    pub cut_bytes: u64,
    /// Windows read from journals at the start.
    pub recovered_windows: u64,
    /// Blocks and journals set aside since start.
    pub set_aside: u64,
    /// The last of the blocks and journals that were set aside, the newest at the end.
    pub set_aside_files: Vec<SetAside>,
}

impl DiskUsage {
    /// What can fail: `journal` (appending), `sync` (flushing), `block` (writing one), `remove` (what is old),
    /// `roll-up` (making old windows coarser), `merge` (the blocks of an hour).
    pub const WHAT: [&'static str; 6] = [
        Failing::Journal.slug(),
        Failing::Sync.slug(),
        Failing::Block.slug(),
        Failing::Remove.slug(),
        Failing::RollUp.slug(),
        Failing::Merge.slug(),
    ];
}

#[derive(Debug, Default)]
pub(super) struct Health {
    failing: Vec<(Failing, String)>,
    errors: [u64; Failing::ALL.len()],
    pub unjournaled_windows: u64,
    pub cut_bytes: u64,
    pub recovered_windows: u64,
    pub dropped_windows_for_bytes: u64,
    pub dropped_windows_for_age: u64,
    pub dropped_windows_for_full: u64,
    /// Facts of Spark's that were taken, and how often one was turned away.
    pub facts: u64,
    pub facts_refused: u64,
    set_aside: u64,
    files: VecDeque<SetAside>,
    /// What answers lack, by time.
    pub missing: Gaps,
}

impl Health {
    /// Counts an error, and logs it where `what` went well before.
    pub fn failed(&mut self, what: Failing, error: &str) {
        if let Some(count) = self.errors.get_mut(what as usize) {
            *count += 1;
        }
        match self.failing.iter_mut().find(|(known, _)| *known == what) {
            Some((_, says)) => error.clone_into(says),
            None => {
                tracing::warn!(
                    what = what.slug(),
                    error,
                    "the store cannot write: sampling and answers go on"
                );
                self.failing.push((what, error.to_owned()));
            }
        }
    }

    /// Whether `what` fails because the disk is full, or the quota is reached.
    pub fn is_full(&self, what: Failing) -> bool {
        // Parquet's errors keep only the text of the system's (ENOSPC, EDQUOT), which ends in its number.
        let full = |says: &str| {
            says.contains("(os error 28)") || says.contains("(os error 122)") || says.contains("(keep-free)")
        };
        self.failing.iter().any(|(known, says)| *known == what && full(says))
    }

    /// Whether anything but `what` fails.
    pub fn fails_beside(&self, what: Failing) -> bool {
        self.failing.iter().any(|(known, _)| *known != what)
    }

    /// `what` went well: it fails no longer.
    pub fn went_well(&mut self, what: Failing) {
        let before = self.failing.len();
        self.failing.retain(|(known, _)| *known != what);
        if self.failing.len() < before {
            tracing::info!(what = what.slug(), "the store can write again");
        }
    }

    /// Something is no longer answered for. `range` is when its windows are; None: they are elsewhere, too.
    pub fn set_aside(&mut self, path: &Path, now: Option<&Path>, says: &str, range: Option<TimeRange>) {
        if let Some(range) = range {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.missing.add(MissingPart::new(&name, range, says));
        }
        let (name, moved) = (path.display(), now.map(|now| now.display().to_string()));
        tracing::warn!(file = %name, now = moved, says, "set aside: its windows are not in any answer");
        self.set_aside += 1;
        if self.files.len() >= MAX_LISTED {
            self.files.pop_front();
        }
        let (path, now) = (path.to_owned(), now.map(Path::to_owned));
        self.files.push_back(SetAside { path, now, says: says.to_owned() });
    }

    pub fn usage(
        &self,
        blocks: usize,
        block_bytes: u64,
        journal_bytes: u64,
        pending_bytes: u64,
    ) -> DiskUsage {
        DiskUsage {
            blocks,
            resolutions: Vec::new(),
            bytes: block_bytes + journal_bytes,
            journal_bytes,
            pending_bytes,
            failing: self.failing.iter().map(|(what, says)| (what.slug(), says.clone())).collect(),
            errors: Failing::ALL.iter().map(|what| what.slug()).zip(self.errors).collect(),
            unjournaled_windows: self.unjournaled_windows,
            cut_bytes: self.cut_bytes,
            recovered_windows: self.recovered_windows,
            set_aside: self.set_aside,
            set_aside_files: self.files.iter().cloned().collect(),
        }
    }
}
