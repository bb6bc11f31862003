//! The return address of an interrupted function that has no frame, on architectures where a call leaves it in a register.
//!
//! In: the walk's registers. Out: an address, or 0 where the code does not prove it; then the frame pointer leads on, and
//! of a function without a frame the direct caller is left out.
#![allow(unsafe_code)]

use crate::maps::Scratch;

/// There is no such register: the first frame is walked as the others are.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[cfg(emberscope_arch = "x86_64")]
#[inline(always)]
pub unsafe fn return_address(_: *mut Scratch) -> u64 {
    0
}

#[cfg(emberscope_arch = "aarch64")]
pub use proven::return_address;

#[cfg(emberscope_arch = "aarch64")]
mod proven {
    use super::Scratch;
    use crate::walk::stack::{is_user_address, read};
    use profiler_ebpf::arch::{MAX_LEAF_WORDS, call_target, is_outside_frame, leaves_link_alone};

    /// Bytes of an instruction.
    const WORD: u64 = 4;

    /// The interrupted function's return address, where its code proves it.
    ///
    /// # Safety
    /// `scratch` is this CPU's scratch.
    #[inline(never)]
    pub unsafe fn return_address(scratch: *mut Scratch) -> u64 {
        // SAFETY: valid by contract; the verifier checks each access.
        unsafe {
            let walk = &(*scratch).walk;
            let (pc, link) = (walk.pc, walk.registers.link());
            if !is_user_address(link) {
                return 0;
            }
            let Some(here) = read::<u32>(scratch, pc) else { return 0 };
            if is_outside_frame(here) || called(scratch, pc, link) { link } else { 0 }
        }
    }

    /// Whether the call before `link` went to a function that is at `pc` now and has not touched x29 and x30.
    #[inline(always)]
    unsafe fn called(scratch: *mut Scratch, pc: u64, link: u64) -> bool {
        // SAFETY: as above.
        unsafe {
            let from = link.wrapping_sub(WORD);
            let Some(call) = read::<u32>(scratch, from) else { return false };
            let Some(entry) = call_target(from, call) else { return false };
            let bytes = pc.wrapping_sub(entry);
            if bytes > MAX_LEAF_WORDS * WORD {
                return false;
            }
            for at in 0..MAX_LEAF_WORDS {
                if at * WORD >= bytes {
                    return true;
                }
                match read::<u32>(scratch, entry.wrapping_add(at * WORD)) {
                    Some(word) if leaves_link_alone(word) => {}
                    _ => return false,
                }
            }
            true
        }
    }
}
