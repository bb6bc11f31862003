//! The interpreted frame that a thread was interrupted in. While it is built, its method is in rbx and the caller's sp in r13.
#![allow(unsafe_code)]

use super::{MAX_LOCALS, lost, told, whole};
use crate::maps::Scratch;
use crate::walk::hotspot::slots::MADE;
use crate::walk::stack::pair;
use crate::walk::{caller as caller_at, in_code};
use profiler_ebpf::StackEnd;

/// Interrupted in the interpreter.
///
/// # Safety
/// As for [`super::caller`].
#[inline(never)]
pub unsafe fn leaf(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp, r13) = (walk.sp, walk.fp, walk.registers.sender_sp());
        // r13 is the bytecode pointer once there is a frame. That may be close above the stack, where the JVM's metadata
        // was mapped there; but the frame begins between them then, and while one is made that is at its very end or
        // above the caller's sp.
        let deep = fp.wrapping_sub(sp);
        if r13 & 7 != 0 || r13 <= sp || r13 - sp > MAX_LOCALS || deep > MADE && deep < r13 - sp {
            return whole(scratch, r13);
        }
        let Some((first, second)) = pair(scratch, sp) else {
            return lost(scratch, StackEnd::ReadFailed as u64);
        };
        let walk = &(*scratch).walk;
        let (method, ax) = (walk.registers.method(), walk.registers.popped_return());
        let made = deep <= MADE;
        let (pc, rbp) = if made && fp == sp {
            // push rbp; mov rbp,rsp.
            (second, first)
        } else if made {
            // And push r13, push 0.
            let Some((rbp, pc)) = pair(scratch, fp) else {
                return lost(scratch, StackEnd::ReadFailed as u64);
            };
            (pc, rbp)
        } else if in_code(walk, first) {
            // Before all, or after rax was pushed back.
            (first, fp)
        } else if first == fp && in_code(walk, second) {
            (second, fp)
        } else {
            // Popped into rax, to make room for locals.
            (ax, fp)
        };
        if !in_code(&(*scratch).walk, pc) {
            return whole(scratch, r13);
        }
        told(scratch, method, 0) && caller_at(scratch, pc, r13, rbp)
    }
}
