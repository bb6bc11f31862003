//! What HotSpot's code looks like on x86-64 where frames are made and unmade.
//!
//! What C1 and C2 emit (JDK 8 to 25, x86_64.ad MachPrologNode and MachEpilogNode, c1_LIRAssembler_x86,
//! sharedRuntime_x86_64 for wrappers) is, at the verified entry: (a) a touch of the stack below, `push rbp`, perhaps
//! `mov rbp,rsp`, `sub rsp,S-16`; or (b) `sub rsp,S-8`, `mov [rsp+S-16],rbp`; at the exit `add rsp`, `pop rbp`, a poll,
//! `ret`. Two reads of code at most, once for a pc.
#![allow(unsafe_code)]

use super::code;
use crate::maps::Scratch;
use crate::walk::hotspot::{CODE_BYTES, Kind};
use crate::walk::stack::checked;
use core::ptr::addr_of_mut;

/// Bytes of a call stub, and some: it is one of some hundred.
const CALL_STUB_BYTES: u64 = 1024;

/// For a pc in an nmethod with a frame.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn of_nmethod(scratch: *mut Scratch) -> u64 {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let pc = (*scratch).walk.pc;
        let blob = &(*scratch).blob;
        let entry = if blob.verified_entry >= blob.begin && blob.verified_entry < blob.end {
            blob.verified_entry
        } else {
            blob.begin
        };
        if pc < blob.begin.wrapping_add(blob.frame_complete) {
            // Until there: the check of an inline cache.
            if pc <= entry {
                return Kind::ReturnOnTop as u64;
            }
            let kind = prologue(scratch, entry, pc - entry);
            if kind != Kind::Body as u64 {
                return kind;
            }
        }
        at_exit(scratch)
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
        if !code(scratch, pc.wrapping_sub(4), 16) {
            return Kind::Stub as u64;
        }
        // push rbp; mov rbp,rsp. And just after the first of these.
        let here = byte(scratch, 4);
        let begins = |at: usize| {
            byte(scratch, at) == 0x55
                && byte(scratch, at + 1) == 0x48
                && byte(scratch, at + 2) == 0x8b
                && byte(scratch, at + 3) == 0xec
        };
        if here == 0xc3 || begins(4) {
            if calls_java { Kind::ReturnOnTopAny as u64 } else { Kind::ReturnOnTop as u64 }
        } else if calls_java {
            Kind::Entry as u64
        } else if begins(3) {
            Kind::FpOnTop as u64
        } else {
            Kind::Stub as u64
        }
    }
}

/// For a pc in one of the JVM's routines with a frame: what it pushed is looked for.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(always)]
pub unsafe fn of_runtime(_: *mut Scratch) -> u64 {
    Kind::Body as u64
}

/// Words of a method's frame that called: those of the blob's.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(always)]
pub unsafe fn frame_words(_: *mut Scratch, words: u64) -> u64 {
    words
}

/// At `offset` bytes behind the verified entry; `Body`: behind the prologue, or it was not found.
#[inline(always)]
unsafe fn prologue(scratch: *mut Scratch, entry: u64, offset: u64) -> u64 {
    // SAFETY: as above.
    unsafe {
        if offset >= CODE_BYTES as u64 || !code(scratch, entry, CODE_BYTES as u32) {
            return Kind::Body as u64;
        }
        let size = (*scratch).blob.frame_size * 8;
        for at in 0..CODE_BYTES - 8 {
            // sub rsp, with four bytes of number or one.
            if byte(scratch, at) != 0x48 || byte(scratch, at + 2) != 0xec {
                continue;
            }
            let (number, len) = match byte(scratch, at + 1) {
                0x81 => {
                    let high =
                        u64::from(byte(scratch, at + 5)) << 16 | u64::from(byte(scratch, at + 6)) << 24;
                    (high | u64::from(byte(scratch, at + 4)) << 8 | u64::from(byte(scratch, at + 3)), 7)
                }
                0x83 => (u64::from(byte(scratch, at + 3)), 4),
                _ => continue,
            };
            let at = at as u64;
            if number + 16 == size {
                return pushed(scratch, at, offset);
            }
            if number + 8 == size {
                return if offset <= at {
                    Kind::ReturnOnTop as u64
                } else if offset == at + len {
                    Kind::FpLive as u64
                } else {
                    Kind::Body as u64
                };
            }
        }
        // A frame of two words needs no sub.
        let first = byte(scratch, 0);
        let touches = first == 0x89 && byte(scratch, 1) == 0x84 && byte(scratch, 2) == 0x24;
        let push = if touches { 7 } else { 0 };
        if byte(scratch, push) == 0x55 && offset <= push as u64 {
            return Kind::ReturnOnTop as u64;
        }
        Kind::Body as u64
    }
}

/// In a prologue of the first kind, whose `sub` is at `sub`.
#[inline(always)]
unsafe fn pushed(scratch: *mut Scratch, sub: u64, offset: u64) -> u64 {
    // SAFETY: within the code that was read.
    unsafe {
        let sub_at = checked(sub);
        if sub_at < 4 || sub_at > CODE_BYTES {
            return Kind::Body as u64;
        }
        let push = if byte(scratch, sub_at - 1) == 0x55 {
            sub - 1
        } else if byte(scratch, sub_at - 4) == 0x55 {
            sub - 4
        } else {
            return Kind::Body as u64;
        };
        if offset <= push {
            Kind::ReturnOnTop as u64
        } else if offset <= sub {
            Kind::FpOnTop as u64
        } else {
            Kind::Body as u64
        }
    }
}

/// At the walk's pc, which is behind the prologue.
///
/// # Safety
/// As for [`of_nmethod`].
#[inline(never)]
pub unsafe fn at_exit(scratch: *mut Scratch) -> u64 {
    // SAFETY: as above.
    unsafe {
        if !code(scratch, (*scratch).walk.pc, 16) {
            return Kind::Body as u64;
        }
        let is = |at: usize, value: u8| byte(scratch, at) == value;
        let returns = |at: usize| is(at, 0xc3) || is(at, 0xc2);
        // pop rbp, and what follows it: to be the exit's and no other pop.
        if is(0, 0x5d) {
            return Kind::FpOnTop as u64;
        }
        let unmade = returns(0)
            // test [rip+x],eax (JDK 8).
            || is(0, 0x85) && is(1, 0x05) && returns(6)
            // mov r10,[r15+x]; test [r10],eax (11).
            || is(0, 0x4d) && is(1, 0x8b) && is(2, 0x97) && is(7, 0x41) && is(8, 0x85) && is(9, 0x02) && returns(10)
            || is(0, 0x41) && is(1, 0x85) && is(2, 0x02) && returns(3)
            // cmp rsp,[r15+x]; ja (17 on).
            || is(0, 0x49) && is(1, 0x3b) && is(2, 0x67) && is(4, 0x0f) && is(5, 0x87)
            || is(0, 0x49) && is(1, 0x3b) && is(2, 0xa7) && is(7, 0x0f) && is(8, 0x87)
            || is(0, 0x0f) && is(1, 0x87) && returns(6);
        if unmade { Kind::ReturnOnTop as u64 } else { Kind::Body as u64 }
    }
}

/// A byte of it.
#[inline(always)]
unsafe fn byte(scratch: *mut Scratch, at: usize) -> u8 {
    // SAFETY: callers stay below CODE_BYTES, with eight to spare; the verifier checks.
    unsafe { addr_of_mut!((*scratch).code).cast::<u8>().add(at).read() }
}
