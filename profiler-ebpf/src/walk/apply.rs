//! Goes from a native frame to its caller's by an unwind rule.
//!
//! In: the scratch's rule and the walk's registers, the frame itself already told. Out: the caller's registers, or an end.
//! Only sp and fp are followed; behind a signal's frame all registers that the walk knows are there again.
#![allow(unsafe_code)]

use super::saved::{LEAST_BYTES, by_link, offset, on};
use super::stack::{PAIR, at_most, is_user_address, offset_of, pair};
use super::{MAX_FRAME_BYTES, ended};
use crate::maps::{FETCH_BYTES, Scratch};
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::{self, SIGNAL_BELOW, SIGNAL_BYTES, code_address};
use profiler_ebpf::{CfaRule, FpRule, StackEnd};

/// Where in `fetched` the last place for a signal's registers is.
const LAST_SIGNAL: u64 = FETCH_BYTES as u64 - SIGNAL_BYTES;

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
        let from_base = ((rule as i64) >> 32) as u64;
        if kind == CfaRule::Signal as u64 {
            return interrupted(scratch, sp.wrapping_add(from_base));
        }
        let cfa = if kind == CfaRule::Sp as u64 {
            sp.wrapping_add(from_base)
        } else if kind == CfaRule::Fp as u64 {
            fp.wrapping_add(from_base)
        } else if kind == CfaRule::Plt as u64 {
            let pushed = if pc & 15 >= rule >> 16 & 0xffff { 8 } else { 0 };
            sp.wrapping_add(from_base).wrapping_add(pushed)
        } else if kind == CfaRule::AtSp as u64 || kind == CfaRule::AtFp as u64 {
            let at = if kind == CfaRule::AtSp as u64 { sp } else { fp };
            let Some((cfa, _)) = pair(scratch, at.wrapping_add(from_base)) else {
                return ended(scratch, StackEnd::ReadFailed);
            };
            cfa
        } else {
            // A mark, wherever this stack lies: not the frame pointer's two zeros, which may be by chance.
            let end = if kind == CfaRule::End as u64 { StackEnd::Root } else { StackEnd::RuleNotSupported };
            (*scratch).walk.marked = u64::from(kind == CfaRule::End as u64);
            return ended(scratch, end);
        };
        if cfa.wrapping_sub(sp).wrapping_sub(LEAST_BYTES) > MAX_FRAME_BYTES || cfa & 7 != 0 {
            return ended(scratch, StackEnd::BadNativeFrame);
        }
        if arch::LINK_REGISTER {
            return by_link(scratch, rule, cfa);
        }
        let saved = rule >> 8 & 0xf;
        let mut caller_fp = fp;
        if kind != CfaRule::Plt as u64 && saved != FpRule::Same as u64 {
            let from = if saved == FpRule::AtCfa as u64 { cfa } else { fp };
            let Some((found, _)) = pair(scratch, from.wrapping_add(offset(rule))) else {
                return ended(scratch, StackEnd::ReadFailed);
            };
            caller_fp = found;
        }
        let Some((_, return_address)) = pair(scratch, cfa.wrapping_sub(PAIR)) else {
            return ended(scratch, StackEnd::ReadFailed);
        };
        on(scratch, code_address(return_address), cfa, caller_fp)
    }
}

/// On to the code that a signal interrupted, which is as good as the walk's first: its registers are all there.
#[inline(never)]
unsafe fn interrupted(scratch: *mut Scratch, at: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        // All of them at once: a way through the walk with many reads takes much of the program's stack.
        let first = offset_of(scratch, at.wrapping_sub(SIGNAL_BELOW), SIGNAL_BYTES);
        if first > LAST_SIGNAL {
            return ended(scratch, StackEnd::ReadFailed);
        }
        let fetched = addr_of_mut!((*scratch).fetched).cast::<u8>();
        let words = fetched.add(at_most::<LAST_SIGNAL>(first)).cast::<u64>();
        let start = arch::interrupted(|bytes| words.add(bytes as usize / 8).read());
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
