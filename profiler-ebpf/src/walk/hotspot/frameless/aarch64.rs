//! Code without a frame of its own: a call has left the return address in x30, which only the interrupted code may still have.
#![allow(unsafe_code)]

use crate::maps::Scratch;
use crate::walk::hotspot::slots::FRAME_END;
use crate::walk::stack::{is_user_address, pair};
use crate::walk::{caller, ended, in_code};
use profiler_ebpf::StackEnd;
use profiler_ebpf::arch::code_address;

/// A stub's frame is no larger.
const MAX_STUB_BYTES: u64 = 4096;
/// What an adapter makes room for is no more: 255 arguments.
const MAX_ARGUMENT_BYTES: u64 = 4096;
/// From a stub's call of something to what it does afterwards, at most.
const NEAR: u64 = 256;

/// A stub has a frame by frame pointer (`StubCodeMark`s that `enter()`), or none, as those that copy and fill
/// (stubGenerator_aarch64.cpp, JDK 8 to 25): then x30 is the caller, C++ or another stub too.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn stub(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &(*scratch).walk;
        let fp = walk.fp;
        let (mut saved, mut pc) = (0, 0);
        if fp.wrapping_sub(walk.sp) < MAX_STUB_BYTES
            && fp & 7 == 0
            && let Some((first, second)) = pair(scratch, fp)
        {
            (saved, pc) = (first, code_address(second));
        }
        let walk = &(*scratch).walk;
        let link = walk.registers.link();
        // The record is this stub's if it has what is in x30 still, or if x30 is from a call of the stub's own. Else it is the
        // caller's.
        let own = walk.leaf == 0 || pc == link || walk.pc.wrapping_sub(link) < NEAR;
        if own && in_code(walk, pc) {
            return caller(scratch, pc, fp + FRAME_END, saved);
        }
        if walk.leaf == 0 || !is_user_address(link) {
            return ended(scratch, StackEnd::BadJavaCaller);
        }
        caller(scratch, link, walk.sp, fp)
    }
}

/// An adapter, which moves arguments between two methods and has no frame of its own. The caller's sp is in a register once
/// it was changed.
///
/// # Safety
/// As for [`stub`].
#[inline(always)]
pub unsafe fn adapter(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let sp = walk.registers.sender_sp(walk.sp, MAX_ARGUMENT_BYTES);
        linked(scratch, sp)
    }
}

/// The interrupted frame was not made, or is gone.
///
/// # Safety
/// As for [`stub`].
#[inline(always)]
pub unsafe fn top(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe { linked(scratch, (*scratch).walk.sp) }
}

/// To the caller in x30, whose sp this is.
#[inline(never)]
unsafe fn linked(scratch: *mut Scratch, sp: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let link = walk.registers.link();
        if walk.leaf == 0 || !in_code(walk, link) {
            return ended(scratch, StackEnd::BadJavaCaller);
        }
        caller(scratch, link, sp, walk.fp)
    }
}
