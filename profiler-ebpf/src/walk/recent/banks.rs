//! Frames of a thread's last walk, compiled and native ones, in one of two banks, while the other is written.
//!
//! In: a pc and a stack pointer. Out: the frame's size, and what its keeper (a runtime, or the unwind tables) kept of it, if
//! the last walk met it there.
#![allow(unsafe_code)]

use super::ADDRESS;
use crate::maps::RECENT;
use crate::walk::stack::at_most;
use crate::walk::state::Walk;
use core::ptr::addr_of_mut;

/// Frames that are kept of a walk: the innermost.
pub const FRAMES: usize = 112;
/// The last of them.
const LAST: u64 = FRAMES as u64 - 1;
/// Bits of a stack pointer that a frame keeps, less the lowest three.
const PLACE: u64 = 0x7fff_ffff;
/// What a frame's keeper keeps of it.
const KEPT: u64 = 0x1_ffff_ffff;
/// Frames of the last walk that are passed at one of this.
const PASSED: usize = 4;
/// A compiled frame with the return address where its size says, or a native one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    /// Its pc, and its size in words in bits 48 to 63 (a native one's offset of the CFA); mixed with the slot's owner,
    /// so that what another thread writes meanwhile is not found.
    pub(super) at: u64,
    /// What the frame's keeper keeps, in bits 0 to 32 (of a native one the lower half of the rule); the stack pointer in
    /// bits 33 to 63.
    pub(super) id: u64,
}

/// Where frames are read and written during a walk.
#[derive(Clone, Copy)]
pub struct Banks {
    from: *mut Frame,
    to: *mut Frame,
}

impl Banks {
    /// Of the walk's thread.
    #[inline(always)]
    pub unsafe fn of(walk: &Walk) -> Option<Self> {
        let slot = RECENT.get_ptr_mut(walk.slot as u32)?;
        // SAFETY: in the map.
        unsafe {
            let banks = addr_of_mut!((*slot).banks).cast::<Frame>();
            let bank = (walk.bank & 1) as usize;
            Some(Self { from: banks.add(FRAMES * bank), to: banks.add(FRAMES * (bank ^ 1)) })
        }
    }

    /// The size in bytes and the 33 bits that were kept of the frame at `sp` with this `pc`, if the last walk met it. The
    /// cursor goes up the last walk's frames with this one's.
    ///
    /// # Safety
    /// `walk` is this CPU's; the cursor stays in there, where the verifier does not follow it.
    #[inline(always)]
    pub unsafe fn find(self, walk: *mut Walk, mask: u64, pc: u64, sp: u64) -> Option<(u64, u64)> {
        let place = sp >> 3 & PLACE;
        // SAFETY: by contract; the index is checked.
        unsafe {
            let mut found = Frame { at: 0, id: 0 };
            for _ in 0..=PASSED {
                let cursor = (*walk).cursor;
                if cursor >= (*walk).count || cursor >= FRAMES as u64 {
                    return None;
                }
                found = self.from.add(at_most::<LAST>(cursor)).read();
                // 0: here; small: above.
                if (found.id >> 33).wrapping_sub(place) & PLACE < PLACE / 2 {
                    break;
                }
                (*walk).cursor = cursor + 1;
            }
            let at = found.at ^ mask;
            if found.id >> 33 != place || at & ADDRESS != pc {
                return None;
            }
            Some(((at >> 48) * 8, found.id & KEPT))
        }
    }

    /// Keeps a frame for the next walk, with 33 bits of its keeper's.
    ///
    /// # Safety
    /// As for [`Self::find`].
    #[inline(always)]
    pub unsafe fn keep(self, walk: *mut Walk, mask: u64, (pc, sp): (u64, u64), bytes: u64, word: u64) {
        // SAFETY: by contract; the index is checked.
        unsafe {
            let kept = (*walk).kept;
            if kept < FRAMES as u64 {
                let at = (pc | bytes << 45) ^ mask;
                let id = word & KEPT | (sp >> 3 & PLACE) << 33;
                self.to.add(at_most::<LAST>(kept)).write(Frame { at, id });
                (*walk).kept = kept + 1;
            }
        }
    }
}
