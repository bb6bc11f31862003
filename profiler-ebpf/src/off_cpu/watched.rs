//! The threads whose waits are watched: those that run a task, from their first one on until they end.
//!
//! In: names of threads, their ends. Out: entries of `WAITERS`, which have all that a switch asks for, so that it takes one
//! look-up; and the filter, a word for all threads with the same low bits of their tids, which for most other threads makes
//! it none. Where waits are not sampled all of it is dropped by the verifier.
#![allow(unsafe_code)]

use super::throttle;
use crate::globals::WAIT_EVERY_NS;
use crate::maps::{FILTER, NO_WAITER, WAITERS};
use crate::output::Counts;
use crate::shares::{self, Table};
use crate::walk::runtime;
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns};
use core::arch::asm;
use core::ptr::{addr_of_mut, read_volatile};
use profiler_ebpf::{ANEW_NS, CAUSES, Cause, DropReason, filter_slot};

/// Whether a thread may be one of them; of most that are none, false.
#[inline(always)]
pub fn may_be(tid: u32) -> bool {
    if WAIT_EVERY_NS.load() == 0 {
        return false;
    }
    // SAFETY: within the array's entry; a word, read whole.
    slot(tid).is_some_and(|slot| unsafe { read_volatile(slot) } != 0)
}

/// The current thread has a name with this number, and runs a task from now on (`runs` 1), or none. Global, as the functions
/// of [`crate::shares`] are.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn renamed(pid: u32, tid: u32, seq: u32, runs: u32) -> u64 {
    if WAIT_EVERY_NS.load() == 0 || runs == 0 && !may_be(tid) {
        return 0;
    }
    if runs != 0 && WAITERS.get_ptr(tid).is_none() {
        begin(tid);
    }
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: an entry of the map, each word written whole; the current task, which is read without faulting.
    unsafe {
        (*waiter).pid = pid;
        (*waiter).name_seq = seq;
        (*waiter).runs = runs;
        let now = bpf_ktime_get_ns();
        if runs != 0 && now - (*waiter).anew_ns >= ANEW_NS {
            (*waiter).anew_ns = now;
            for at in 0..CAUSES {
                // Its next wait is walked, and what is not is told there.
                (*addr_of_mut!((*waiter).causes).cast::<Cause>().add(at)).walked_ns = 0;
            }
        }
        (*waiter).quota = throttle::has_quota(bpf_get_current_task() as *const u8);
        let thread = runtime::own_thread(tid);
        if thread != 0 {
            (*waiter).java = thread;
        }
    }
    0
}

/// An entry for the current thread, if there is room for one more of its user's.
#[inline(always)]
fn begin(tid: u32) {
    let Some(blank) = NO_WAITER.get(0) else { return };
    let place = shares::take_waiter();
    if place != 0 && WAITERS.insert(tid, blank, 0).is_ok() {
        if let Some(waiter) = WAITERS.get_ptr_mut(tid) {
            // SAFETY: an entry of the map; a word, written whole.
            unsafe { (*waiter).place = place };
        }
        count(tid, 1);
        return;
    }
    if place != 0 {
        shares::give_back_waiter(place);
        shares::lost(Table::Waiting.loss());
    }
    if let Some(counts) = Counts::of_this_cpu() {
        counts.lost(DropReason::WaitersFull);
    }
}

/// The current thread's name has another number, whatever the name is.
#[inline(always)]
pub fn renumbered(tid: u32, seq: u32) {
    if !may_be(tid) {
        return;
    }
    if let Some(waiter) = WAITERS.get_ptr_mut(tid) {
        // SAFETY: an entry of the map; a word, written whole.
        unsafe { (*waiter).name_seq = seq };
    }
}

/// A thread ends.
#[inline(always)]
pub fn thread_ended(tid: u32) {
    if !may_be(tid) {
        return;
    }
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return };
    // SAFETY: an entry of the map; a word, read whole.
    let place = unsafe { read_volatile(&raw const (*waiter).place) };
    if WAITERS.remove(tid).is_ok() {
        shares::give_back_waiter(place);
        count(tid, -1);
    }
}

/// For how long a thread wanted to run while its cgroup was throttled, in all. Looks again whether that has a quota.
#[inline(always)]
pub fn throttled(tid: u32, task: *const u8) -> u64 {
    if !may_be(tid) {
        return 0;
    }
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: an entry of the map, each word read and written whole; the task is read without faulting.
    unsafe {
        (*waiter).quota = throttle::has_quota(task);
        read_volatile(&raw const (*waiter).throttled.sum_ns)
    }
}

#[inline(always)]
fn slot(tid: u32) -> Option<*mut u64> {
    // SAFETY: within the array's entry.
    FILTER.get_ptr_mut(0).map(|slots| unsafe { slots.cast::<u64>().add(filter_slot(tid)) })
}

/// Counts a thread in or out.
#[inline(always)]
fn count(tid: u32, by: i64) {
    if let Some(slot) = slot(tid) {
        // SAFETY: within the array's entry. One instruction adds (`BPF_ATOMIC | BPF_ADD`); core has none for this target.
        unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) slot, in(reg) by) };
    }
}
