//! The kernel's own code page in every process, as a file: our own copy of it, which is the same.

use emberscope_target::maps::{self, Backing, Mapping};
use emberscope_target::open::{self, Refusal};
use rustix::fs::{MemfdFlags, Stat, fstat, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// It takes two pages.
const MAX_VDSO: u64 = 1 << 20;

/// Our vDSO, if `theirs` has the same size (a 32-bit process has another).
pub fn file(theirs: &Mapping) -> Result<(File, Stat), Refusal> {
    let text = open::read_bounded(Path::new("/proc/self/maps"), 16 << 20)?;
    let (ours, _) = maps::parse(&text);
    let ours = ours.iter().find(|m| m.backing == Backing::Vdso).ok_or(Refusal::Missing)?;
    let size = ours.end - ours.start;
    if size != theirs.end - theirs.start || size > MAX_VDSO {
        return Err(Refusal::Missing);
    }
    let mut bytes = vec![0; size as usize];
    let memory = File::open("/proc/self/mem").map_err(|_| Refusal::Unreadable)?;
    memory.read_exact_at(&mut bytes, ours.start).map_err(|_| Refusal::Unreadable)?;
    let copy = File::from(memfd_create("emberscope-vdso", MemfdFlags::CLOEXEC)?);
    copy.write_all_at(&bytes, 0).map_err(|_| Refusal::Unreadable)?;
    let stat = fstat(&copy)?;
    Ok((copy, stat))
}
