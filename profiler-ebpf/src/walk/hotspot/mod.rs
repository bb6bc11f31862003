//! HotSpot: its compiled, interpreted and generated code, and the names of its threads.
//!
//! In: what the daemon tells of a JVM ([`maps`]), and the walk with a pc in its code heaps. Out: frames (`steps`) of kind
//! [`JavaFrameTag`], until code of another kind or an end; and, of a thread that waits, its lock (`locks`); and what a thread has allocated (`buffers`). This file is the room's door, for `walk::runtime` alone; what
//! is an architecture's is in files of its name, here and in `walk::leaf`.
#![allow(unsafe_code)]

#[cfg(emberscope_arch = "aarch64")]
mod aarch64;
mod blob;
mod buffers;
mod frameless;
mod frames;
mod interp;
mod leaves;
mod locks;
mod maps;
mod references;
mod search;
mod state;
mod steps;
mod thread_name;
#[cfg(emberscope_arch = "x86_64")]
mod x86_64;

#[cfg(emberscope_arch = "aarch64")]
use aarch64 as slots;
#[cfg(emberscope_arch = "x86_64")]
use x86_64 as slots;

use super::cache::FRESH;
use super::stack::read;
use super::state::{Rule, Walk};
use crate::maps::Scratch;
use aya_ebpf::helpers::bpf_probe_read_user;
use leaves::{LEAVES, Leaf};
use maps::JVMS;
use profiler_ebpf::{JavaFrameTag, JvmLayout, RuntimeHead};

pub use buffers::allocated;
pub use locks::{noted, tell};
pub use slots::CODE_BYTES;
pub use state::{Blob, HEAD_WORDS, Kind, Known};
pub use steps::steps;

/// How long frames of the last walk are believed at most, in units of 2^20 ns.
const KEPT: u64 = 1000;

/// What is kept of a thread of a JVM.
#[repr(C)]
pub struct Slot {
    known: Known,
    /// Where the JVM counts the classes that it has unloaded, and the compilations that it has finished.
    unloads_at: u64,
    compiles_at: u64,
    /// The frames held then, or later.
    verified: u64,
    /// Since when the JVM's count of compilations is `compiles`.
    since: u64,
    compiles: u64,
    unloads: u64,
    /// The methods that the thread was interrupted in, and which of them is written next.
    leaves: [Leaf; LEAVES],
    next_leaf: u64,
}

impl Slot {
    /// Whether the interpreter was met, which the walker finds itself.
    pub fn is_settled(&self) -> bool {
        self.known.interpreter != 0
    }

    /// Over what the walk takes from here.
    #[inline(always)]
    pub fn folded(&self) -> u64 {
        self.unloads_at.wrapping_mul(0xff51_afd7_ed55_8ccd)
            ^ self.compiles_at.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
            ^ self.known.interpreter.wrapping_mul(0x9fb2_1c65_1e98_df25)
            ^ self.known.places.0.wrapping_mul(0xd6e8_feb8_6659_fd93)
            ^ self.known.entry.wrapping_mul(0x8ebc_6af0_9c88_c6e3)
            ^ self.known.barrier.wrapping_mul(0xe703_7ed1_a0b4_28db)
    }

    /// For another thread, or another JVM.
    #[inline(always)]
    pub fn clear(&mut self, now: u64) {
        for i in 0..LEAVES {
            self.leaves[i].len = 0;
        }
        self.verified = 0;
        self.since = now;
    }
}

/// Takes a process's layout into the slot; None: it is no JVM.
#[inline(always)]
pub fn look_up(slot: &mut Slot, pid: u32) -> Option<RuntimeHead> {
    let Some(jvm) = JVMS.get_ptr(pid) else {
        // The rest is not looked at then.
        slot.known.interpreter = 0;
        return None;
    };
    // SAFETY: an entry of the map.
    let jvm: &JvmLayout = unsafe { &*jvm };
    (slot.unloads_at, slot.compiles_at) = (jvm.unloads, jvm.compiles);
    slot.known.interpreter = jvm.interpreter_low;
    slot.known.places = state::Places::of(jvm, slots::bcp_slot(jvm));
    slot.known.entry = jvm.call_stub_return;
    slot.known.barrier = jvm.cont_return_barrier;
    Some(jvm.head)
}

/// What the walk needs of the JVM, and whether the last walk's frames may be believed.
///
/// # Safety
/// `walk` is this CPU's.
#[inline(always)]
pub unsafe fn begin(walk: &mut Walk, slot: &mut Slot, now: u64) {
    walk.jvm = Known { believed: 1, ..slot.known };
    // SAFETY: reads that fail are error values.
    let (unloads, compiles) = unsafe { (count(slot.unloads_at), count(slot.compiles_at)) };
    walk.generation = unloads;
    let verified = slot.verified;
    let age = now.wrapping_sub(verified);
    if compiles != slot.compiles {
        (slot.compiles, slot.since) = (compiles, now);
    }
    let unchanged = slot.unloads == unloads && slot.since <= verified;
    if !unchanged || compiles == 0 || age > KEPT {
        // What `CODE` says of a frame may be as old as that.
        slot.verified = now.wrapping_sub(u64::from(FRESH));
        slot.unloads = unloads;
        walk.jvm.believed = 0;
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

/// An nmethod can be freed and its memory used again.
#[inline(always)]
pub fn may_go(rule: &Rule) -> bool {
    rule.what >> 48 & 0xff == JavaFrameTag::Compiled as u64
}

/// Whether the nmethod is there still: its compile id in the JVM's memory is the same.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn is_there(scratch: *mut Scratch, rule: &Rule) -> bool {
    // SAFETY: by contract.
    unsafe {
        let blob = rule.what & 0xffff_ffff_ffff;
        let places = (*scratch).walk.jvm.places;
        read::<u32>(scratch, blob + places.id_offset()) == Some(rule.how as u32)
    }
}

/// The process ended or runs another program.
#[inline(always)]
pub fn forget(pid: u32) {
    let _ = JVMS.remove(pid);
}
