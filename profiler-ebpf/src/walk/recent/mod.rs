//! What the last walk of each thread found: its JVM's code, the number of its name, and its compiled frames.
//!
//! In: a thread and the time. Out: what a walk needs before its first step, and the rules of frames that are still
//! where they were. Looking each of sixty return addresses up in `CODE` is sixty lines of cold memory; a thread's
//! last frames lie one behind the other. Slots by a hash of the tid, a page each; two threads that meet in one only
//! take it from each other.
//!
//! A frame is believed as long as the JVM has neither unloaded a class nor finished compiling since it was looked up
//! (it counts both), at most [`KEPT`] (a second). Of an interrupted method the compile id is read again each time.
#![allow(unsafe_code)]

mod banks;
mod leaves;

use super::cache::{FRESH, UNIT_SHIFT};
use super::interp;
use super::state::Walk;
use crate::maps::{JVMS, RECENT, RECENT_SLOTS, Scratch};
use crate::threads;
use aya_ebpf::helpers::bpf_probe_read_user;
use banks::{FRAMES, Frame};
use core::ptr::addr_of_mut;
use leaves::{LEAVES, Leaf};
use profiler_ebpf::JvmLayout;

pub use banks::Banks;
pub use leaves::{find as leaf, keep as keep_leaf};

/// How long a slot's layout and number are believed, in units of 2^20 ns: the daemon may have learned of the JVM.
const LOOKED: u64 = 256;
/// How long frames are believed at most.
const KEPT: u64 = 1000;
const ADDRESS: u64 = 0xffff_ffff_ffff;

/// Of a thread.
#[repr(C)]
pub struct Slot {
    /// The tid in the upper half, the number of its name in the lower. 0: nobody's.
    named: u64,
    /// The pid in the upper half, the layout's incarnation in the lower.
    of: u64,
    low: u64,
    high: u64,
    unloads_at: u64,
    compiles_at: u64,
    /// Over these and the tid.
    check: u64,
    /// When they were looked up.
    looked: u64,
    /// The frames held then, or later.
    verified: u64,
    /// Since when the JVM's count of compilations is `compiles`.
    since: u64,
    compiles: u64,
    unloads: u64,
    /// Frames in the bank that was written last; which bank that is in bit 32; the next leaf in bits 40 to 47.
    held: u64,
    /// The interpreter's first instruction, and in the upper half of the next word the bytes of its code. In the lower
    /// one the slot of the bytecode pointer in its frames, as the walk counts them, and from bit 8 on where a blob has
    /// its compile id.
    interpreter: u64,
    interpreter_len: u64,
    entry: u64,
    leaves: [Leaf; LEAVES],
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
            ^ (*slot).unloads_at.wrapping_mul(0xff51_afd7_ed55_8ccd)
            ^ (*slot).compiles_at.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
            ^ (*slot).interpreter.wrapping_mul(0x9fb2_1c65_1e98_df25)
            ^ (*slot).interpreter_len.wrapping_mul(0xd6e8_feb8_6659_fd93)
            ^ (*slot).entry.wrapping_mul(0x8ebc_6af0_9c88_c6e3)
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
            || now.wrapping_sub((*slot).looked) > LOOKED
        {
            look_up(slot, pid, tid, now);
        }
        walk.name_seq = (*slot).named & 0xffff_ffff;
        walk.low = (*slot).low;
        walk.high = (*slot).high;
        if walk.low == 0 {
            return;
        }
        walk.incarnation = (*slot).of & 0xffff_ffff;
        walk.pid = u64::from(pid);
        walk.now = now & 0xffff_ffff;
        walk.interpreter = (*slot).interpreter;
        walk.interpreter_len = (*slot).interpreter_len;
        walk.entry = (*slot).entry;
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
        walk.unloads = count((*slot).unloads_at);
        let verified = (*slot).verified;
        let age = now.wrapping_sub(verified);
        let compiles = count((*slot).compiles_at);
        if compiles != (*slot).compiles {
            ((*slot).compiles, (*slot).since) = (compiles, now);
        }
        let unchanged = (*slot).unloads == walk.unloads && (*slot).since <= verified;
        if !unchanged || compiles == 0 || age > KEPT {
            // What `CODE` says of a frame may be as old as that.
            (*slot).verified = now.wrapping_sub(u64::from(FRESH));
            (*slot).unloads = walk.unloads;
            walk.count = 0;
        }
    }
}

/// A count of the JVM's, and one; 0 where it cannot be read.
#[inline(always)]
unsafe fn count(address: u64) -> u64 {
    if address == 0 {
        return 0;
    }
    // SAFETY: a read that fails is an error value.
    unsafe { bpf_probe_read_user(address as *const u64) }.map_or(0, |count| count.wrapping_add(1))
}

/// Makes the slot the thread's.
#[inline(never)]
unsafe fn look_up(slot: *mut Slot, pid: u32, tid: u32, now: u64) {
    // SAFETY: in the map.
    unsafe {
        let jvm = JVMS.get_ptr(pid);
        let incarnation = jvm.map_or(0, |jvm| (*jvm).incarnation);
        let of = u64::from(pid) << 32 | u64::from(incarnation);
        if (*slot).named >> 32 != u64::from(tid) || (*slot).of != of {
            (*slot).held = 0;
            for i in 0..LEAVES {
                (*slot).leaves[i].len = 0;
            }
            (*slot).verified = 0;
            (*slot).since = now;
        }
        (*slot).named = u64::from(tid) << 32 | u64::from(threads::number_of(tid));
        (*slot).of = of;
        match jvm {
            Some(jvm) => {
                let jvm = &*jvm;
                ((*slot).low, (*slot).high) = (jvm.low, jvm.high);
                ((*slot).unloads_at, (*slot).compiles_at) = (jvm.unloads, jvm.compiles);
                ((*slot).interpreter, (*slot).interpreter_len) = interpreter(jvm);
                (*slot).entry = jvm.call_stub_return;
            }
            // The rest is not looked at then.
            None => ((*slot).low, (*slot).high) = (0, 0),
        }
        (*slot).check = check(slot, tid);
        (*slot).looked = now;
    }
}

/// Where the interpreter is, and how long, as a slot has it.
#[inline(always)]
fn interpreter(jvm: &JvmLayout) -> (u64, u64) {
    let len = jvm.interpreter_high.wrapping_sub(jvm.interpreter_low) & 0xffff_ffff;
    (jvm.interpreter_low, len << 32 | u64::from(jvm.compile_id.offset) << 8 | interp::bcp_slot(jvm))
}

/// After the walk: what it met is what the next one finds.
///
/// # Safety
/// As for [`begin`].
#[inline(always)]
pub unsafe fn end(walk: &Walk) {
    if walk.low != 0
        && let Some(slot) = RECENT.get_ptr_mut(walk.slot as u32)
    {
        // SAFETY: in the map.
        unsafe {
            let leaf = (*slot).held & 0xff << 40;
            (*slot).held = walk.kept | (walk.bank ^ 1) << 32 | leaf;
        }
    }
}
