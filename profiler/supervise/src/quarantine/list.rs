//! The list of what is left alone, and of the daemon's unclean ends: a file of JSON, written whole when it changes.
//!
//! Times in the file are of the wall clock; within a process they are instants, so that a step of the clock frees nobody,
//! and none holds for longer than [`LONGEST`] after a start. A file that cannot be read is an empty list: it holds
//! nothing that does not come again.

use super::{FIRST, Item, LONGEST, MAX_ENTRIES, SECOND};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes of the file: as many entries as are kept, of the longest ids and paths.
const MAX_FILE: u64 = 1 << 20;
/// After so long without a strike an entry is forgotten.
const MEMORY: Duration = Duration::from_secs(7 * 24 * 3600);
/// Unclean ends that are remembered.
const MAX_ENDS: usize = 16;

/// Something that is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file or process.
    pub item: Item,
    /// How often the daemon came down over it.
    pub strikes: u32,
    /// For how long it is left alone from now on.
    pub left: Duration,
}

#[derive(Debug)]
struct Held {
    item: Item,
    strikes: u32,
    /// Of the last strike, seconds of Unix time.
    last: u64,
    until: Instant,
}

#[derive(Debug)]
pub(super) struct List {
    path: PathBuf,
    held: Vec<Held>,
    ends: Vec<u64>,
    /// Times that something was not read.
    pub refused: u64,
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// How long a strike is worth.
pub(super) fn worth(strikes: u32) -> Duration {
    match strikes {
        0 | 1 => FIRST,
        more => SECOND.saturating_mul(1 << (more - 2).min(16)).min(LONGEST),
    }
}

fn contents(path: &Path) -> Option<Value> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

impl Held {
    fn of(value: &Value, now: u64) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let number = |key: &str| value.get(key)?.as_u64();
        let last = number("last")?;
        let left = Duration::from_secs(number("until")?.saturating_sub(now)).min(LONGEST);
        (now.saturating_sub(last) < MEMORY.as_secs()).then_some(())?;
        let item = Item { id: text("id")?, shown: text("shown")? };
        let strikes = u32::try_from(number("strikes")?).ok()?;
        Some(Self { item, strikes, last: last.min(now), until: Instant::now() + left })
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

impl List {
    pub fn read(path: &Path) -> Self {
        let (file, now) = (contents(path).unwrap_or_default(), unix_now());
        let array = |key: &str| file.get(key).and_then(Value::as_array).into_iter().flatten();
        let held = array("entries").take(MAX_ENTRIES).filter_map(|entry| Held::of(entry, now)).collect();
        // One in the future is of a clock that was wrong.
        let ends = array("unclean_ends").filter_map(Value::as_u64).filter(|end| *end <= now).take(MAX_ENDS);
        Self { path: path.to_owned(), held, ends: ends.collect(), refused: 0 }
    }

    /// Writes the file; where that fails the list holds until the end of the process.
    pub fn keep(&self) {
        let now = unix_now();
        let entry = |held: &Held| {
            json!({
                "id": held.item.id,
                "shown": held.item.shown,
                "strikes": held.strikes,
                "last": held.last,
                "until": now + held.left().as_secs(),
            })
        };
        let entries: Vec<Value> = self.held.iter().map(entry).collect();
        let file = json!({ "entries": entries, "unclean_ends": self.ends }).to_string();
        let new = self.path.with_extension("new");
        if let Err(error) = std::fs::write(&new, file).and_then(|()| std::fs::rename(&new, &self.path)) {
            tracing::warn!(file = %self.path.display(), %error, "what is left alone is not remembered over a restart");
        }
    }

    /// The last daemon did not end in order.
    pub fn came_down(&mut self) {
        self.ends.insert(0, unix_now());
        self.ends.truncate(MAX_ENDS);
    }

    pub fn unclean_ends_within(&self, time: Duration) -> usize {
        let now = unix_now();
        self.ends.iter().filter(|end| now.saturating_sub(**end) <= time.as_secs()).count()
    }

    pub fn strike(&mut self, item: &Item) {
        let known = self.held.iter().position(|held| held.item.id == item.id);
        let strikes = known.map_or(0, |at| self.held.remove(at).strikes).saturating_add(1);
        if self.held.len() >= MAX_ENTRIES
            && let Some((first, _)) = self.held.iter().enumerate().min_by_key(|(_, held)| held.until)
        {
            self.held.remove(first);
        }
        let until = Instant::now() + worth(strikes);
        self.held.push(Held { item: item.clone(), strikes, last: unix_now(), until });
    }

    pub fn has(&self, item: &Item) -> bool {
        self.held.iter().any(|held| held.item.id == item.id && !held.left().is_zero())
    }

    pub fn active(&self) -> Vec<Entry> {
        let held = self.held.iter().filter(|held| !held.left().is_zero());
        held.map(|held| Entry { item: held.item.clone(), strikes: held.strikes, left: held.left() }).collect()
    }
}
