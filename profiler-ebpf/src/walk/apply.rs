//! Goes from a native frame to its caller's by an unwind rule.
//!
//! In: the scratch's rule and the walk's registers, the frame itself already told. Out: the caller's registers, or an end.
//! Only sp and fp are followed; behind a signal's frame all registers that the walk knows are there again.
#![allow(unsafe_code)]

use super::stack::{PAIR, is_user_address, pair};
use super::{MAX_FRAME_BYTES, caller, ended};
use crate::maps::Scratch;
use profiler_ebpf::arch::{self, code_address};
use profiler_ebpf::{CfaRule, FpRule, StackEnd};

/// Of a rule's word: the bits of [`profiler_ebpf::ReturnRule`], 0 for [`profiler_ebpf::ReturnRule::BelowCfa`].
const ELSEWHERE: u64 = 0xf << 12;

/// Goes to the caller by the scratch's rule; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn apply(scratch: *mut Scratch) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let rule = (*scratch).rule.how;
        let walk = &(*scratch).walk;
        let (pc, sp, fp) = (walk.pc, walk.sp, walk.fp);
        let kind = rule & 0xff;
        let offset = ((rule as i64) >> 32) as u64;
        if kind == CfaRule::Signal as u64 {
            return interrupted(scratch, sp.wrapping_add(offset));
        }
        let cfa = if kind == CfaRule::Sp as u64 {
            sp.wrapping_add(offset)
        } else if kind == CfaRule::Fp as u64 {
            fp.wrapping_add(offset)
        } else if kind == CfaRule::Plt as u64 {
            let pushed = if pc & 15 >= rule >> 16 & 0xffff { 8 } else { 0 };
            sp.wrapping_add(offset).wrapping_add(pushed)
        } else if kind == CfaRule::AtSp as u64 || kind == CfaRule::AtFp as u64 {
            let at = if kind == CfaRule::AtSp as u64 { sp } else { fp };
            let Some((cfa, _)) = pair(scratch, at.wrapping_add(offset)) else {
                return ended(scratch, StackEnd::ReadFailed);
            };
            cfa
        } else {
            // A mark, wherever this stack lies: not the frame pointer's two zeros, which may be by chance.
            let end = if kind == CfaRule::End as u64 { StackEnd::Root } else { StackEnd::RuleNotSupported };
            (*scratch).walk.marked = u64::from(kind == CfaRule::End as u64);
            return ended(scratch, end);
        };
        if cfa.wrapping_sub(sp).wrapping_sub(8) > MAX_FRAME_BYTES || cfa & 7 != 0 {
            return ended(scratch, StackEnd::BadNativeFrame);
        }
        if arch::LINK_REGISTER && rule & ELSEWHERE != 0 {
            return ended(scratch, StackEnd::ArchUnsupported);
        }
        let saved = rule >> 8 & 0xf;
        let mut caller_fp = fp;
        if kind != CfaRule::Plt as u64 && saved != FpRule::Same as u64 {
            let from = if saved == FpRule::AtCfa as u64 { cfa } else { fp };
            let Some((found, _)) = pair(scratch, from.wrapping_add((rule >> 16) as i16 as u64)) else {
                return ended(scratch, StackEnd::ReadFailed);
            };
            caller_fp = found;
        }
        let Some((_, return_address)) = pair(scratch, cfa.wrapping_sub(PAIR)) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        goes_on(scratch, code_address(return_address), cfa, caller_fp)
    }
}

/// On to the caller, unless its address is none.
#[inline(always)]
unsafe fn goes_on(scratch: *mut Scratch, pc: u64, sp: u64, fp: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        if !is_user_address(pc) {
            // A thread's first function that has no mark has a zero above it; whether it is the root is told by
            // where the stack ends.
            (*scratch).walk.sp = sp;
            return ended(scratch, if pc == 0 { StackEnd::Root } else { StackEnd::BadNativeFrame });
        }
        caller(scratch, pc, sp, fp)
    }
}

/// On to the code that a signal interrupted, which is as good as the walk's first: its registers are all there.
#[inline(never)]
unsafe fn interrupted(scratch: *mut Scratch, at: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let Some(start) = arch::interrupted(at, |address| pair(scratch, address)) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        if !is_user_address(start.pc) || !is_user_address(start.sp) {
            return ended(scratch, StackEnd::BadNativeFrame);
        }
        // No check that the stack grows: a handler may have a stack of its own.
        let walk = &mut (*scratch).walk;
        (walk.pc, walk.sp, walk.fp, walk.leaf) = (start.pc, start.sp, start.fp, 1);
        walk.registers = start.registers;
        true
    }
}
