//! Steps by a rule: where the caller's pc, sp and rbp are, by kind of frame.
//!
//! In: the scratch's rule and the walk's registers, the frame itself already told. Out: the caller's registers, or
//! an end. A caller of Java is always in the JVM's code, but that of a stub that C++ calls.
#![allow(unsafe_code)]

use super::search;
use super::state::Kind;
use super::x86_64::{CALL, FRAME_END};
use crate::maps::Scratch;
use crate::walk::stack::{is_user_address, pair};
use crate::walk::{MAX_FRAME_BYTES, caller, ended, in_code};
use profiler_ebpf::StackEnd;

/// A stub's frame is no larger.
const MAX_STUB_BYTES: u64 = 4096;
/// What an adapter pushes is no more: 255 arguments.
const MAX_ARGUMENT_BYTES: u64 = 4096;

/// What the barrier at a method's entry pushes before its frame.
const ENTRY_COOKIE: u64 = u64::MAX;

/// Bytes of the rule's frame.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn frame_bytes(scratch: *mut Scratch) -> u64 {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe { ((*scratch).rule.how >> 32 & 0xffff) * 8 }
}

/// A step of the kinds that have no function of their own.
///
/// # Safety
/// As for [`frame_bytes`].
#[inline(always)]
pub unsafe fn step(scratch: *mut Scratch, kind: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        if kind == Kind::Entry as u64 {
            by_frame_pointer(scratch)
        } else if kind == Kind::Stub as u64 {
            stub(scratch)
        } else if kind == Kind::Adapter as u64 {
            adapter(scratch)
        } else {
            by_size(scratch, kind)
        }
    }
}

/// Frames of a known size, or none.
#[inline(never)]
unsafe fn by_size(scratch: *mut Scratch, kind: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (sp, fp, leaf) = (walk.sp, walk.fp, walk.leaf);
        let bytes = frame_bytes(scratch);
        let on_top = kind == Kind::ReturnOnTop as u64 || kind == Kind::ReturnOnTopAny as u64;
        let top = on_top || kind == Kind::FpOnTop as u64;
        let at = if top { sp } else { sp + bytes - FRAME_END };
        let Some((first, second)) = pair(scratch, at) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        let walk = &(*scratch).walk;
        let return_address = if on_top { first } else { second };
        if in_code(walk, return_address)
            || kind == Kind::ReturnOnTopAny as u64 && is_user_address(return_address)
        {
            let fp = if on_top || kind == Kind::FpLive as u64 { fp } else { first };
            return caller(scratch, return_address, if on_top { sp + CALL } else { at + FRAME_END }, fp);
        }
        if kind == Kind::Rebuilding as u64 {
            return ended(scratch, StackEnd::Deoptimizing);
        }
        if leaf != 0 || kind == Kind::Whole as u64 {
            return search::body(scratch);
        }
        ended(scratch, StackEnd::BadJavaCaller)
    }
}

/// The stub that C++ calls Java by, and the like: on into native code.
#[inline(never)]
unsafe fn by_frame_pointer(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let fp = walk.fp;
        if fp.wrapping_sub(walk.sp) > MAX_FRAME_BYTES || fp & 7 != 0 {
            return ended(scratch, StackEnd::BadJavaFrame);
        }
        match pair(scratch, fp) {
            Some((rbp, pc)) if is_user_address(pc) => caller(scratch, pc, fp + FRAME_END, rbp),
            Some(_) => ended(scratch, StackEnd::BadJavaCaller),
            None => ended(scratch, StackEnd::ReadFailed),
        }
    }
}

/// A stub has a frame by frame pointer or none. That of the barrier at a method's entry pushes a word of ones before it
/// makes its frame (`generate_method_entry_barrier`, stubGenerator_x86_64.cpp, JDK 15 to 25): collectors that unload
/// classes concurrently arm it, ZGC and Shenandoah, from JDK 20 on G1.
#[inline(never)]
unsafe fn stub(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
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
        search::top(scratch)
    }
}

/// An adapter, which moves arguments between two methods and has no frame of its own. The caller's sp is in
/// r13 once it was changed.
#[inline(never)]
unsafe fn adapter(scratch: *mut Scratch) -> bool {
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

/// A deoptimised frame returns to the handler; its own pc is in it. The next round goes on with that.
///
/// # Safety
/// As for [`frame_bytes`].
#[inline(never)]
pub unsafe fn deoptimized(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let handler = walk.pc;
        let at = walk.sp + ((*scratch).rule.how >> 48) * 8;
        match pair(scratch, at) {
            Some((pc, _)) if in_code(&(*scratch).walk, pc) && pc != handler => {
                (*scratch).walk.pc = pc;
                true
            }
            Some(_) => ended(scratch, StackEnd::BadJavaFrame),
            None => ended(scratch, StackEnd::ReadFailed),
        }
    }
}
