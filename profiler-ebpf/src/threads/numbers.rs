//! Which number a thread's name has, from `THREADS`: made when it is named, gone when it ends.
#![allow(unsafe_code)]

use crate::maps::THREADS;
use crate::off_cpu;
use crate::output::Counts;
use crate::shares;
use crate::walk::recent;
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use core::arch::asm;
use profiler_ebpf::{Counter, DropReason, Loss, MAX_NAMES_A_SECOND, ThreadState};

/// Gives the current thread's name a fresh number; the one before and the new one. The new one is 0 when
/// there is no room for it.
#[inline(always)]
pub fn renumber(tid: u32, now: u64) -> (u32, u32) {
    let both = renumbered(tid, now);
    ((both >> 32) as u32, both as u32)
}

/// As [`renumber`]; the one before in the upper half. Global, as the functions of [`shares`] are.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn renumbered(tid: u32, now: u64) -> u64 {
    let Some(counts) = Counts::of_this_cpu() else { return 0 };
    let fresh = fresh_number(&counts);
    let (previous, fresh) = match THREADS.get_ptr_mut(tid) {
        // SAFETY: only the thread itself writes its entry (of a PySpark worker, who sends to it), and only its end removes it.
        Some(state) => unsafe {
            let state = state.cast::<u64>();
            let previous = ThreadState(state.read());
            state.write(previous.named(fresh, now).0);
            (previous.number(), fresh)
        },
        None if place(tid, ThreadState(0).named(fresh, now)) => (0, fresh),
        None => {
            counts.lost(DropReason::ThreadsFull);
            (0, 0)
        }
    };
    recent::renamed(tid, fresh);
    off_cpu::renumbered(tid, fresh);
    u64::from(previous) << 32 | u64::from(fresh)
}

/// Whether a thread is in the table, from now on at the latest.
#[inline(always)]
pub fn has_place(counts: &Counts, tid: u32) -> bool {
    let has = THREADS.get_ptr(tid).is_some() || place(tid, ThreadState(0));
    if !has {
        counts.lost(DropReason::ThreadsFull);
    }
    has
}

/// Gives a PySpark worker's main thread that is in the table a fresh number; the one before and the new one. 0 when it is not there any more.
#[inline(always)]
pub fn renew(counts: &Counts, tid: u32, now: u64) -> (u32, u32) {
    let Some(state) = THREADS.get_ptr_mut(tid) else { return (0, 0) };
    let fresh = fresh_number(counts);
    // SAFETY: as in `renumber`.
    let previous = unsafe {
        let state = state.cast::<u64>();
        let previous = ThreadState(state.read());
        state.write(previous.named(fresh, now).0);
        previous.number()
    };
    recent::renamed(tid, fresh);
    (previous, fresh)
}

/// Puts a thread into the table, if there is room for one more of its user's.
#[inline(always)]
fn place(tid: u32, state: ThreadState) -> bool {
    let place = shares::take_place();
    if place == 0 {
        return false;
    }
    let is_there = THREADS.insert(tid, [state.0, place], 0).is_ok();
    if !is_there {
        shares::give_back(place);
        shares::lost(Loss::Place as u64);
    }
    is_there
}

/// Whether a thread, or its user's, had all the numbers that they may in this second.
#[inline(always)]
pub fn number_too_fast(tid: u32, now: u64) -> bool {
    too_fast(tid, now) || shares::one_more_name(now) == 0
}

/// Whether a thread has told all the names that it may in this second.
#[inline(always)]
pub fn too_fast(tid: u32, now: u64) -> bool {
    // SAFETY: as in `number_of`.
    unsafe { THREADS.get(tid) }
        .is_some_and(|[state, _]| ThreadState(*state).names_in(now) >= MAX_NAMES_A_SECOND)
}

/// A number that no other name has, until 2^32 names were given. Never 0. Two threads of one CPU get the
/// same one if the first is preempted between the two instructions here; a thread never gets a number twice.
/// (Adding and fetching in one needs Linux 5.12.)
#[inline(always)]
fn fresh_number(counts: &Counts) -> u32 {
    let slot = counts.slot(Counter::Names);
    // SAFETY: a slot of this CPU's counters. One instruction adds (`BPF_ATOMIC | BPF_ADD`); core has none for
    // this target.
    let count = unsafe {
        asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) slot, in(reg) 1u64);
        slot.read_volatile()
    };
    // SAFETY: the helper has no preconditions.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    ((count as u32).wrapping_mul(crate::globals::CPUS.load()).wrapping_add(cpu)).max(1)
}

/// The number of a thread's name.
#[inline(always)]
pub fn number_of(tid: u32) -> u32 {
    // SAFETY: a word, read whole.
    unsafe { THREADS.get(tid) }.map_or(0, |[state, _]| ThreadState(*state).number())
}

/// Forgets a tid's name.
#[inline(always)]
pub fn forget(tid: u32) {
    // SAFETY: as in `number_of`; its second word does not change.
    if let Some([_, place]) = unsafe { THREADS.get(tid) }.copied()
        && THREADS.remove(tid).is_ok()
    {
        shares::give_back(place);
    }
    recent::forget(tid);
}
