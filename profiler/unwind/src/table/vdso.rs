//! The kernel's own page of code, which is the same in all processes: read from our own memory, which no target can
//! change.
//!
//! In: our own mappings. Out: its table, by its unwind information, or where the architecture's has none by its code
//! ([`emberscope_arch::Arch::vdso`]).

use super::build::of_rows;
use super::file::{New, without_bytes};
use super::{Image, TableError, table_of};
use emberscope_target::maps::Backing;
use emberscope_target::memory::{Memory as _, ProcessMemory};
use emberscope_target::open;
use std::path::Path;

/// Bytes of the vdso that are read: it has two pages or four.
const MAX_BYTES: u64 = 64 << 10;

/// How many bytes are mapped, and the table; None where there is none that we understand.
pub fn own() -> Option<(u64, New)> {
    let dir = Path::new("/proc/self");
    let all = open::mappings(dir).ok()?;
    let vdso = all.mappings.iter().find(|mapping| mapping.backing == Backing::Vdso)?;
    let len = vdso.end - vdso.start;
    let mut bytes = vec![0; len.min(MAX_BYTES) as usize];
    ProcessMemory::open(dir).ok()?.read(vdso.start, &mut bytes).ok()?;
    Some((len, of(&bytes).ok()?))
}

fn of(bytes: &[u8]) -> Result<New, TableError> {
    let (image, table) = match (Image::of_bytes(bytes), emberscope_arch::OWN.vdso) {
        (Err(TableError::Nothing), Some(rows)) => {
            let image = Image::without_frames(bytes)?;
            let code = image.segments.iter().find(|segment| segment.code).ok_or(TableError::Nothing)?;
            let (from, len) = (code.offset as usize, code.size as usize);
            let in_file = bytes.get(from..).unwrap_or_default();
            let rows = rows(in_file.get(..len).unwrap_or(in_file));
            let rows: Vec<_> = rows.into_iter().map(|(at, rule)| (at + code.address, rule)).collect();
            let table = of_rows(&image, &rows)?;
            (image, table)
        }
        (image, _) => {
            let image = image?;
            let table = table_of(&image)?;
            (image, table)
        }
    };
    Ok(New { key: image.key(), segments: without_bytes(image), table })
}
