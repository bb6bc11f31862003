//! Steps through interpreted frames.
//!
//! In: the walk's registers, with a pc in the interpreter. Out: a frame with the method and the bytecode pointer,
//! and the caller's registers. Where these are in a frame is in `slots`; in registers while one is built, in this folder's file
//! of the architecture's name.
#![allow(unsafe_code)]

#[cfg(emberscope_arch = "aarch64")]
mod aarch64;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

use super::slots::{BELOW, FRAME_END, METHOD, METHOD_BYTES, RETURN, SAVED_FP, SENDER, SLOTS_BYTES};
use super::steps::lost;
use crate::maps::{FETCH_BYTES, Scratch};
use crate::walk::stack::{at_most, checked, is_user_address, offset_of};
use crate::walk::{MAX_FRAME_BYTES, caller as caller_at, ended, in_code, push};
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::{LINK_REGISTER, code_address};
use profiler_ebpf::{JavaFrameTag, StackEnd};

#[cfg(emberscope_arch = "aarch64")]
pub use aarch64::leaf;
#[cfg(emberscope_arch = "x86_64")]
pub use x86_64::leaf;

/// Where in `fetched` the last place for them is.
const LAST_SLOTS: u64 = FETCH_BYTES as u64 - SLOTS_BYTES;
/// Expression stack, locks and locals of a method are no larger.
pub const MAX_FRAME: u64 = 1 << 19;
/// Locals of a method while its frame is built.
const MAX_LOCALS: u64 = 1 << 19;
/// A method's bytecodes are no longer (JVMS 4.7.3).
const MAX_CODE: u64 = 1 << 16;

/// An interpreted frame that called.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn caller(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe { whole(scratch, 0) }
}

/// Frame and caller of one that called, when all is as it should be; its slots are in the memory that was fetched. The
/// words to add, and the caller's pc, sp and fp. None: `caller` knows why.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn plain(
    scratch: *mut Scratch,
    (sp, fp): (u64, u64),
    base: u64,
    (low, high): (u64, u64),
) -> Option<((u64, u64), (u64, u64, u64))> {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let at = fp.wrapping_sub(BELOW * 8).wrapping_sub(base);
        if fp.wrapping_sub(sp) > MAX_FRAME || fp & 7 != 0 || at > LAST_SLOTS {
            return None;
        }
        let bcp_slot = checked((*scratch).walk.jvm.places.bcp_slot());
        let slots =
            addr_of_mut!((*scratch).fetched).cast::<u8>().add(at_most::<LAST_SLOTS>(at)).cast::<u64>();
        let bytecode = slots.add(bcp_slot).read();
        let (method, sender) = (slots.add(METHOD).read(), sender_sp(slots.add(SENDER).read(), fp));
        let (saved_fp, pc) = (slots.add(SAVED_FP).read(), code_address(slots.add(RETURN).read()));
        if sender <= fp || sender & 7 != 0 || sender - sp > MAX_FRAME_BYTES {
            return None;
        }
        if method & 7 != 0 || !is_user_address(method) || pc < low || pc >= high {
            return None;
        }
        let bytecode = if is_user_address(bytecode) { bytecode & 0xffff_ffff } else { 0 };
        let second = bytecode | JavaFrameTag::Interpreted.word();
        Some(((method, second), (pc, sender, saved_fp)))
    }
}

/// A frame with all its slots. `bcp` is the leaf's register for it; 0 in a caller.
#[inline(always)]
unsafe fn whole(scratch: *mut Scratch, bcp: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp, leaf, made_for) = (walk.sp, walk.fp, walk.leaf, walk.registers.method());
        if fp.wrapping_sub(sp) > MAX_FRAME || fp & 7 != 0 {
            return lost(scratch, StackEnd::BadJavaFrame as u64);
        }
        let at = offset_of(scratch, fp - BELOW * 8, SLOTS_BYTES);
        if at > LAST_SLOTS {
            return lost(scratch, StackEnd::ReadFailed as u64);
        }
        let slots =
            addr_of_mut!((*scratch).fetched).cast::<u8>().add(at_most::<LAST_SLOTS>(at)).cast::<u64>();
        let bcp_slot = checked((*scratch).walk.jvm.places.bcp_slot());
        let saved = slots.add(bcp_slot).read();
        let mut method = slots.add(METHOD).read();
        let sender = sender_sp(slots.add(SENDER).read(), fp);
        let (saved_fp, pc) = (slots.add(SAVED_FP).read(), code_address(slots.add(RETURN).read()));
        let mut bytecode = saved;
        if leaf != 0 {
            // Between calls the pointer is in a register; the slot has it as it was at the last one.
            if saved != 0 && bcp.wrapping_sub(saved).wrapping_add(MAX_CODE) < 2 * MAX_CODE {
                bytecode = bcp;
            }
            // The slot is not written yet.
            if sp > fp - METHOD_BYTES {
                (method, bytecode) = (made_for, 0);
            }
        }
        if !is_user_address(bytecode) {
            bytecode = 0;
        }
        if sender <= fp || method & 7 != 0 || !is_user_address(method) {
            return lost(scratch, StackEnd::BadJavaFrame as u64);
        }
        if !told(scratch, method, bytecode) {
            return false;
        }
        if !in_code(&(*scratch).walk, pc) {
            return ended(scratch, StackEnd::BadJavaCaller);
        }
        caller_at(scratch, pc, sender, saved_fp)
    }
}

/// The caller's sp, of which a frame at `fp` says this. On arm64 the stack pointer of an interpreted caller is as low as it ever
/// will be, and what that calls lies above it, over its expression stack: then it is somewhere above this frame. Such a caller
/// needs no more than that.
#[inline(always)]
fn sender_sp(sender: u64, fp: u64) -> u64 {
    if LINK_REGISTER && sender <= fp { fp + FRAME_END } else { sender }
}

/// Adds the frame.
#[inline(always)]
unsafe fn told(scratch: *mut Scratch, method: u64, bytecode: u64) -> bool {
    let kind = JavaFrameTag::Interpreted.word();
    // SAFETY: as above.
    unsafe { push(scratch, method, bytecode & 0xffff_ffff | kind | (*scratch).walk.guessed) }
}
