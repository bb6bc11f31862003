//! Methods that a thread was interrupted in.
//!
//! In: an interrupted pc. Out: the rule of the method around it, if the thread was interrupted in it before.
#![allow(unsafe_code)]

use crate::maps::{RECENT, Scratch};
use crate::walk::cache::folded;
use crate::walk::leaf;
use crate::walk::recent::ADDRESS;
use crate::walk::stack::{checked, read};
use crate::walk::state::Rule;
use profiler_ebpf::arch::LINK_REGISTER;

/// Methods that are kept of a thread.
pub(super) const LEAVES: usize = 8;

/// A method whose frame is made from `from` on.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    from: u64,
    /// Bytes of code in the upper half, a check in the lower.
    pub(super) len: u64,
    what: u64,
    how: u64,
}

/// Puts the rule for an interrupted pc into the scratch, if it is in a method that the thread was interrupted in
/// before.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn find(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (pc, mask) = (walk.pc, walk.mask);
        let Some(slot) = RECENT.get_ptr_mut(walk.slot as u32) else { return false };
        for i in 0..LEAVES {
            let leaf = &(*slot).jvm.leaves[i];
            let (from, len, what, how) = (leaf.from, leaf.len, leaf.what, leaf.how);
            if pc.wrapping_sub(from) < len >> 32 && len as u32 == check(from, what, how, mask) {
                // Of all there is in a method, much is at the same place in the one that comes after it.
                let id_at = (what & ADDRESS) + (*slot).jvm.known.places.id_offset();
                if read::<u32>(scratch, id_at) != Some(how as u32) {
                    (*slot).jvm.leaves[i].len = 0;
                    return false;
                }
                if LINK_REGISTER {
                    // What unmakes a frame is known by the frame's size there.
                    (*scratch).rule.how = how;
                }
                let kind = leaf::at_exit(scratch);
                (*scratch).rule = Rule { what: what | kind << 56, how };
                return true;
            }
        }
        false
    }
}

#[inline(always)]
fn check(from: u64, what: u64, how: u64, mask: u64) -> u32 {
    ((folded(from, what, how) ^ mask) >> 32) as u32
}

/// Keeps the method that was just resolved for an interrupted pc, if the frame is made there.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn keep(scratch: *mut Scratch) {
    // SAFETY: as above.
    unsafe {
        let blob = &(*scratch).blob;
        let from = blob.begin.wrapping_add(blob.frame_complete);
        let len = blob.end.wrapping_sub(from);
        if (*scratch).walk.pc.wrapping_sub(from) >= len || len >> 32 != 0 {
            return;
        }
        let walk = &(*scratch).walk;
        let Some(slot) = RECENT.get_ptr_mut(walk.slot as u32) else { return };
        let (what, how) = ((*scratch).rule.what & 0xff_ffff_ffff_ffff, (*scratch).rule.how);
        let next = (*slot).jvm.next_leaf;
        let len = len << 32 | u64::from(check(from, what, how, walk.mask));
        (*slot).jvm.leaves[checked(next) & (LEAVES - 1)] = Leaf { from, len, what, how };
        (*slot).jvm.next_leaf = next.wrapping_add(1);
    }
}
