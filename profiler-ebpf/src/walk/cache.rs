//! What was found out about a pc, for the next time.
//!
//! In: incarnation, pc, and whether it was interrupted there. Out: a [`Rule`], without any read of user memory.
//! Sets of two entries in an array, a cache line each. An interrupted pc differs from sample to sample: what method
//! a thread was interrupted in is kept with the thread (`recent`).
//!
//! Code of a runtime can be freed and its memory used again (`runtime::may_go`: HotSpot's nmethods). So an entry of such is
//! believed for [`FRESH`] (50 ms); then the runtime looks whether the code is there still. What slips through is code that was freed,
//! made anew and reached again at the very same return address within that time: its frame would be taken for one
//! of the code that was there before.
#![allow(unsafe_code)]

use super::runtime;
use super::state::{Rule, Walk};
use crate::maps::{CODE, CODE_SETS, Scratch};

/// Of an entry's time: 2^20 ns each.
pub const UNIT_SHIFT: u32 = 20;
/// How long an entry is believed.
pub const FRESH: u32 = 48;

/// An entry: the key mixed with the other words, so that what two CPUs wrote at once or one is writing is not
/// found, whichever words of it are whose.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    check: u64,
    what: u64,
    how: u64,
    /// Incarnation; when it was last known to hold in the upper half.
    of: u64,
}

/// A set.
pub type Set = [Entry; 2];

/// Three words in one.
#[inline(always)]
pub fn folded(what: u64, how: u64, of: u64) -> u64 {
    what.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ how.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ of.wrapping_mul(0x1656_67b1_9e37_79f9)
}

#[inline(always)]
fn set_of(key: u64, incarnation: u64) -> Option<*mut Entry> {
    let hash = (key ^ incarnation << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    CODE.get_ptr_mut(hash as u32 & (CODE_SETS - 1)).map(|set| set.cast::<Entry>())
}

/// What is known of a return address, if it need not be checked.
#[inline(always)]
pub fn fresh(pc: u64, incarnation: u64, now: u64) -> Option<Rule> {
    let set = set_of(pc, incarnation)?;
    for way in 0..2 {
        // SAFETY: within the set; the verifier checks.
        let entry = unsafe { set.add(way).read() };
        if entry.check ^ folded(entry.what, entry.how, entry.of) == pc
            && entry.of as u32 == incarnation as u32
        {
            let rule = Rule { what: entry.what, how: entry.how };
            let old = runtime::may_go(&rule) && (now as u32).wrapping_sub((entry.of >> 32) as u32) > FRESH;
            return (!old).then_some(rule);
        }
    }
    None
}

/// The key of the walk's pc: a return address, or the interrupted one. No user address has the highest bits.
#[inline(always)]
pub fn key_of_pc(walk: &Walk) -> u64 {
    walk.pc | walk.leaf << 63
}

/// Puts what is known under a key into the scratch's rule; whether anything is.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(never)]
pub unsafe fn find(scratch: *mut Scratch, key: u64) -> bool {
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &(*scratch).walk;
        let Some(set) = set_of(key, walk.incarnation) else { return false };
        for way in 0..2 {
            let entry = set.add(way).read();
            if entry.check ^ folded(entry.what, entry.how, entry.of) != key
                || entry.of as u32 != walk.incarnation as u32
            {
                continue;
            }
            let rule = Rule { what: entry.what, how: entry.how };
            if runtime::may_go(&rule) && (walk.now as u32).wrapping_sub((entry.of >> 32) as u32) > FRESH {
                if !runtime::is_there(scratch, &rule) {
                    return false;
                }
                write(set.add(way), key, entry.what, entry.how, &(*scratch).walk);
            }
            (*scratch).rule = rule;
            return true;
        }
        false
    }
}

/// Keeps the scratch's rule under a key.
///
/// # Safety
/// As for [`find`].
#[inline(never)]
pub unsafe fn keep(scratch: *mut Scratch, key: u64) {
    // SAFETY: as above.
    unsafe {
        let walk = &(*scratch).walk;
        let Some(set) = set_of(key, walk.incarnation) else { return };
        // The older of the two goes.
        let (first, second) = ((*set).of >> 32, (*set.add(1)).of >> 32);
        let way = usize::from(
            (walk.now as u32).wrapping_sub(second as u32) > (walk.now as u32).wrapping_sub(first as u32),
        );
        write(set.add(way & 1), key, (*scratch).rule.what, (*scratch).rule.how, walk);
    }
}

/// Keeps a rule that never changes under a key and an incarnation of its own.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub unsafe fn keep_of(scratch: *mut Scratch, key: u64, incarnation: u64) {
    // SAFETY: as above.
    unsafe {
        let jvm = (*scratch).walk.incarnation;
        (*scratch).walk.incarnation = incarnation;
        keep(scratch, key);
        (*scratch).walk.incarnation = jvm;
    }
}

#[inline(always)]
unsafe fn write(entry: *mut Entry, key: u64, what: u64, how: u64, walk: &Walk) {
    let of = walk.incarnation | (walk.now & 0xffff_ffff) << 32;
    // SAFETY: the caller's entry; words are written whole.
    unsafe { entry.write(Entry { check: key ^ folded(what, how, of), what, how, of }) };
}
