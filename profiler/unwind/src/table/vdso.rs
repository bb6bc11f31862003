//! The kernel's own page of code, which is the same in all processes: read from our own memory, which no target can
//! change.

use super::Image;
use emberscope_target::maps::{self, Backing};
use emberscope_target::memory::{Memory as _, ProcessMemory};
use emberscope_target::open;
use std::path::Path;

/// Bytes of the vdso that are read: it has two pages or four.
const MAX_BYTES: u64 = 64 << 10;
const MAX_MAPS: u64 = 8 << 20;

/// How many bytes are mapped, and the image; None where there is none that we understand.
pub fn own() -> Option<(u64, Image)> {
    let dir = Path::new("/proc/self");
    let text = open::read_bounded(&dir.join("maps"), MAX_MAPS).ok()?;
    let (mappings, _) = maps::parse(&text);
    let vdso = mappings.iter().find(|mapping| mapping.backing == Backing::Vdso)?;
    let len = vdso.end - vdso.start;
    let mut bytes = vec![0; len.min(MAX_BYTES) as usize];
    ProcessMemory::open(dir).ok()?.read(vdso.start, &mut bytes).ok()?;
    Some((len, Image::of_bytes(&bytes).ok()?))
}
