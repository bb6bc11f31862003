//! Steps through native code by the unwind tables of its files.
//!
//! In: the walk's registers, and the tables that the daemon built from .eh_frame. Out: frames, until code of another
//! kind or an end. Rules of frames that the thread's last walk met lie one behind the other (`recent`), one that the cache
//! has costs a cache line; else it is searched (`rows`). Addresses without a
//! table go by frame pointer, a frame at a time, and if that leads nowhere the walk ends with the reason why there
//! was none. Registers other than sp and fp are not followed.
#![allow(unsafe_code)]

use super::apply::apply;
use super::recent::Banks;
use super::rows::{self, NATIVE, find};
use super::saved::{LEAST_BYTES, usual};
use super::stack::at_most;
use super::state::Walk;
use super::{
    GUESSED, LAST_FRAME, MAX_FRAME_BYTES, RETURN_ADDRESS, STEPS_A_ROUND, cache, mix_frame, native, push,
};
use crate::maps::{PROCESSES, RULES, Scratch};
use core::ptr::addr_of_mut;
use profiler_ebpf::{CfaRule, ProcessTables, STAMP_WORDS, StackEnd};

/// Number of the rule `Unsupported`, the first that the daemon tells.
const UNSUPPORTED: u32 = 1;

/// No tables, nothing met.
#[inline(always)]
pub fn begin(walk: &mut Walk) {
    (walk.ranges, walk.untabled, walk.marked) = (0, 0, 0);
}

/// The list of a process's code; no ranges: it has none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct List {
    /// Its address; its ranges in the upper half.
    pub ranges: u64,
    /// The incarnation; the stamp in the upper half.
    pub of: u64,
}

impl List {
    /// No list.
    pub const NONE: Self = Self { ranges: 0, of: 0 };

    /// Of a process.
    #[inline(always)]
    pub fn of_process(pid: u32) -> Self {
        let Some(tables) = PROCESSES.get_ptr(pid) else { return Self::NONE };
        // SAFETY: an entry of the map; each word is read whole.
        let tables = unsafe { tables.read() };
        Self {
            ranges: u64::from(tables.list) | u64::from(tables.ranges) << 32,
            of: u64::from(tables.incarnation) | u64::from(tables.stamp) << 32,
        }
    }

    /// Whether it was made for another process.
    #[inline(always)]
    pub fn is_inherited(self) -> bool {
        self.ranges >> 32 & u64::from(ProcessTables::INHERITED) != 0
    }

    /// Takes it for a walk, unless it is given up; whether it is one.
    #[inline(always)]
    pub fn taken(self, walk: &mut Walk) -> bool {
        let ranges = self.ranges >> 32 & !u64::from(ProcessTables::INHERITED);
        let stamp = (self.ranges as u32).wrapping_sub(STAMP_WORDS);
        if ranges == 0 || rows::word(stamp) != Some((self.of >> 32) as u32) {
            return false;
        }
        (walk.list, walk.ranges, walk.tables) = (self.ranges & 0xffff_ffff, ranges, self.of & 0xffff_ffff);
        true
    }
}

/// A walk that a frame pointer ended says why there was no table for it.
#[inline(always)]
pub fn told<const LOOP: bool>(walk: &mut Walk) {
    if walk.end != StackEnd::NoFramePointer as u64 && walk.end != StackEnd::BadReturnAddress as u64 {
        return;
    }
    if walk.untabled != 0 {
        walk.end = walk.untabled;
    } else if LOOP && walk.ranges == 0 && matches!(RULES.get(UNSUPPORTED), Some(rule) if *rule != 0) {
        // The daemon makes tables, and this process has none yet.
        walk.end = StackEnd::TableNotReady as u64;
    }
}

/// Some steps; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe { if known(scratch) { step(scratch) } else { true } }
}

/// Steps by rules that the last walk met or the cache has, with the state in registers; whether it met something else. A function of its own:
/// what it needs of the program's stack is not there for those that are called after it.
#[inline(never)]
unsafe fn known(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &mut (*scratch).walk;
        if walk.guessed != 0 {
            return true;
        }
        let (mut pc, mut sp, mut fp, mut leaf) = (walk.pc, walk.sp, walk.fp, walk.leaf);
        let (mut hash, mut words, mut frames) = (walk.hash, walk.words, walk.frames);
        let (low, high) = (walk.low, walk.high);
        let (base, limit) = (walk.base, walk.limit);
        let own: *mut Walk = addr_of_mut!((*scratch).walk);
        let Some(banks) = Banks::of(walk) else { return true };
        let mut other = false;
        for _ in 0..STEPS_A_ROUND {
            other = true;
            let found = if leaf != 0 { None } else { banks.find(own, native_mask(own), pc, sp) };
            let rule = match found {
                Some((bytes, low)) => bytes << 32 | low & 0xffff_ffff,
                None => match cache::fresh(looked_up(pc, leaf), (*own).tables, (*own).now) {
                    Some(rule) if rule.what == NATIVE => rule.how,
                    _ => break,
                },
            };
            let kind = rule & 0xff;
            if kind == 0 || kind > CfaRule::Fp as u64 {
                break;
            }
            let from = if kind == CfaRule::Sp as u64 { sp } else { fp };
            let cfa = from.wrapping_add(((rule as i64) >> 32) as u64);
            if cfa.wrapping_sub(sp).wrapping_sub(LEAST_BYTES) > MAX_FRAME_BYTES || cfa & 7 != 0 {
                break;
            }
            let Some((return_address, caller_fp)) = usual(scratch, rule, (cfa, fp), (base, limit)) else {
                break;
            };
            if frames >= (*own).most || words > LAST_FRAME {
                break;
            }
            if leaf == 0 {
                keep(banks, own, (pc, sp), rule);
            }
            let second = if leaf != 0 { 0 } else { RETURN_ADDRESS };
            let frame = addr_of_mut!((*scratch).body).cast::<u64>().add(at_most::<LAST_FRAME>(words));
            frame.write(pc);
            frame.add(1).write(second);
            hash = mix_frame(hash, pc, second);
            words += 2;
            frames += 1;
            (pc, sp, fp, leaf) = (return_address, cfa, caller_fp, 0);
            other = false;
            if pc >= low && pc < high {
                break;
            }
        }
        let walk = &mut (*scratch).walk;
        (walk.pc, walk.sp, walk.fp, walk.leaf) = (pc, sp, fp, leaf);
        (walk.hash, walk.words, walk.frames) = (hash, words, frames);
        other
    }
}

/// What native frames of a thread are mixed with: those of other code than the process has now are not found.
#[inline(always)]
unsafe fn native_mask(walk: *const Walk) -> u64 {
    // SAFETY: this CPU's walk.
    unsafe { (*walk).mask ^ (*walk).tables.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) }
}

/// Keeps a frame for the next walk, if its rule has room there: of the usual kinds, and half a megabyte.
#[inline(always)]
unsafe fn keep(banks: Banks, walk: *mut Walk, frame: (u64, u64), rule: u64) {
    let bytes = rule >> 32;
    if bytes & 7 == 0 && bytes >> 19 == 0 {
        // SAFETY: this CPU's walk.
        unsafe { banks.keep(walk, native_mask(walk), frame, bytes, rule & 0xffff_ffff) };
    }
}

/// The address whose rule holds: that of the call, not where it returns to, which may be another function.
#[inline(always)]
fn looked_up(pc: u64, leaf: u64) -> u64 {
    if leaf != 0 { pc } else { pc.wrapping_sub(1) }
}

/// One step, of any kind; false at the end.
#[inline(never)]
unsafe fn step(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (pc, leaf) = (walk.pc, walk.leaf);
        let address = looked_up(pc, leaf);
        let incarnation = walk.tables;
        match cache::fresh(address, incarnation, walk.now) {
            Some(rule) if rule.what == NATIVE => (*scratch).rule = rule,
            _ => {
                let why = find(scratch, address);
                if why != 0 {
                    (*scratch).walk.untabled = why;
                    return native::steps::<1>(scratch, (*scratch).walk.most);
                }
                cache::keep_of(scratch, address, incarnation);
            }
        }
        let rule = (*scratch).rule.how;
        if leaf == 0
            && rule & 0xff <= CfaRule::Fp as u64
            && let Some(banks) = Banks::of(&(*scratch).walk)
        {
            let walk: *mut Walk = addr_of_mut!((*scratch).walk);
            keep(banks, walk, (pc, (*walk).sp), rule);
        }
        let second = if leaf != 0 { 0 } else { RETURN_ADDRESS };
        push(scratch, pc, second | (*scratch).walk.guessed & GUESSED) && apply(scratch)
    }
}
