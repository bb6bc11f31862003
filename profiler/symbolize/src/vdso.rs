//! The kernel's own code page in every process, as a file: our own copy of it, which is the same.

use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::open::{self, Refusal};
use rustix::fs::{MemfdFlags, Stat, fstat, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Largest vDSO that is copied: it takes two pages.
const MAX_VDSO: u64 = 1 << 20;

/// A copy of our vDSO, which is that of every 64-bit process.
///
/// # Errors
/// [`Refusal::Missing`]: we have none, or `theirs` has another size (a 32-bit process has another).
/// [`Refusal::Unreadable`], or another [`Refusal`] of a system call: it cannot be copied.
pub fn file(theirs: &Mapping) -> Result<(File, Stat), Refusal> {
    let ours = open::mappings(Path::new("/proc/self"))?.mappings;
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
