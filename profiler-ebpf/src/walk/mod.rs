//! Walks a user stack by the kind of code at each pc.
//!
//! In: the thread's registers, and what the daemon told of its process. Out: frames in the scratch's `body`, a hash
//! over them, and the reason why the walk ended. A runtime's code is stepped by the runtime's rules (`runtime`; code in a
//! JVM's code heaps by `hotspot`), native code by its file's unwind table (`table`), and code that has none by frame pointers (`native`).
//! At most 512 frames with `bpf_loop`; else a program calls itself again, up to 33 times (tail calls), for some rounds
//! each; or at most 127, by frame pointers only.
#![allow(unsafe_code)]

mod apply;
pub mod cache;
mod cpython;
pub mod hotspot;
mod leaf;
mod link;
mod native;
pub mod recent;
mod rows;
pub mod runtime;
mod saved;
mod stack;
pub mod state;
mod table;

use crate::maps::{BODY_WORDS, SCRATCH, Scratch};
use crate::regs::near_stack_top;
use crate::threads;
use aya_ebpf::helpers::generated::bpf_loop;
use core::ffi::c_void;
use core::ptr::{addr_of_mut, null_mut};
use profiler_ebpf::arch::{LINK_REGISTER, Taken};
use profiler_ebpf::{MAX_FRAMES_WITH_PYTHON, MAX_USER_FRAMES, MAX_USER_FRAMES_BOUNDED, StackEnd, UserFrame};
use stack::FIRST_FETCH_BYTES;
pub use stack::{at_most, checked};

/// Steps between two calls of the callback, whose call and look-up of the scratch cost as much as a step.
const STEPS_A_ROUND: usize = 8;
/// Callbacks at most: a frame each at least, but for a few that only change the pc.
const MAX_ROUNDS: u32 = MAX_FRAMES_WITH_PYTHON as u32 + 64;
/// Rounds of a program that is called again and again: what the verifier of Linux 5.10 looks at.
const ROUNDS_A_CALL: usize = 4;
/// Second word of a [`UserFrame`] that holds a return address.
const RETURN_ADDRESS: u64 = (UserFrame::FLAG_RETURN_ADDRESS as u64) << 40;
/// The same of one that was found by searching.
const GUESSED: u64 = (UserFrame::FLAG_GUESSED as u64) << 40;
/// A frame larger than this is taken for a frame pointer that is none.
const MAX_FRAME_BYTES: u64 = 4 << 20;

/// Mixes a word into a hash. Multiplying by an odd number and folding the high half into the low one
/// can both be undone, so different stacks of one shape never meet by construction.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    let h = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^ (h >> 32)
}

/// Mixes a frame into a hash. The product does not wait for the hash so far.
#[inline(always)]
fn mix_frame(hash: u64, value: u64, second: u64) -> u64 {
    mix(hash, value ^ second.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
}

/// Where the last frame of `body` is.
const LAST_FRAME: u64 = BODY_WORDS as u64 - 2;

/// Ready to walk from there.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn begin(scratch: *mut Scratch, start: &Taken) {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &mut (*scratch).walk;
        start.put([&mut walk.pc, &mut walk.sp, &mut walk.fp], &mut walk.registers);
        walk.leaf = 1;
        (walk.base, walk.limit, walk.budget) = (0, 0, FIRST_FETCH_BYTES);
        (walk.low, walk.high, walk.guessed) = (0, 0, 0);
        (walk.most, walk.runtime, walk.python.follows) = (MAX_USER_FRAMES as u64, 0, 0);
        walk.end = StackEnd::DepthLimit as u64;
        table::begin(walk);
    }
}

/// Looks up what is known of the process's and the thread's code.
///
/// # Safety
/// As for [`begin`].
#[inline(always)]
pub unsafe fn prepare(scratch: *mut Scratch, (pid, tid): (u32, u32), now_ns: u64) {
    // SAFETY: as above.
    unsafe {
        recent::begin(scratch, pid, tid, now_ns);
        let walk = &mut (*scratch).walk;
        walk.hash = mix(walk.hash, walk.generation);
        walk.most = runtime::most(walk);
    }
}

/// Walks to the end, where the kernel has `bpf_loop`. `OF` is which of the CPU's it is.
///
/// # Safety
/// As for [`begin`], after [`prepare`].
#[inline(always)]
pub unsafe fn in_a_loop<const OF: u32>(scratch: *mut Scratch) {
    let step = round::<OF> as unsafe extern "C" fn(u32, *mut c_void) -> i64;
    // SAFETY: the callback fetches its scratch itself and takes no context.
    unsafe {
        bpf_loop(MAX_ROUNDS, step as *const () as *mut c_void, null_mut(), 0);
        after_some(scratch);
    }
}

/// Walks some rounds; false at the end.
///
/// # Safety
/// As for [`in_a_loop`].
#[inline(always)]
pub unsafe fn some(scratch: *mut Scratch) -> bool {
    for _ in 0..ROUNDS_A_CALL {
        // SAFETY: as above.
        if unsafe { one(scratch) } != 0 {
            return false;
        }
    }
    true
}

/// After the last step.
///
/// # Safety
/// As for [`in_a_loop`].
#[inline(always)]
pub unsafe fn after_some(scratch: *mut Scratch) {
    // SAFETY: as above.
    unsafe {
        recent::end(&(*scratch).walk);
        finish::<true>(scratch);
    }
}

/// Walks by frame pointers only.
///
/// # Safety
/// As for [`begin`].
#[inline(always)]
pub unsafe fn by_frame_pointers(scratch: *mut Scratch, tid: u32) {
    // SAFETY: as above.
    unsafe {
        (*scratch).walk.name_seq = u64::from(threads::number_of(tid));
        // With the state in the scratch after each step, the ways through it meet again: the verifier would else
        // look at all of them.
        for _ in 0..=MAX_USER_FRAMES_BOUNDED {
            if !native::steps::<1>(scratch, MAX_USER_FRAMES_BOUNDED as u64) {
                break;
            }
        }
        finish::<false>(scratch);
    }
}

/// Whether what looks like the root is it.
#[inline(always)]
unsafe fn finish<const TABLES: bool>(scratch: *mut Scratch) {
    // SAFETY: as above.
    unsafe {
        let walk = &mut (*scratch).walk;
        if walk.end == StackEnd::Root as u64 && walk.marked == 0 && !near_stack_top(walk.sp) {
            walk.end = StackEnd::NoFramePointer as u64;
        }
        table::told::<TABLES>(walk);
    }
}

/// Some steps, by the kind of code; 1 at the end.
unsafe extern "C" fn round<const OF: u32>(_: u32, _: *mut c_void) -> i64 {
    let Some(scratch) = SCRATCH.get_ptr_mut(OF) else { return 1 };
    // SAFETY: this CPU's scratch.
    unsafe { one(scratch) }
}

/// The same.
#[inline(always)]
unsafe fn one(scratch: *mut Scratch) -> i64 {
    // SAFETY: by contract.
    unsafe {
        let walk = &(*scratch).walk;
        if runtime::adds(walk) {
            return if runtime::added(scratch) { 0 } else { 1 };
        }
        let goes_on = if in_code(walk, walk.pc) {
            runtime::steps(scratch)
        } else if walk.ranges != 0 {
            table::steps(scratch)
        } else {
            native::steps::<STEPS_A_ROUND>(scratch, walk.most)
        };
        if goes_on || runtime::after(scratch) { 0 } else { 1 }
    }
}

/// Whether an address is in code that the process's runtime steps through.
#[inline(always)]
fn in_code(walk: &state::Walk, address: u64) -> bool {
    address >= walk.low && address < walk.high
}

/// Adds a frame; false when there is no room, and the walk ends.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn push(scratch: *mut Scratch, value: u64, second: u64) -> bool {
    // SAFETY: the index is checked.
    unsafe {
        let walk = &mut (*scratch).walk;
        let words = walk.words;
        if walk.frames >= walk.most || words > LAST_FRAME {
            walk.end = StackEnd::DepthLimit as u64;
            return false;
        }
        let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(stack::at_most::<LAST_FRAME>(words));
        frame.write(value);
        frame.add(1).write(second);
        walk.hash = mix_frame(walk.hash, value, second);
        walk.words = words + 2;
        walk.frames += 1;
        walk.guessed = 0;
        true
    }
}

/// Ends the walk.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
unsafe fn ended(scratch: *mut Scratch, end: StackEnd) -> bool {
    // SAFETY: as above.
    unsafe { (*scratch).walk.end = end as u64 };
    false
}

/// The walk goes on with the caller.
///
/// # Safety
/// As for [`push`].
#[inline(always)]
unsafe fn caller(scratch: *mut Scratch, pc: u64, sp: u64, fp: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &mut (*scratch).walk;
        // The stack grows down: a caller's frame lies above. An interrupted function has none yet where calls push nothing.
        let frameless = LINK_REGISTER && walk.leaf != 0 && sp == walk.sp;
        // Above by a multiple of eight bytes, and not too far: one comparison, since the verifier looks at each outcome of each.
        let above = sp.wrapping_sub(walk.sp).wrapping_sub(1) | sp << 61;
        if above >= MAX_FRAME_BYTES && !(frameless && sp & 7 == 0) {
            return ended(scratch, StackEnd::StackNotGrowing);
        }
        (walk.pc, walk.sp, walk.fp, walk.leaf) = (pc, sp, fp, 0);
        true
    }
}
