//! Another process, looked at from outside: its files, mappings, ELF images and memory.
//!
//! A base of the rooms that read targets (`hotspot`, `cpython`, `unwind`, `symbolize`). What a target wrote is bounded
//! and checked here: files are opened without following what it could plant, memory reads fail as values.

mod by_file;
pub mod elf;
pub mod errand;
pub mod maps;
pub mod memory;
pub mod open;
pub mod readers;
pub mod spark_words;
pub mod text;

pub use by_file::ByFile;
use std::path::Path;

/// The process lives and is the one that began at `start_ticks` (0: not known, then any will do).
pub fn same_process(process_dir: &Path, start_ticks: u64) -> bool {
    let Some((dead, started)) = state_of(process_dir) else { return false };
    !dead && (start_ticks == 0 || started == Some(start_ticks))
}

/// When a process began, in ticks since the boot.
pub fn start_ticks(process_dir: &Path) -> Option<u64> {
    state_of(process_dir)?.1
}

/// Whether a process is dead, and when it began. /proc/PID/stat needs neither its memory nor its mmap_lock.
fn state_of(process_dir: &Path) -> Option<(bool, Option<u64>)> {
    let stat = open::read_bounded(&process_dir.join("stat"), 4096).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let dead = matches!(fields.next(), Some("Z" | "X" | "x") | None);
    Some((dead, fields.nth(18).and_then(|ticks| ticks.parse().ok())))
}
