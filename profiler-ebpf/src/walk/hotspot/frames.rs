//! Steps by a rule: where the caller's pc, sp and fp are, by kind of frame.
//!
//! In: the scratch's rule and the walk's registers, the frame itself already told. Out: the caller's registers, or
//! an end. A caller of Java is always in the JVM's code, but that of a stub that C++ calls.
#![allow(unsafe_code)]

use super::frameless::{adapter, stub};
use super::search;
use super::slots::{CALL, FRAME_END};
use super::state::Kind;
use crate::maps::Scratch;
use crate::walk::stack::{is_user_address, pair};
use crate::walk::{MAX_FRAME_BYTES, caller, ended, in_code};
use profiler_ebpf::StackEnd;
use profiler_ebpf::arch::{LINK_REGISTER, code_address};

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
        if LINK_REGISTER && (on_top || kind == Kind::FpLive as u64) {
            return linked(scratch, kind, if on_top { sp } else { sp + bytes });
        }
        let at = if top { sp } else { sp + bytes - FRAME_END };
        let Some((first, second)) = pair(scratch, at) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        let walk = &(*scratch).walk;
        let return_address = code_address(if on_top { first } else { second });
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

/// The return address is in the link register, which the interrupted code alone may have left as it was; `sp` is the caller's.
#[inline(always)]
unsafe fn linked(scratch: *mut Scratch, kind: u64, sp: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let link = walk.registers.link();
        let any = kind == Kind::ReturnOnTopAny as u64 && is_user_address(link);
        if walk.leaf == 0 || !any && !in_code(walk, link) {
            return ended(scratch, StackEnd::BadJavaCaller);
        }
        caller(scratch, link, sp, walk.fp)
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
            Some((saved, pc)) if is_user_address(code_address(pc)) => {
                caller(scratch, code_address(pc), fp + FRAME_END, saved)
            }
            Some(_) => ended(scratch, StackEnd::BadJavaCaller),
            None => ended(scratch, StackEnd::ReadFailed),
        }
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
            Some((pc, _)) if in_code(&(*scratch).walk, code_address(pc)) && code_address(pc) != handler => {
                (*scratch).walk.pc = code_address(pc);
                true
            }
            Some(_) => ended(scratch, StackEnd::BadJavaFrame),
            None => ended(scratch, StackEnd::ReadFailed),
        }
    }
}
