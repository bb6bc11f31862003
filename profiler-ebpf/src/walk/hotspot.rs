//! Steps through the code of HotSpot: compiled methods, interpreter, stubs.
//!
//! In: the walk's registers, with a pc in the JVM's code heaps. Out: frames, until code of another kind or an end.
//! Compiled frames whose rule the cache has are stepped in a loop with the state in registers; all else goes by
//! `step`, a frame at a time. rbp may hold anything in compiled code: it is restored at each frame, because
//! interpreted frames need it, and steers nothing.
#![allow(unsafe_code)]

use super::stack::{LAST_PAIR, PAIR, at_most};
use super::state::Kind;
use super::{
    GUESSED, LAST_FRAME, RETURN_ADDRESS, STEPS_A_ROUND, blob, cache, frames, interp, leaf, mix_frame, push,
    search,
};
use crate::maps::{JVMS, Scratch};
use core::ptr::addr_of_mut;
use profiler_ebpf::{FrameKindTag, JvmLayout, MAX_USER_FRAMES, StackEnd};

/// Some steps; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe { if known(scratch) { step(scratch) } else { true } }
}

/// Steps through compiled callers that the cache knows; whether it met something else in the JVM's code.
#[inline(always)]
unsafe fn known(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &mut (*scratch).walk;
        if walk.leaf != 0 || walk.guessed != 0 {
            return true;
        }
        let (mut pc, mut sp, mut fp) = (walk.pc, walk.sp, walk.fp);
        let (mut hash, mut words, mut frames) = (walk.hash, walk.words, walk.frames);
        let (low, high, incarnation, now) = (walk.low, walk.high, walk.incarnation, walk.now);
        let (base, limit) = (walk.base, walk.limit);
        let mut other = false;
        for _ in 0..STEPS_A_ROUND {
            other = true;
            let Some(rule) = cache::fresh(pc, incarnation, now) else { break };
            if rule.what >> 56 != Kind::Whole as u64 {
                break;
            }
            let bytes = (rule.how >> 32 & 0xffff) * 8;
            let at = sp.wrapping_add(bytes).wrapping_sub(PAIR).wrapping_sub(base);
            if at > limit || at > LAST_PAIR {
                break;
            }
            let pair =
                addr_of_mut!((*scratch).fetched).cast::<u8>().add(at_most::<LAST_PAIR>(at)).cast::<u64>();
            let (rbp, return_address) = (pair.read(), pair.add(1).read());
            if return_address < low || return_address >= high {
                break;
            }
            if frames >= MAX_USER_FRAMES as u64 || words > LAST_FRAME {
                break;
            }
            let second = second(rule.what, rule.how);
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(at_most::<LAST_FRAME>(words));
            frame.write(pc);
            frame.add(1).write(second);
            hash = mix_frame(hash, pc, second);
            words += 2;
            frames += 1;
            (pc, sp, fp) = (return_address, sp + bytes, rbp);
            other = false;
        }
        let walk = &mut (*scratch).walk;
        (walk.pc, walk.sp, walk.fp) = (pc, sp, fp);
        (walk.hash, walk.words, walk.frames) = (hash, words, frames);
        other
    }
}

/// Second word of the frame of a return address.
#[inline(always)]
fn second(what: u64, how: u64) -> u64 {
    how & 0xffff_ffff | (what >> 48 & 0xff) << 32 | RETURN_ADDRESS
}

/// One step, of any kind; false at the end.
#[inline(never)]
unsafe fn step(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let Some(jvm) = JVMS.get_ptr(walk.pid as u32) else {
            return lost(scratch, StackEnd::JvmNotReady as u64);
        };
        if walk.leaf == 0 && walk.pc == (*jvm).cont_return_barrier {
            return search::continuation(scratch, jvm);
        }
        if !rule(scratch, jvm) {
            return lost(scratch, (*scratch).walk.end);
        }
        let what = (*scratch).rule.what >> 56;
        if what == Kind::Interpreted as u64 {
            return interp::caller(scratch, jvm);
        }
        if what == Kind::InterpretedLeaf as u64 {
            return interp::leaf(scratch, jvm);
        }
        if what == Kind::Deoptimized as u64 {
            return frames::deoptimized(scratch);
        }
        let rule = &(*scratch).rule;
        let second = second(rule.what, rule.how) & !RETURN_ADDRESS | returned(scratch);
        if !push(scratch, (*scratch).walk.pc, second) {
            return false;
        }
        if what == Kind::Body as u64 { search::body(scratch) } else { frames::step(scratch, what) }
    }
}

/// The rule for the walk's pc, from the cache or from the JVM's memory; false: `end` says why there is none.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn rule(scratch: *mut Scratch, jvm: *const JvmLayout) -> bool {
    // SAFETY: as above.
    unsafe {
        let key = cache::key_of_pc(&(*scratch).walk);
        if cache::find(scratch, jvm, key) {
            return true;
        }
        let segment = cache::key_of_segment(&(*scratch).walk, &*jvm);
        if (*scratch).walk.leaf != 0 && cache::find(scratch, jvm, segment) {
            let kind = leaf::at_exit(scratch);
            let rule = &mut (*scratch).rule;
            rule.what = rule.what & 0xff_ffff_ffff_ffff | kind << 56;
        } else {
            if !blob::resolve(scratch, jvm) {
                return false;
            }
            if (*scratch).walk.leaf != 0 && blob::made_in_segment(scratch, segment) {
                cache::keep(scratch, segment);
            }
        }
        cache::keep(scratch, key);
        true
    }
}

/// Ends the walk; the last frame is kept, and why there is no other.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn lost(scratch: *mut Scratch, end: u64) -> bool {
    let stub = (FrameKindTag::JavaStub as u64) << 32;
    // SAFETY: as above.
    unsafe {
        if push(scratch, (*scratch).walk.pc, stub | returned(scratch)) {
            (*scratch).walk.end = end;
        }
    }
    false
}

/// Flags of a frame with an address, in its second word.
#[inline(always)]
unsafe fn returned(scratch: *mut Scratch) -> u64 {
    // SAFETY: as above.
    let walk = unsafe { &(*scratch).walk };
    (if walk.leaf != 0 { 0 } else { RETURN_ADDRESS }) | walk.guessed & GUESSED
}
