//! Where a frame has the return address and the caller's frame pointer, by an unwind rule.
//!
//! In: a rule's word, the frame's CFA, the walk's registers. Out: the caller's pc and fp. On architectures whose calls push
//! the return address, that is below the CFA; on those with a link register it is beside the caller's fp, alone at a place
//! of its own, or in the register still: there for the frame that was interrupted, and for no other.
#![allow(unsafe_code)]

use super::stack::{LAST_PAIR, PAIR, at_most, is_user_address, pair};
use super::{caller, ended};
use crate::maps::Scratch;
use core::ptr::addr_of_mut;
use profiler_ebpf::arch::{LINK_REGISTER, code_address};
use profiler_ebpf::{FpRule, ReturnRule, StackEnd};

/// Of a rule's word, with the bits of [`FpRule`] below: a frame record at the CFA and `fp_offset`.
const RECORD: u64 = FpRule::AtCfa as u64 | (ReturnRule::AboveFp as u64) << 4;
/// The same of a return address that was saved alone.
const ALONE: u64 = FpRule::Same as u64 | (ReturnRule::AtCfa as u64) << 4;
/// Bytes of a frame at least: the return address, where a call pushes it.
pub const LEAST_BYTES: u64 = if LINK_REGISTER { 0 } else { 8 };

/// The offset of a rule's word that is fp's or the return address's.
#[inline(always)]
pub const fn offset(rule: u64) -> u64 {
    (rule >> 16) as i16 as u64
}

/// The caller's pc and fp by a usual rule, when both are in the memory that was fetched and the pc may be one.
///
/// # Safety
/// `scratch` is this CPU's scratch; `base` and `limit` are its walk's.
#[inline(always)]
pub unsafe fn usual(
    scratch: *mut Scratch,
    rule: u64,
    (cfa, fp): (u64, u64),
    (base, limit): (u64, u64),
) -> Option<(u64, u64)> {
    // SAFETY: valid by contract; the index is checked.
    unsafe {
        let fetched = addr_of_mut!((*scratch).fetched).cast::<u8>();
        // With the place of the return address: any other is for `apply`.
        let saved = rule >> 8 & 0xff;
        if LINK_REGISTER {
            let at = cfa.wrapping_add(offset(rule)).wrapping_sub(base);
            if at > limit || at > LAST_PAIR || saved != RECORD && saved != ALONE {
                return None;
            }
            let words = fetched.add(at_most::<LAST_PAIR>(at)).cast::<u64>();
            let (first, second) = (words.read(), words.add(1).read());
            let (pc, fp) = if saved == RECORD { (second, first) } else { (first, fp) };
            let pc = code_address(pc);
            return is_user_address(pc).then_some((pc, fp));
        }
        let at = cfa.wrapping_sub(PAIR).wrapping_sub(base);
        if at > limit || at > LAST_PAIR {
            return None;
        }
        let pc = code_address(fetched.add(at_most::<LAST_PAIR>(at)).cast::<u64>().add(1).read());
        if !is_user_address(pc) {
            return None;
        }
        if saved == FpRule::AtCfa as u64 {
            let slot = cfa.wrapping_add(offset(rule)).wrapping_sub(base);
            if slot > limit || slot > LAST_PAIR {
                return None;
            }
            return Some((pc, fetched.add(at_most::<LAST_PAIR>(slot)).cast::<u64>().read()));
        }
        (saved == FpRule::Same as u64).then_some((pc, fp))
    }
}

/// Goes to the caller by a rule of an architecture with a link register; false at the end.
///
/// # Safety
/// As for [`usual`].
#[inline(always)]
pub unsafe fn by_link(scratch: *mut Scratch, rule: u64, cfa: u64) -> bool {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let (fp, leaf) = (walk.fp, walk.leaf);
        let place = rule >> 12 & 0xf;
        let has_fp = rule >> 8 & 0xf == FpRule::AtCfa as u64;
        let in_register = place == ReturnRule::Link as u64;
        if in_register && leaf == 0 || place == ReturnRule::BelowCfa as u64 {
            // A function that has called has saved it.
            return ended(scratch, StackEnd::BadNativeFrame);
        }
        let (mut first, mut second) = (fp, 0);
        if has_fp || !in_register {
            let Some(words) = pair(scratch, cfa.wrapping_add(offset(rule))) else {
                return ended(scratch, StackEnd::ReadFailed);
            };
            (first, second) = words;
        }
        let caller_fp = if has_fp { first } else { fp };
        let pc = if in_register {
            (*scratch).walk.registers.link()
        } else if place == ReturnRule::AboveFp as u64 {
            code_address(second)
        } else {
            code_address(first)
        };
        on(scratch, pc, cfa, caller_fp)
    }
}

/// On to the caller, unless its address is none.
///
/// # Safety
/// As for [`usual`].
#[inline(always)]
pub unsafe fn on(scratch: *mut Scratch, pc: u64, sp: u64, fp: u64) -> bool {
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
