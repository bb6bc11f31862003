//! The doors of the runtimes' rooms: what the walker asks of a process's runtime, chosen by its number.
//!
//! In: a process, the walk. Out: where the runtime's code is, and steps through it; or, once the stack is walked to its
//! end, frames that the runtime keeps elsewhere. A new runtime is a room beside [`hotspot`] and an arm in each function
//! here; BPF has no pointers to functions. A process has one runtime at most, the first that has a layout of it.
#![allow(unsafe_code)]

use super::recent::Slot;
use super::state::{Rule, Walk};
use super::{cpython, ended, hotspot};
use crate::maps::Scratch;
use profiler_ebpf::{MAX_NATIVE_BESIDE_PYTHON, MAX_USER_FRAMES, RuntimeHead, RuntimeId, StackEnd};

const HOTSPOT: u64 = RuntimeId::HOTSPOT.0 as u64;
const CPYTHON: u64 = RuntimeId::CPYTHON.0 as u64;

/// Which runtime a process has, and where its code is; the runtime keeps in the slot what its steps need.
///
/// # Safety
/// `slot` is in the map.
#[inline(always)]
pub unsafe fn look_up(slot: *mut Slot, pid: u32) -> (u64, RuntimeHead) {
    // SAFETY: by contract.
    match unsafe { hotspot::look_up(&mut (*slot).jvm, pid) } {
        Some(head) => (HOTSPOT, head),
        None => match cpython::look_up(pid) {
            Some(head) => (CPYTHON, head),
            None => (0, RuntimeHead { low: 0, high: 0, incarnation: 0, pad: 0 }),
        },
    }
}

/// Whether what was looked up will hardly change.
///
/// # Safety
/// As for [`look_up`].
#[inline(always)]
pub unsafe fn is_settled(slot: *const Slot) -> bool {
    // SAFETY: by contract.
    unsafe { (*slot).runtime == HOTSPOT && (*slot).jvm.is_settled() }
}

/// Before the walk of a thread in whose process there is such code.
///
/// # Safety
/// As for [`look_up`]; `walk` is this CPU's.
#[inline(always)]
pub unsafe fn begin(walk: &mut Walk, slot: *mut Slot, now: u64) {
    // SAFETY: by contract.
    unsafe {
        if walk.runtime == HOTSPOT {
            hotspot::begin(walk, &mut (*slot).jvm, now);
        }
    }
}

/// The most frames that the walk may have before the runtime adds its own.
#[inline(always)]
pub fn most(walk: &Walk) -> u64 {
    let most = if walk.runtime == CPYTHON { MAX_NATIVE_BESIDE_PYTHON } else { MAX_USER_FRAMES };
    most as u64
}

/// Some steps from a pc in the runtime's code; false at the end.
///
/// # Safety
/// `scratch` is this CPU's scratch.
#[inline(always)]
pub unsafe fn steps(scratch: *mut Scratch) -> bool {
    // SAFETY: by contract.
    unsafe {
        match (*scratch).walk.runtime {
            HOTSPOT => hotspot::steps(scratch),
            _ => ended(scratch, StackEnd::Unknown),
        }
    }
}

/// The stack is walked to its end: whether the runtime has frames of its own to add.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn after(scratch: *mut Scratch) -> bool {
    // SAFETY: by contract.
    unsafe { (*scratch).walk.runtime == CPYTHON && cpython::after(scratch) }
}

/// Whether such frames are being added.
#[inline(always)]
pub fn adds(walk: &Walk) -> bool {
    walk.python.follows != 0
}

/// Some of those frames; false at the end.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn added(scratch: *mut Scratch) -> bool {
    // SAFETY: by contract.
    unsafe { cpython::steps(scratch) }
}

/// What the current thread, which has just named itself, is to its runtime; 0: not known.
#[inline(always)]
pub fn own_thread(tid: u32) -> u64 {
    hotspot::noted(tid)
}

/// Bytes that a runtime's thread, which is current, has allocated since it began, and bytes of its buffer in use; None: not known.
/// `thread` is what the runtime calls it.
#[inline(always)]
pub fn allocated(pid: u32, thread: u64) -> Option<(u64, u64)> {
    hotspot::allocated(pid, thread)
}

/// Adds what the runtime knows of a wait that the current thread begins, at the leaf's side: before the first step. `thread`
/// is what [`own_thread`] said.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn waits(scratch: *mut Scratch, pid: u32, thread: u64) {
    // SAFETY: by contract.
    unsafe {
        if (*scratch).walk.runtime == HOTSPOT && thread != 0 {
            hotspot::tell(scratch, pid, thread);
        }
    }
}

/// Whether a rule in the cache is of code that may be gone without notice.
#[inline(always)]
pub fn may_go(rule: &Rule) -> bool {
    hotspot::may_go(rule)
}

/// Whether such code is there still.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
pub unsafe fn is_there(scratch: *mut Scratch, rule: &Rule) -> bool {
    // SAFETY: by contract.
    unsafe { hotspot::is_there(scratch, rule) }
}

/// A new process has the code of the one that made it.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    cpython::inherit(parent, child);
}

/// The process ended or runs another program.
#[inline(always)]
pub fn forget(pid: u32) {
    hotspot::forget(pid);
    cpython::forget(pid);
}
