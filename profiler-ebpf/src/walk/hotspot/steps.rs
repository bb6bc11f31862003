//! Steps through the code of HotSpot: compiled methods, interpreter, stubs.
//!
//! In: the walk's registers, with a pc in the JVM's code heaps. Out: frames, until code of another kind or an end.
//! Compiled frames that the thread's last walk met or whose rule the cache has, interpreted ones, and the call stub
//! are stepped in a loop with the state in registers; all else goes by `step`, a frame at a time. fp may hold anything in compiled code: it is restored at each frame, because
//! interpreted frames need it, and steers nothing.
#![allow(unsafe_code)]

use super::maps::JVMS;
use super::state::Kind;
use super::{blob, frames, interp, leaves, search, slots};
use crate::maps::Scratch;
use crate::walk::recent::Banks;
use crate::walk::stack::{LAST_PAIR, PAIR, at_most, covered, fetch, is_user_address, pair_at};
use crate::walk::state::Walk;
use crate::walk::{
    GUESSED, LAST_FRAME, MAX_FRAME_BYTES, RETURN_ADDRESS, STEPS_A_ROUND, cache, mix_frame, push,
};
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::code_address;
use profiler_ebpf::{JavaFrameTag, MAX_USER_FRAMES, RuntimeId, StackEnd};

/// In the second word of each frame.
const RUNTIME: u64 = (RuntimeId::HOTSPOT.0 as u64) << 48;

/// Some steps; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe { if known(scratch) { step(scratch) } else { true } }
}

/// Steps through callers that need no look at the JVM's memory but its stack; whether it met something else in the
/// JVM's code. A function of its own: what it needs of the program's stack is not there for those that are called after
/// it.
#[inline(never)]
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
        let own: *mut Walk = addr_of_mut!((*scratch).walk);
        let Some(banks) = Banks::of(walk) else { return true };
        let mut other = false;
        let mut wanted = 0;
        let entry = walk.jvm.entry;
        let (interpreter, interpreter_len) = (walk.jvm.interpreter, walk.jvm.places.interpreter_len());
        for _ in 0..STEPS_A_ROUND {
            other = true;
            if frames >= MAX_USER_FRAMES as u64 || words > LAST_FRAME {
                break;
            }
            let (value, second, next);
            if pc.wrapping_sub(interpreter) < interpreter_len {
                if !covered(base, limit, fp.wrapping_sub(slots::BELOW * 8), slots::SLOTS_BYTES) {
                    wanted = fp.wrapping_sub(slots::BELOW * 8);
                    break;
                }
                let Some((frame, to)) = interp::plain(scratch, (sp, fp), base, (low, high)) else {
                    break;
                };
                (value, second) = frame;
                next = to;
            } else if pc == entry {
                if !covered(base, limit, fp, PAIR) {
                    wanted = fp;
                    break;
                }
                let at = fp.wrapping_sub(base);
                if fp.wrapping_sub(sp) > MAX_FRAME_BYTES || fp & 7 != 0 || at > LAST_PAIR {
                    break;
                }
                let (saved_fp, return_address) = pair_at(scratch, at);
                let return_address = code_address(return_address);
                if !is_user_address(return_address) {
                    break;
                }
                (value, second) = (pc, JavaFrameTag::Stub.word() | RETURN_ADDRESS);
                next = (return_address, fp + PAIR, saved_fp);
            } else {
                let cursor = (*own).cursor;
                let (bytes, told) = match banks.find(own, (*own).mask, pc, sp) {
                    Some((bytes, word)) if (*own).jvm.believed != 0 => (bytes, from_bank(word)),
                    _ => {
                        let Some(rule) = cache::fresh(pc, incarnation, now) else { break };
                        if rule.what >> 56 != Kind::Whole as u64 {
                            break;
                        }
                        ((rule.how >> 32 & 0xffff) * 8, kind_and_id(rule.what, rule.how))
                    }
                };
                let address = sp.wrapping_add(bytes).wrapping_sub(PAIR);
                if !covered(base, limit, address, PAIR) {
                    // The frame is looked at once more then.
                    (*own).cursor = cursor;
                    wanted = address;
                    break;
                }
                let at = address.wrapping_sub(base);
                if at > LAST_PAIR {
                    break;
                }
                let (saved_fp, return_address) = pair_at(scratch, at);
                let return_address = code_address(return_address);
                if return_address < low || return_address >= high {
                    break;
                }
                banks.keep(own, (*own).mask, (pc, sp), bytes, to_bank(told));
                (value, second) = (pc, told | RETURN_ADDRESS);
                next = (return_address, sp + bytes, saved_fp);
            }
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(at_most::<LAST_FRAME>(words));
            frame.write(value);
            frame.add(1).write(second);
            hash = mix_frame(hash, value, second);
            words += 2;
            frames += 1;
            (pc, sp, fp) = next;
            other = false;
            if pc < low || pc >= high {
                break;
            }
        }
        let walk = &mut (*scratch).walk;
        (walk.pc, walk.sp, walk.fp) = (pc, sp, fp);
        (walk.hash, walk.words, walk.frames) = (hash, words, frames);
        other && (wanted == 0 || !fetch(scratch, wanted, slots::SLOTS_BYTES))
    }
}

/// Second word of a frame, without flags.
#[inline(always)]
fn kind_and_id(what: u64, how: u64) -> u64 {
    how & 0xffff_ffff | (what >> 48 & 0xff) << 32 | RUNTIME
}

/// The same of a compiled frame or a stub, as the banks keep it: a compile id, and whether it is a stub.
#[inline(always)]
fn to_bank(second: u64) -> u64 {
    second & 0xffff_ffff | (second >> 33 & 1) << 32
}

/// And back.
#[inline(always)]
fn from_bank(word: u64) -> u64 {
    let tag = JavaFrameTag::Compiled as u64 + (word >> 31 & 2);
    word & 0xffff_ffff | tag << 32 | RUNTIME
}

/// One step, of any kind; false at the end.
#[inline(never)]
unsafe fn step(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        if walk.leaf == 0 || !leaves::find(scratch) {
            let walk = &(*scratch).walk;
            if walk.leaf == 0 && walk.pc == walk.jvm.barrier {
                return search::continuation(scratch);
            }
            if !rule(scratch) {
                return lost(scratch, (*scratch).walk.end);
            }
            let what = (*scratch).rule.what >> 56;
            if what == Kind::Interpreted as u64 {
                return interp::caller(scratch);
            }
            if what == Kind::InterpretedLeaf as u64 {
                return interp::leaf(scratch);
            }
            if what == Kind::Deoptimized as u64 {
                return frames::deoptimized(scratch);
            }
        }
        let what = (*scratch).rule.what >> 56;
        let rule = &(*scratch).rule;
        let second = kind_and_id(rule.what, rule.how);
        if what == Kind::Whole as u64
            && (*scratch).walk.leaf == 0
            && let Some(banks) = Banks::of(&(*scratch).walk)
        {
            let walk: *mut Walk = addr_of_mut!((*scratch).walk);
            let frame = ((*walk).pc, (*walk).sp);
            banks.keep(walk, (*walk).mask, frame, frames::frame_bytes(scratch), to_bank(second));
        }
        let second = second | returned(scratch);
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
pub unsafe fn rule(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let key = cache::key_of_pc(&(*scratch).walk);
        if cache::find(scratch, key) {
            return true;
        }
        let Some(jvm) = JVMS.get_ptr_mut((*scratch).walk.pid as u32) else {
            (*scratch).walk.end = StackEnd::JvmNotReady as u64;
            return false;
        };
        if !blob::resolve(scratch, jvm) {
            return false;
        }
        if let Some((low, high)) = blob::interpreter(scratch) {
            ((*jvm).interpreter_low, (*jvm).interpreter_high) = (low, high);
        }
        if (*scratch).walk.leaf != 0 && blob::makes_frame(scratch) {
            leaves::keep(scratch);
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
    // SAFETY: as above.
    unsafe {
        if push(scratch, (*scratch).walk.pc, JavaFrameTag::Stub.word() | returned(scratch)) {
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
