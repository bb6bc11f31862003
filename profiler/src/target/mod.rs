//! Another process, looked at from outside: its files, mappings, ELF images and memory.
//!
//! A base of the rooms that read targets (`hotspot`, `unwind`, `symbolize`). What a target wrote is bounded
//! and checked here: files are opened without following what it could plant, memory reads fail as values.

pub mod elf;
#[cfg(test)]
pub mod jdks;
pub mod maps;
pub mod memory;
pub mod open;
pub mod text;

use std::path::Path;

/// The process lives and is the one that began at `start_ticks` (0: not known, then any will do).
pub fn same_process(process_dir: &Path, start_ticks: u64) -> bool {
    let Ok(stat) = open::read_bounded(&process_dir.join("stat"), 4096) else { return false };
    let stat = String::from_utf8_lossy(&stat);
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let dead = matches!(fields.next(), Some("Z" | "X" | "x") | None);
    let started = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    !dead && (start_ticks == 0 || started == Some(start_ticks))
}
