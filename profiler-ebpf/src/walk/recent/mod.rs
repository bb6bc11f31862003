//! What the last walk of each thread found: its process's code, the number of its name, and its frames.
//!
//! In: a thread and the time. Out: what a walk needs before its first step, and the rules of frames that are still
//! where they were. Looking each of sixty return addresses up in `CODE` is sixty lines of cold memory; a thread's
//! last frames lie one behind the other. Slots by a hash of the tid, a page each; two threads that meet in one only
//! take it from each other.
//!
//! A frame of a runtime is believed for as long as the runtime says (HotSpot's compiled ones while the JVM has neither unloaded
//! a class nor finished compiling, at most a second); a native one as long as the process has the same tables.
#![allow(unsafe_code)]

mod banks;

use super::cache::UNIT_SHIFT;
use super::state::Walk;
use super::table::List;
use super::{hotspot, runtime};
use crate::maps::{RECENT, RECENT_SLOTS, Scratch};
use crate::threads;
use banks::{FRAMES, Frame};
use core::ptr::addr_of_mut;

pub use banks::Banks;

/// How long it is believed that a process has no runtime, or one that is not settled, in units of 2^20 ns: the daemon may
/// have learned of it.
const LOOKED: u64 = 256;
/// How long a runtime's layout is believed: the daemon completes a JVM's some seconds after the JVM's start.
const KNOWN: u64 = 1000;
/// Bits of a user address.
pub const ADDRESS: u64 = 0xffff_ffff_ffff;

/// Of a thread.
#[repr(C)]
pub struct Slot {
    /// The tid in the upper half, the number of its name in the lower. 0: nobody's.
    named: u64,
    /// The pid in the upper half, the layout's incarnation in the lower.
    of: u64,
    /// The process's runtime, and the code that it steps through.
    pub(super) runtime: u64,
    low: u64,
    high: u64,
    /// Over these, what the runtime keeps and the tid.
    check: u64,
    /// When they were looked up.
    looked: u64,
    /// Frames in the bank that was written last; which bank that is in bit 32.
    held: u64,
    /// HotSpot's part.
    pub(super) jvm: hotspot::Slot,
    /// The process's list, unless it was made for another.
    list: List,
    /// The range in it that was found last.
    range: u64,
    banks: [[Frame; FRAMES]; 2],
}

const _: () = assert!(size_of::<Slot>() <= 4096);

#[inline(always)]
fn slot_of(tid: u32) -> u32 {
    tid.wrapping_mul(0x9e37_79b1) >> (32 - RECENT_SLOTS.trailing_zeros())
}

/// The current thread's name has this number from now on.
#[inline(always)]
pub fn renamed(tid: u32, number: u32) {
    if let Some(slot) = RECENT.get_ptr_mut(slot_of(tid)) {
        // SAFETY: in the map; both halves of the word are written at once.
        unsafe {
            if (*slot).named >> 32 == u64::from(tid) {
                (*slot).named = u64::from(tid) << 32 | u64::from(number);
            }
        }
    }
}

/// The thread is gone, or its program.
#[inline(always)]
pub fn forget(tid: u32) {
    if let Some(slot) = RECENT.get_ptr_mut(slot_of(tid)) {
        // SAFETY: in the map; the word is written whole.
        unsafe {
            if (*slot).named >> 32 == u64::from(tid) {
                (*slot).named = 0;
            }
        }
    }
}

#[inline(always)]
unsafe fn check(slot: *const Slot, tid: u32) -> u64 {
    // SAFETY: in the map.
    unsafe {
        mask((*slot).of, tid)
            ^ (*slot).low.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ (*slot).high.wrapping_mul(0x1656_67b1_9e37_79f9)
            ^ (*slot).runtime.wrapping_mul(0x94d0_49bb_1331_11eb)
            ^ (*slot).jvm.folded()
            ^ (*slot).list.ranges.wrapping_mul(0xa076_1d64_78bd_642f)
            ^ (*slot).list.of.wrapping_mul(0x9fb2_1c65_1e98_df27)
    }
}

#[inline(always)]
fn mask(of: u64, tid: u32) -> u64 {
    (of ^ u64::from(tid)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Before a thread's walk: whose code there is, and which of the last walk's frames may be believed.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn begin(scratch: *mut Scratch, pid: u32, tid: u32, now_ns: u64) {
    let now = now_ns >> UNIT_SHIFT;
    // SAFETY: valid by contract; the verifier checks each access.
    unsafe {
        let walk = &mut (*scratch).walk;
        walk.slot = u64::from(slot_of(tid));
        let Some(slot) = RECENT.get_ptr_mut(walk.slot as u32) else { return };
        if (*slot).named >> 32 != u64::from(tid)
            || (*slot).of >> 32 != u64::from(pid)
            || (*slot).check != check(slot, tid)
            || now.wrapping_sub((*slot).looked) > if runtime::is_settled(slot) { KNOWN } else { LOOKED }
        {
            look_up(slot, pid, tid, now);
        }
        walk.range = (*slot).range;
        if !(*slot).list.taken(walk) {
            let list = List::of_process(pid);
            (*slot).list = if list.taken(walk) && !list.is_inherited() { list } else { List::NONE };
            (*slot).check = check(slot, tid);
        }
        walk.name_seq = (*slot).named & 0xffff_ffff;
        (walk.runtime, walk.low, walk.high) = ((*slot).runtime, (*slot).low, (*slot).high);
        walk.incarnation = (*slot).of & 0xffff_ffff;
        walk.pid = u64::from(pid);
        walk.now = now & 0xffff_ffff;
        walk.mask = mask((*slot).of, tid);
        let held = (*slot).held;
        walk.bank = held >> 32 & 1;
        walk.count = held & 0xff;
        if walk.count > FRAMES as u64 {
            walk.count = 0;
        }
        (walk.cursor, walk.kept) = (0, 0);
        // All of them at once: memory is slow, and many reads take no longer than one.
        let bank = addr_of_mut!((*slot).banks).cast::<Frame>().add(FRAMES * walk.bank as usize);
        for line in 0..FRAMES / 4 {
            if line as u64 * 4 >= walk.count {
                break;
            }
            core::ptr::read_volatile(bank.add(line * 4).cast::<u64>());
        }
        if walk.low != 0 {
            runtime::begin(walk, slot, now);
        }
    }
}

/// Makes the slot the thread's.
#[inline(never)]
unsafe fn look_up(slot: *mut Slot, pid: u32, tid: u32, now: u64) {
    // SAFETY: in the map.
    unsafe {
        let (runtime, head) = runtime::look_up(slot, pid);
        let of = u64::from(pid) << 32 | u64::from(head.incarnation);
        if (*slot).named >> 32 != u64::from(tid) || (*slot).of != of {
            (*slot).held = 0;
            (*slot).jvm.clear(now);
        }
        (*slot).named = u64::from(tid) << 32 | u64::from(threads::number_of(tid));
        (*slot).of = of;
        ((*slot).runtime, (*slot).low, (*slot).high) = (runtime, head.low, head.high);
        (*slot).list = List::NONE;
        (*slot).check = check(slot, tid);
        (*slot).looked = now;
    }
}

/// After the walk: what it met is what the next one finds.
///
/// # Safety
/// As for [`begin`].
#[inline(always)]
pub unsafe fn end(walk: &Walk) {
    if let Some(slot) = RECENT.get_ptr_mut(walk.slot as u32) {
        // SAFETY: in the map.
        unsafe {
            (*slot).range = walk.range;
            (*slot).held = walk.kept | (walk.bank ^ 1) << 32;
        }
    }
}
