//! What was being read when the daemon came down is left alone for a time.
//!
//! In: [`enter`] before a file or a process's memory is taken apart, and the end of its [`Guard`]. Out: a refusal where that
//! file or process brought the daemon down before, and the list of these for the status. A note lies in a file of the data
//! directory for as long as the guard lives (`notes`): a page of the page cache, which survives an abort and SIGKILL, at
//! the cost of two short writes. What a start finds noted is a strike against it; so is a panic under a guard. The first
//! strike is worth [`FIRST`] (a daemon that was killed from outside leaves notes too), the second [`SECOND`], then twice as
//! long each time, up to [`LONGEST`]; a week without one, and it is forgotten. At most `MAX_ENTRIES` are kept.
//!
//! A daemon that keeps coming down is careful: after `MANY` unclean ends within `SOON` it reads nothing for
//! `CAREFUL`, so that sampling goes on without names.

mod list;
mod notes;
#[cfg(test)]
mod tests;

use super::faults;
use list::List;
use notes::Notes;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use list::Entry;

/// How long something is left alone after its first strike.
pub const FIRST: Duration = Duration::from_secs(10 * 60);
/// The same after the second; each later one is worth twice the one before.
pub const SECOND: Duration = Duration::from_secs(3600);
/// How long something is left alone at most, also after a start.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Entries of the list: a node runs some thousand files, and few of them bring a daemon down.
const MAX_ENTRIES: usize = 256;
/// Unclean ends within [`SOON`] that make the next start a careful one.
const MANY: usize = 5;
const SOON: Duration = Duration::from_secs(10 * 60);
/// How long a careful daemon reads nothing.
const CAREFUL: Duration = Duration::from_secs(5 * 60);

/// What is about to be read. `id` tells it from others and is the same after a restart; `shown` is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What tells it from others, the same after a restart.
    pub id: String,
    /// What people call it.
    pub shown: String,
}

impl Item {
    /// A file: what tells it from others (build id, or device, inode, size and times), and its path.
    pub fn file(id: &str, path: &str) -> Self {
        Self { id: format!("file {id}"), shown: path.to_owned() }
    }

    /// A process, by its pid and start.
    pub fn process(pid: u32, start_ticks: u64) -> Self {
        Self { id: format!("process {pid} {start_ticks}"), shown: format!("process {pid}") }
    }
}

/// The file or process is not read: it brought the daemon down before, or the daemon is careful now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading it made emberscope fail: it is left alone for a time")]
pub struct Quarantined;

/// Why nothing can be remembered over a restart.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {path}: {source}")]
pub struct QuarantineError {
    what: &'static str,
    path: std::path::PathBuf,
    source: std::io::Error,
}

/// The notes and the list of a data directory.
#[derive(Debug)]
pub struct Quarantine {
    notes: Notes,
    list: Mutex<List>,
    careful_until: Option<Instant>,
}

static OURS: OnceLock<Quarantine> = OnceLock::new();

/// Opens the daemon's own notes and list, in a directory of its data directory. Until then, and in programs that do
/// not, nothing is noted and nothing refused.
///
/// # Errors
/// As for [`Quarantine::open`]: nothing is noted and nothing refused then.
pub fn start(dir: &Path) -> Result<(), QuarantineError> {
    let quarantine = Quarantine::open(dir)?;
    // A second start in one process goes on with the first's.
    let _ = OURS.set(quarantine);
    Ok(())
}

/// The daemon ends in order: what is still noted was cut short, and brought nobody down.
pub fn ends_in_order() {
    if let Some(quarantine) = OURS.get() {
        quarantine.ends_in_order();
    }
}

/// The daemon ends by a panic: what its thread was reading has its strike, and what others read is no cause of it.
pub fn ends_by_panic() {
    if let Some(quarantine) = OURS.get() {
        quarantine.ends_by_panic();
    }
}

/// Before something is taken apart; it counts as being read until the guard goes.
///
/// # Errors
/// [`Quarantined`]: it brought the daemon down before, or a careful daemon reads nothing now. The refusal is counted.
pub fn enter(item: impl FnOnce() -> Item) -> Result<Guard<'static>, Quarantined> {
    match OURS.get() {
        None => Ok(Guard { noted: None }),
        Some(quarantine) => quarantine.enter(item()),
    }
}

/// What is left alone now, and until when the daemon is careful.
pub fn state() -> State {
    OURS.get().map(Quarantine::state).unwrap_or_default()
}

/// What is left alone, for the status and the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Files and processes that are left alone now.
    pub entries: Vec<Entry>,
    /// Times that something was not read.
    pub refused: u64,
    /// For how long nothing at all is read, as the daemon came down too often.
    pub careful: Option<Duration>,
}

/// Something is being read, until this goes.
#[derive(Debug)]
#[must_use]
pub struct Guard<'a> {
    noted: Option<(&'a Quarantine, Item, Option<usize>)>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Some((quarantine, item, slot)) = self.noted.take() else { return };
        if let Some(slot) = slot {
            quarantine.notes.clear(slot);
        }
        if std::thread::panicking() {
            quarantine.strike(&item);
        }
    }
}

impl Quarantine {
    /// Reads the notes and the list that the last daemon left, and begins new ones.
    ///
    /// # Errors
    /// The directory cannot be made, or its notes cannot be read or begun. A list that cannot be read is an empty
    /// one, and one that cannot be written is logged.
    pub fn open(dir: &Path) -> Result<Self, QuarantineError> {
        let error = |what, path: &Path| {
            let path = path.to_owned();
            move |source| QuarantineError { what, path, source }
        };
        std::fs::create_dir_all(dir).map_err(error("make", dir))?;
        let mut list = List::read(&dir.join("list.json"));
        let left = notes::read(&dir.join("notes")).map_err(error("read", &dir.join("notes")))?;
        if let Some(noted) = &left {
            list.came_down();
            for item in noted {
                list.strike(item);
                let (id, shown) = (item.id.as_str(), item.shown.as_str());
                tracing::warn!(
                    id,
                    shown,
                    "it was being read when the last daemon came down: it is left alone for a time"
                );
            }
        }
        let recent = list.unclean_ends_within(SOON);
        let careful = recent >= MANY;
        if careful {
            let (ends, minutes) = (recent, CAREFUL.as_secs() / 60);
            tracing::warn!(
                ends,
                minutes,
                "the daemon came down again and again: for a time it samples without names"
            );
        }
        let notes = Notes::begin(&dir.join("notes")).map_err(error("write", &dir.join("notes")))?;
        list.keep();
        let careful_until = careful.then(|| Instant::now() + CAREFUL);
        Ok(Self { notes, list: Mutex::new(list), careful_until })
    }

    /// See [`enter`].
    ///
    /// # Errors
    /// As for [`enter`].
    pub fn enter(&self, item: Item) -> Result<Guard<'_>, Quarantined> {
        if self.careful_until.is_some_and(|until| Instant::now() < until) || self.list().has(&item) {
            self.list().refused += 1;
            return Err(Quarantined);
        }
        let slot = self.notes.put(&item);
        let guard = Guard { noted: Some((self, item, slot)) };
        faults::point("note");
        Ok(guard)
    }

    /// See [`ends_in_order`].
    pub fn ends_in_order(&self) {
        self.notes.end(notes::ENDED);
    }

    /// See [`ends_by_panic`].
    pub fn ends_by_panic(&self) {
        self.notes.end(notes::FAILED);
    }

    /// See [`state`].
    pub fn state(&self) -> State {
        let careful = self.careful_until.map(|until| until.saturating_duration_since(Instant::now()));
        let list = self.list();
        State {
            entries: list.active(),
            refused: list.refused,
            careful: careful.filter(|left| !left.is_zero()),
        }
    }

    fn strike(&self, item: &Item) {
        let mut list = self.list();
        list.strike(item);
        list.keep();
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Whole after every statement.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
