//! The file of notes: who is read now, in slots of a fixed size, for the daemon that comes after this one.
//!
//! Slot 0 holds the boot that it was written in and whether the daemon still runs; each other slot an item, or nothing. A
//! slot is written in one pwrite(2) and never flushed: the page cache outlives the process. It does not outlive the
//! machine, whose end nobody here brought about: notes of another boot count for nothing. mmap would save a microsecond
//! and take `unsafe`.

use super::Item;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Bytes of a slot: an id of some 100 and a path's end.
const SLOT: usize = 512;
/// Of these, ids longer than this are not noted, paths are cut.
const MAX_ID: usize = 200;
/// Slots: threads that read at a time, and one for the head. What finds none is read without a note.
const SLOTS: usize = 65;
/// How many hex digits of a length come first.
const HEAD: usize = 4;

/// What the head says of the daemon: it runs,
const RUNS: &str = "runs";
/// it failed over what it knows,
pub(super) const FAILED: &str = "fail";
/// or it ended in order.
pub(super) const ENDED: &str = "ends";

/// The file of notes, and which of its slots are taken: a bit each.
#[derive(Debug)]
pub(super) struct Notes {
    file: File,
    used: Mutex<u64>,
}

/// What the last daemon left. None: it ended in order, never ran, or ran in another boot.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<Item>>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take((SLOT * SLOTS) as u64).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut slots = bytes.chunks(SLOT).map(text_of);
    Ok(match slots.next().flatten() {
        Some(head) if head == head_of(RUNS) => Some(slots.flatten().filter_map(item_of).collect()),
        Some(head) if head == head_of(FAILED) => Some(Vec::new()),
        Some(_) | None => None,
    })
}

fn head_of(state: &str) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{state} {}", boot.trim())
}

/// The text of a slot; None: it is empty or damaged.
fn text_of(slot: &[u8]) -> Option<&str> {
    let (length, rest) = slot.split_at_checked(HEAD)?;
    let length = usize::from_str_radix(std::str::from_utf8(length).ok()?, 16).ok()?;
    std::str::from_utf8(rest.get(..length)?).ok().filter(|text| !text.is_empty())
}

fn item_of(text: &str) -> Option<Item> {
    let (id, shown) = text.split_once('\n')?;
    Some(Item { id: id.to_owned(), shown: shown.to_owned() })
}

impl Notes {
    /// Empties the file, and says that a daemon runs.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let notes = Self { file, used: Mutex::new(1) };
        notes.write(0, &head_of(RUNS))?;
        Ok(notes)
    }

    /// Notes an item. Out: its slot, if there is one.
    pub fn put(&self, item: &Item) -> Option<usize> {
        if item.id.len() > MAX_ID || item.id.contains('\n') {
            return None;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = used.trailing_ones() as usize;
        if slot >= SLOTS - 1 {
            return None;
        }
        *used |= 1 << slot;
        drop(used);
        let room = SLOT - HEAD - item.id.len() - 1;
        let text = format!("{}\n{}", item.id, end_of(&item.shown, room));
        if self.write(slot, &text).is_err() {
            // A full disk: it is read without a note.
            self.free(slot);
            return None;
        }
        Some(slot)
    }

    /// The item in the slot was read: its note goes.
    pub fn clear(&self, slot: usize) {
        // Where this fails a note stays, for the next to overwrite.
        let _ = self.write(slot, "");
        self.free(slot);
    }

    /// The daemon ends, [`ENDED`] or [`FAILED`]: what is still noted is no cause of it.
    pub fn end(&self, how: &str) {
        let _ = self.write(0, &head_of(how));
    }

    fn free(&self, slot: usize) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << slot);
    }

    fn write(&self, slot: usize, text: &str) -> io::Result<()> {
        let text = format!("{:0HEAD$x}{text}", text.len());
        self.file.write_all_at(text.as_bytes(), (slot * SLOT) as u64)
    }
}

/// At most so many bytes from a text's end.
fn end_of(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}
