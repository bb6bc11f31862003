//! Not known yet: [`HOTSPOT`] is false, a walk ends where it comes to Java code, and none of these is
//! called. What they have to read: MachPrologNode and MachEpilogNode of aarch64.ad, c1_LIRAssembler_aarch64.

use crate::maps::Scratch;
use crate::walk::hotspot::Kind;

/// Whether the walker knows HotSpot's frames here.
pub const HOTSPOT: bool = false;

/// For a pc in an nmethod with a frame.
///
/// # Safety
/// None is needed; x86-64's reads the scratch.
#[allow(unsafe_code)]
pub unsafe fn of_nmethod(_: *mut Scratch) -> u64 {
    Kind::Rebuilding as u64
}

/// For a pc in a stub routine.
///
/// # Safety
/// As for [`of_nmethod`].
#[allow(unsafe_code)]
pub unsafe fn of_stub(_: *mut Scratch, _: u64) -> u64 {
    Kind::Rebuilding as u64
}

/// At the walk's pc, which is behind the prologue.
///
/// # Safety
/// As for [`of_nmethod`].
#[allow(unsafe_code)]
pub unsafe fn at_exit(_: *mut Scratch) -> u64 {
    Kind::Rebuilding as u64
}
