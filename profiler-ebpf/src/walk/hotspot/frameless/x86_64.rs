//! Code without a frame of its own: a call has pushed the return address, which is on top of the stack, or was popped.
#![allow(unsafe_code)]

use crate::maps::Scratch;
use crate::walk::hotspot::slots::{CALL, FRAME_END};
use crate::walk::stack::pair;
use crate::walk::{caller, ended, in_code};
use profiler_ebpf::StackEnd;

/// A stub's frame is no larger.
const MAX_STUB_BYTES: u64 = 4096;
/// What an adapter pushes is no more: 255 arguments.
const MAX_ARGUMENT_BYTES: u64 = 4096;

/// What the barrier at a method's entry pushes before its frame.
const ENTRY_COOKIE: u64 = u64::MAX;

/// A stub has a frame by frame pointer or none. That of the barrier at a method's entry pushes a word of ones before it
/// makes its frame (`generate_method_entry_barrier`, stubGenerator_x86_64.cpp, JDK 15 to 25): collectors that unload
/// classes concurrently arm it, ZGC and Shenandoah, from JDK 20 on G1.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn stub(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp) = (walk.sp, walk.fp);
        if fp.wrapping_sub(sp) < MAX_STUB_BYTES
            && fp & 7 == 0
            && let Some((rbp, pc)) = pair(scratch, fp)
        {
            if in_code(&(*scratch).walk, pc) {
                return caller(scratch, pc, fp + FRAME_END, rbp);
            }
            if pc == ENTRY_COOKIE
                && let Some((_, pc)) = pair(scratch, fp + CALL)
                && in_code(&(*scratch).walk, pc)
            {
                return caller(scratch, pc, fp + FRAME_END + CALL, rbp);
            }
        }
        top(scratch)
    }
}

/// An adapter, which moves arguments between two methods and has no frame of its own. The caller's sp is in
/// r13 once it was changed.
///
/// # Safety
/// As for [`stub`].
#[inline(never)]
pub unsafe fn adapter(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp, ax, r13) =
            (walk.sp, walk.fp, walk.registers.popped_return(), walk.registers.sender_sp());
        let Some((top, _)) = pair(scratch, sp) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        let walk = &(*scratch).walk;
        let pc = if in_code(walk, top) { top } else { ax };
        if walk.leaf == 0 && pc == ax || !in_code(walk, pc) {
            return ended(scratch, StackEnd::BadJavaCaller);
        }
        let told = r13 & 7 == 0 && r13 > sp && r13 - sp <= MAX_ARGUMENT_BYTES;
        caller(scratch, pc, if told { r13 } else { sp + CALL }, fp)
    }
}

/// At the top of the stack: the interrupted frame was not made, or is gone.
///
/// # Safety
/// As for [`stub`].
#[inline(never)]
pub unsafe fn top(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp, leaf) = (walk.sp, walk.fp, walk.leaf);
        let Some((first, second)) = pair(scratch, sp) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        let walk = &(*scratch).walk;
        if in_code(walk, first) {
            caller(scratch, first, sp + CALL, fp)
        } else if leaf != 0 && in_code(walk, second) {
            caller(scratch, second, sp + FRAME_END, first)
        } else {
            ended(scratch, StackEnd::BadJavaCaller)
        }
    }
}
