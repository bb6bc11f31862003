//! Walks a user stack by frame pointers.
//!
//! In: the thread's registers. Out: frames in the scratch's `body`, a hash over them, and the reason
//! why the walk ended. The stack is fetched in pieces of up to 8 KB and walked in there: a read of user
//! memory costs far more than a step. At most 512 frames with `bpf_loop`, else 127.
#![allow(unsafe_code)]

use crate::maps::{BODY_WORDS, FETCH_BYTES, SCRATCH, Scratch};
use crate::regs::UserRegs;
use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_user};
use core::ffi::c_void;
use core::ptr::{addr_of_mut, null_mut};
use profiler_ebpf::{MAX_USER_FRAMES, MAX_USER_FRAMES_BOUNDED, StackEnd, UserFrame};

/// One past the last user address with four-level page tables; a process gets memory above only if it
/// asks for it (Documentation/arch/x86/x86_64/5level-paging.rst).
const USER_END: u64 = 1 << 47;
/// Nothing is mapped in the first page (`vm.mmap_min_addr`).
const USER_START: u64 = 4096;
/// A frame larger than this is taken for a frame pointer that is none.
const MAX_FRAME_BYTES: u64 = 4 << 20;
const PAGE: u64 = 4096;
/// A saved frame pointer and a return address.
const PAIR: u64 = 16;
/// Second word of a [`UserFrame`] that holds a return address.
const RETURN_ADDRESS: u64 = (UserFrame::FLAG_RETURN_ADDRESS as u64) << 40;

/// Mixes a word into a hash. Multiplying by an odd number and folding the high half into the low one
/// can both be undone, so different stacks of one shape never meet by construction.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    let h = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^ (h >> 32)
}

#[inline(always)]
fn is_user_address(address: u64) -> bool {
    address >= USER_START && address < USER_END
}

/// Walks from `regs`; `scratch.walk` holds the outcome.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn user_stack<const LOOP: bool>(scratch: *mut Scratch, regs: &UserRegs) {
    // SAFETY: valid by contract; the verifier checks each access.
    let walk = unsafe { &mut (*scratch).walk };
    walk.fp = regs.fp;
    walk.base = 0;
    walk.limit = 0;
    push(scratch, regs.ip, 0);
    // Code without frame pointers uses the register for other things.
    if regs.fp < regs.sp || regs.fp - regs.sp > MAX_FRAME_BYTES || regs.fp & 7 != 0 {
        walk.end = StackEnd::NoFramePointer as u64;
        return;
    }
    if !fetch(scratch, regs.fp) {
        walk.end = StackEnd::ReadFailed as u64;
        return;
    }
    walk.end = StackEnd::DepthLimit as u64;
    if LOOP {
        let step = step_of_loop as unsafe extern "C" fn(u32, *mut c_void) -> i64;
        // SAFETY: the callback fetches its scratch itself and takes no context.
        unsafe { bpf_loop(MAX_USER_FRAMES as u32 - 1, step as *const () as *mut c_void, null_mut(), 0) };
    } else {
        for _ in 1..MAX_USER_FRAMES_BOUNDED {
            if !step(scratch) {
                break;
            }
        }
    }
}

unsafe extern "C" fn step_of_loop(_: u32, _: *mut c_void) -> i64 {
    match SCRATCH.get_ptr_mut(0) {
        Some(scratch) if step(scratch) => 0,
        _ => 1,
    }
}

/// From one frame to its caller's; false at the end.
#[inline(always)]
fn step(scratch: *mut Scratch) -> bool {
    // SAFETY: this CPU's scratch; the verifier checks each access.
    let walk = unsafe { &mut (*scratch).walk };
    let fp = walk.fp;
    let mut at = fp.wrapping_sub(walk.base);
    if at > walk.limit {
        if !fetch(scratch, fp) {
            walk.end = StackEnd::ReadFailed as u64;
            return false;
        }
        at = 0;
    }
    if at > (FETCH_BYTES as u64) - PAIR {
        return false;
    }
    // SAFETY: `at` was just checked against the buffer's size.
    let (caller_fp, return_address) = unsafe {
        let pair = addr_of_mut!((*scratch).fetched).cast::<u8>().add(at as usize).cast::<u64>();
        (pair.read(), pair.add(1).read())
    };
    if !is_user_address(return_address) {
        let root = return_address == 0 && caller_fp == 0;
        walk.end = if root { StackEnd::Root } else { StackEnd::BadReturnAddress } as u64;
        return false;
    }
    if !push(scratch, return_address, RETURN_ADDRESS) {
        return false;
    }
    if caller_fp == 0 {
        walk.end = StackEnd::Root as u64;
        return false;
    }
    // The stack grows down: a caller's frame lies above.
    if caller_fp.wrapping_sub(fp).wrapping_sub(PAIR) > MAX_FRAME_BYTES || caller_fp & 7 != 0 {
        walk.end = StackEnd::NoFramePointer as u64;
        return false;
    }
    walk.fp = caller_fp;
    true
}

/// Adds a frame; false when there is no room.
#[inline(always)]
fn push(scratch: *mut Scratch, value: u64, flags: u64) -> bool {
    // SAFETY: this CPU's scratch; the index is checked.
    unsafe {
        let walk = &mut (*scratch).walk;
        let words = walk.words;
        if words > (BODY_WORDS - 2) as u64 {
            return false;
        }
        let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(words as usize);
        frame.write(value);
        frame.add(1).write(flags);
        walk.words = words + 2;
        walk.frames += 1;
        walk.hash = mix(walk.hash, value);
    }
    true
}

/// Fetches the stack from `address` up: 8 KB, or to the end of the page when that runs past the
/// mapping (a read that hits a hole gives nothing at all).
#[inline(always)]
fn fetch(scratch: *mut Scratch, address: u64) -> bool {
    // SAFETY: the buffer is FETCH_BYTES long and no read is longer.
    unsafe {
        let walk = &mut (*scratch).walk;
        let buffer = addr_of_mut!((*scratch).fetched).cast::<c_void>();
        let from = address as *const c_void;
        walk.base = address;
        walk.reads += 1;
        walk.limit = FETCH_BYTES as u64 - PAIR;
        if bpf_probe_read_user(buffer, FETCH_BYTES as u32, from) == 0 {
            return true;
        }
        // A pair may lie across two pages.
        let rest = PAGE - (address & (PAGE - 1));
        let rest = if rest < PAIR { PAIR } else { rest };
        walk.reads += 1;
        walk.limit = rest - PAIR;
        bpf_probe_read_user(buffer, rest as u32, from) == 0
    }
}
