//! What HotSpot's code looks like on arm64 where frames are made and unmade: reads it, and has `profiler_ebpf::hotspot_arm64` tell
//! what it means. One read of code, once for a pc.
//!
//! Answers go by way of the scratch's memory: the verifier knows nothing of what it reads there, and looks at what comes after
//! once, not for each.
#![allow(unsafe_code)]

use super::code;
use crate::maps::Scratch;
use crate::walk::hotspot::{CODE_BYTES, Kind};
use crate::walk::stack::read;
use core::ptr::{addr_of_mut, read_volatile, write_volatile};
use profiler_ebpf::hotspot_arm64::{
    Entry, FRAME_WORDS, FrameState, LEAF_CALL, LEAF_CALL_BYTES, PUSH_RECORD, RET, SET_FP, SenderRegister,
    entry, frame_state,
};

/// Bytes of a call stub, and some: it is one of some hundred.
const CALL_STUB_BYTES: u64 = 1024;
/// Bytes of an instruction.
const WORD: u64 = 4;

/// [`at_entry`]: the frame is made, or nothing is told.
pub const MADE: u64 = 0;
/// The frame is gone.
pub const LEFT: u64 = 1;
/// Caller and its fp are in x30 and x29; else in the record at x29.
pub const LINKED: u64 = 2;
/// The caller's sp is in a register.
const ENTERED: u64 = 4;
/// It is in x19; else in x13.
pub const FROM_X19: u64 = 8;

/// For a pc in an nmethod with a frame.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn of_nmethod(scratch: *mut Scratch) -> u64 {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let pc = (*scratch).walk.pc;
        let blob = &(*scratch).blob;
        let is_inside = blob.verified_entry >= blob.begin && blob.verified_entry < blob.end;
        let entry = if is_inside { blob.verified_entry } else { blob.begin };
        let whole = blob.begin.wrapping_add(blob.frame_complete);
        // Until there: the check of an inline cache.
        if pc < whole && pc <= entry {
            return Kind::ReturnOnTop as u64;
        }
        (*scratch).rule.how = blob.frame_size << 32;
        state(scratch, if pc < whole { (whole - pc) / WORD } else { 0 }, 0)
    }
}

/// For a pc in one of the JVM's routines with a frame, which end with a return or go on to what they have found.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(always)]
pub unsafe fn of_runtime(scratch: *mut Scratch) -> u64 {
    // SAFETY: as above.
    unsafe {
        (*scratch).rule.how = (*scratch).blob.frame_size << 32;
        state(scratch, FRAME_WORDS as u64, 1)
    }
}

/// At the walk's pc, which is behind the prologue; the frame's size is in the scratch's rule.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(always)]
pub unsafe fn at_exit(scratch: *mut Scratch) -> u64 {
    // SAFETY: as above.
    unsafe { state(scratch, 0, 0) }
}

/// At the walk's pc, with so many words in which the frame may be made; `jumps` not 0: code that ends with a jump.
#[inline(never)]
unsafe fn state(scratch: *mut Scratch, making: u64, jumps: u64) -> u64 {
    // SAFETY: as above.
    unsafe {
        if !code(scratch, (*scratch).walk.pc, (FRAME_WORDS as u64 * WORD) as u32) {
            return Kind::Body as u64;
        }
        let bytes = ((*scratch).rule.how >> 32 & 0xffff) * 8;
        let kind = match frame_state(|at| word(scratch, at), making, bytes, jumps != 0) {
            FrameState::Whole => Kind::Body,
            FrameState::Absent => Kind::ReturnOnTop,
            FrameState::Reserved => Kind::FpLive,
            FrameState::Record => Kind::FpOnTop,
        };
        forgotten(scratch, kind as u64)
    }
}

/// For a pc in a stub routine: before and after the frame, if it makes one.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(never)]
pub unsafe fn of_stub(scratch: *mut Scratch, call_stub_return: u64) -> u64 {
    // SAFETY: as above.
    unsafe {
        let pc = (*scratch).walk.pc;
        let calls_java =
            pc.wrapping_sub(call_stub_return).wrapping_add(CALL_STUB_BYTES / 2) < CALL_STUB_BYTES;
        let Some(both) = read::<u64>(scratch, pc.wrapping_sub(WORD)) else { return Kind::Stub as u64 };
        let (before, here) = (both as u32, (both >> 32) as u32);
        let kind = if here == RET || here == PUSH_RECORD {
            Kind::ReturnOnTopAny
        } else if calls_java {
            Kind::Entry
        } else if here == SET_FP && before == PUSH_RECORD {
            Kind::FpOnTop
        } else {
            Kind::Stub
        };
        forgotten(scratch, kind as u64)
    }
}

/// Words of a method's frame that called: its blob's, and what a call of a leaf routine pushes.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(always)]
pub unsafe fn frame_words(scratch: *mut Scratch, words: u64) -> u64 {
    // SAFETY: as above.
    let call = unsafe { read::<u64>(scratch, (*scratch).walk.pc.wrapping_sub(2 * WORD)) };
    if call == Some(LEAF_CALL) { words + LEAF_CALL_BYTES / 8 } else { words }
}

/// How far the interpreter is with the frame at the walk's pc.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(never)]
pub unsafe fn at_entry(scratch: *mut Scratch) -> u64 {
    // SAFETY: as above.
    unsafe {
        if !code(scratch, (*scratch).walk.pc, CODE_BYTES as u32) {
            return MADE;
        }
        let from = |register: SenderRegister| if register == SenderRegister::X19 { FROM_X19 } else { 0 };
        let state = match entry(|at| word(scratch, at)) {
            Entry::Made => MADE,
            Entry::Left => LEFT,
            Entry::Linked(register) => ENTERED | LINKED | from(register),
            Entry::Recorded(register) => ENTERED | from(register),
        };
        forgotten(scratch, state)
    }
}

/// A number, of which the verifier knows nothing any more.
#[inline(always)]
unsafe fn forgotten(scratch: *mut Scratch, number: u64) -> u64 {
    // SAFETY: as above.
    unsafe {
        let at = addr_of_mut!((*scratch).walk.at);
        write_volatile(at, number);
        read_volatile(at)
    }
}

/// An instruction of it.
#[inline(always)]
unsafe fn word(scratch: *mut Scratch, at: usize) -> u32 {
    // SAFETY: callers stay below CODE_BYTES; the verifier checks.
    unsafe { addr_of_mut!((*scratch).code).cast::<u32>().add(at).read() }
}
