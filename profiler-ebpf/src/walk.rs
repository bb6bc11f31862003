//! Walks a user stack by frame pointers.
//!
//! In: the thread's registers. Out: frames in the scratch's `body`, a hash over them, and the reason
//! why the walk ended. The stack is fetched in pieces of up to a page and walked in there: a read of user
//! memory costs far more than a step. At most 512 frames with `bpf_loop`, else 127.
#![allow(unsafe_code)]

use crate::maps::{BODY_WORDS, FETCH_BYTES, SCRATCH, Scratch};
use crate::regs::{UserRegs, near_stack_top};
use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_user};
use core::arch::asm;
use core::ffi::c_void;
use core::ptr::{addr_of_mut, null_mut};
use profiler_ebpf::{MAX_KERNEL_FRAMES, MAX_USER_FRAMES, MAX_USER_FRAMES_BOUNDED, StackEnd, UserFrame};

/// One past the last user address with four-level page tables; a process gets memory above only if it
/// asks for it (Documentation/arch/x86/x86_64/5level-paging.rst).
const USER_END: u64 = 1 << 47;
/// Nothing is mapped in the first page (`vm.mmap_min_addr`).
const USER_START: u64 = 4096;
/// A frame larger than this is taken for a frame pointer that is none.
const MAX_FRAME_BYTES: u64 = 4 << 20;
const PAGE: u64 = 4096;
/// What the first read takes.
const FIRST_FETCH_BYTES: u64 = 1024;
/// A saved frame pointer and a return address.
const PAIR: u64 = 16;
/// Steps between two calls of the callback, whose call and look-up of the scratch cost as much as a step.
const STEPS_A_ROUND: usize = 8;
/// No `StackEnd`: the walk has not ended.
const GOES_ON: u64 = u64::MAX;
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

/// Keeps a checked index behind its check: the compiler would else compute the address first, and the
/// verifier refuses arithmetic on a pointer with a number that is not bounded yet.
#[inline(always)]
pub fn checked(mut index: u64) -> usize {
    // SAFETY: moves a register to itself. (Without any instruction two lines would share one, and the
    // kernel refuses such line information.)
    unsafe { asm!("{0} = {0}", inout(reg) index, options(nomem, nostack, preserves_flags)) };
    index as usize
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
    walk.budget = FIRST_FETCH_BYTES;
    let words = walk.words;
    if words > MAX_KERNEL_FRAMES as u64 {
        return;
    }
    // SAFETY: the index was just checked; the leaf comes first.
    unsafe {
        let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(checked(words));
        frame.write(regs.ip);
        frame.add(1).write(0);
    }
    walk.words = words + 2;
    walk.frames = 1;
    walk.hash = mix(walk.hash, regs.ip);
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
        let step = steps_of_loop as unsafe extern "C" fn(u32, *mut c_void) -> i64;
        let rounds = (MAX_USER_FRAMES - 1).div_ceil(STEPS_A_ROUND) as u32;
        // SAFETY: the callback fetches its scratch itself and takes no context.
        unsafe { bpf_loop(rounds, step as *const () as *mut c_void, null_mut(), 0) };
    } else {
        for _ in 0..(MAX_USER_FRAMES_BOUNDED - 1).div_ceil(STEPS_A_ROUND) {
            // SAFETY: this CPU's scratch by contract.
            if !unsafe { steps(scratch, MAX_USER_FRAMES_BOUNDED as u64) } {
                break;
            }
        }
    }
    if walk.end == StackEnd::Root as u64 && !near_stack_top(walk.fp) {
        walk.end = StackEnd::NoFramePointer as u64;
    }
}

unsafe extern "C" fn steps_of_loop(_: u32, _: *mut c_void) -> i64 {
    match SCRATCH.get_ptr_mut(0) {
        // SAFETY: this CPU's scratch.
        Some(scratch) if unsafe { steps(scratch, MAX_USER_FRAMES as u64) } => 0,
        _ => 1,
    }
}

/// Some steps, each from a frame to its caller's; false at the end. The state is in registers
/// meanwhile.
#[inline(always)]
unsafe fn steps(scratch: *mut Scratch, max_frames: u64) -> bool {
    // SAFETY: this CPU's scratch by contract; the verifier checks each access.
    unsafe {
        let walk = &mut (*scratch).walk;
        let (mut fp, mut hash, mut words, mut frames) = (walk.fp, walk.hash, walk.words, walk.frames);
        let mut end = GOES_ON;
        for _ in 0..STEPS_A_ROUND {
            if frames >= max_frames {
                end = StackEnd::DepthLimit as u64;
                break;
            }
            let mut at = fp.wrapping_sub(walk.base);
            if at > walk.limit {
                if !fetch(scratch, fp) {
                    end = StackEnd::ReadFailed as u64;
                    break;
                }
                at = 0;
            }
            if at > FETCH_BYTES as u64 - PAIR || words > BODY_WORDS as u64 - 2 {
                end = StackEnd::DepthLimit as u64;
                break;
            }
            let pair = addr_of_mut!((*scratch).fetched).cast::<u8>().add(checked(at)).cast::<u64>();
            let (caller_fp, return_address) = (pair.read(), pair.add(1).read());
            if !is_user_address(return_address) {
                let root = return_address == 0 && caller_fp == 0;
                end = if root { StackEnd::Root } else { StackEnd::BadReturnAddress } as u64;
                break;
            }
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(checked(words));
            frame.write(return_address);
            frame.add(1).write(RETURN_ADDRESS);
            hash = mix(hash, return_address);
            words += 2;
            frames += 1;
            // The stack grows down: a caller's frame lies above.
            if caller_fp.wrapping_sub(fp).wrapping_sub(PAIR) > MAX_FRAME_BYTES || caller_fp & 7 != 0 {
                let root = caller_fp == 0;
                end = if root { StackEnd::Root } else { StackEnd::NoFramePointer } as u64;
                break;
            }
            fp = caller_fp;
        }
        (walk.fp, walk.hash, walk.words, walk.frames) = (fp, hash, words, frames);
        if end != GOES_ON {
            walk.end = end;
        }
        end == GOES_ON
    }
}

/// Fetches the stack from `address` up, never past the end of its page (a read that touches a hole gives
/// nothing at all and costs a fault). The first read is small and each next one twice that: most of what
/// a sample costs is cold memory, and many stacks are shallow. A JIT frame is 4 to 14 words.
#[inline(always)]
fn fetch(scratch: *mut Scratch, address: u64) -> bool {
    // SAFETY: the buffer is FETCH_BYTES long and no read is longer.
    unsafe {
        let walk = &mut (*scratch).walk;
        // Two words may lie across two pages.
        let bytes = (PAGE - (address & (PAGE - 1))).min(walk.budget).max(PAIR);
        walk.budget = FETCH_BYTES.min(walk.budget as usize * 2) as u64;
        walk.base = address;
        walk.reads += 1;
        walk.limit = bytes - PAIR;
        let bytes = checked(bytes);
        if bytes > FETCH_BYTES {
            return false;
        }
        let buffer = addr_of_mut!((*scratch).fetched).cast::<c_void>();
        bpf_probe_read_user(buffer, checked(bytes as u64) as u32, address as *const c_void) == 0
    }
}
