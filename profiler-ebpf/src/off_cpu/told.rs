//! Waits that are over: what goes up, and what is put together with others of its cause first.
#![allow(unsafe_code)]

use super::{throttle, watched};
use crate::globals::{RING_BYTES, TASK_CPU, TASK_RUN_DELAY, WAIT_EVERY_NS};
use crate::maps::WAITERS;
use crate::output::{Counts, send, waiting};
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns};
use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_probe_read_kernel};
use core::ptr::{addr_of_mut, read_volatile, write_volatile};
use profiler_ebpf::{
    Alike, CAUSES, Cause, DropReason, LENGTHS, LONG_NS, RecordHeader, RecordKind, SampleKindTag,
    SampleRecord, WaitRecord, Waiter, WaiterState, length_of, together_ns,
};

/// No wake-up of the reader from here: the scheduler holds a lock, and the reader comes some times a second.
pub(super) const QUIETLY: u64 = BPF_RB_NO_WAKEUP as u64;

/// A wait is over, since `now`.
#[inline(never)]
pub(super) unsafe fn ended(waiter: *mut Waiter, tid: u32, now: u64) -> u64 {
    // SAFETY: an entry of the map.
    unsafe {
        if waiter.is_null() {
            return 0;
        }
        write_volatile(&raw mut (*waiter).state, WaiterState::Runs as u32);
        let began = (*waiter).began_ns;
        let lasted = now.saturating_sub(began);
        let at = (*waiter).cause as usize & (CAUSES - 1);
        let cause = addr_of_mut!((*waiter).causes).cast::<Cause>().add(at);
        (*cause).lasted(lasted);
        let length = length_of(lasted);
        let alike = addr_of_mut!((*cause).alike).cast::<Alike>().add(length);
        let is_walked = (*waiter).walked != 0;
        if !is_walked && lasted < LONG_NS {
            (*alike).owe(began, lasted);
            if (*alike).owed_ns >= together_ns(WAIT_EVERY_NS.load()) {
                tell_owed(waiter, (at, length), (tid, now));
            }
            return 0;
        }
        if is_walked {
            // Those before it are told where the one before was.
            tell_owed(waiter, (at, length), (tid, now));
            ((*alike).stack, (*alike).walked_ns) = ((*waiter).stack, now);
        }
        let (stack, flags) = if is_walked {
            ((*waiter).stack, 0)
        } else {
            ((*cause).stack_of(length, now), WaitRecord::FLAG_UNWALKED)
        };
        tell(waiter, (tid, now), &Over { began_ns: began, lasted_ns: lasted, stack, waits: 1, flags });
        0
    }
}

/// The current thread runs, and the end of its last wait was not told: a few wake-ups in ten thousand come without their
/// tracepoint (seen on Linux 6.18). How long it stood still its account tells, of which `word` reads.
#[inline(always)]
pub(super) unsafe fn unseen(waiter: *mut Waiter, (tid, now): (u32, u64), word: impl Fn(u32) -> u64) {
    let (cpu, delay) = (TASK_CPU.load(), TASK_RUN_DELAY.load());
    // SAFETY: an entry of the map.
    unsafe {
        if cpu == 0 || delay == 0 {
            write_volatile(&raw mut (*waiter).state, WaiterState::Runs as u32);
            if let Some(counts) = Counts::of_this_cpu() {
                counts.lost(DropReason::WakeUnseen);
            }
            return;
        }
        let lasted = (*waiter).stood_still(now, word(cpu), word(delay));
        ended(waiter, tid, (*waiter).began_ns + lasted);
    }
}

/// Tells waits of a cause, of this length, that were not told yet, if there are such.
#[inline(always)]
unsafe fn tell_owed(waiter: *mut Waiter, (at, length): (usize, usize), (tid, now): (u32, u64)) {
    // SAFETY: an entry of the map.
    unsafe {
        let cause = addr_of_mut!((*waiter).causes).cast::<Cause>().add(at & (CAUSES - 1));
        let alike = addr_of_mut!((*cause).alike).cast::<Alike>().add(length);
        if (*alike).owed_ns != 0 {
            let (lasted_ns, waits) = (*alike).settle();
            let (began_ns, stack) = ((*alike).owed_since_ns, (*cause).stack_of(length, now));
            // A period is never 2^32 of them.
            let (waits, flags) = (waits as u32, WaitRecord::FLAG_SEVERAL);
            tell(waiter, (tid, now), &Over { began_ns, lasted_ns, stack, waits, flags });
        }
    }
}

/// Tells all waits of a cause that were not told yet.
#[inline(never)]
pub(super) unsafe fn tell_all(waiter: *mut Waiter, at: u64, tid: u32, now: u64) -> u64 {
    if waiter.is_null() {
        return 0;
    }
    for length in 0..LENGTHS {
        // SAFETY: an entry of the map.
        unsafe { tell_owed(waiter, (at as usize, length), (tid, now)) };
    }
    0
}

/// A wait that is over, or several.
struct Over {
    began_ns: u64,
    lasted_ns: u64,
    /// Hash of the stack.
    stack: u64,
    /// How many.
    waits: u32,
    flags: u16,
}

/// Sends a record.
#[inline(always)]
unsafe fn tell(waiter: *mut Waiter, (tid, now): (u32, u64), over: &Over) {
    let Over { began_ns, lasted_ns, stack, waits, flags } = *over;
    // SAFETY: an entry of the map; the helper has no preconditions.
    let record = unsafe {
        WaitRecord {
            sample: SampleRecord {
                header: RecordHeader {
                    kind: RecordKind::Wait as u16,
                    flags,
                    len: size_of::<WaitRecord>() as u32,
                },
                time_ns: now,
                weight: lasted_ns,
                stack,
                pid: (*waiter).pid,
                tid,
                cpu: bpf_get_smp_processor_id(),
                name_seq: (*waiter).name_seq,
                sample_kind: SampleKindTag::OffCpu as u16,
                slot: 0,
                detail: waits,
            },
            began_ns,
        }
    };
    // Who wakes may be anybody, so nobody's share of the ring pays for it: waits have the first half of it.
    if waiting() < RING_BYTES.load() / 2 && send(record, QUIETLY) {
        return;
    }
    if let Some(counts) = Counts::of_this_cpu() {
        counts.lost(DropReason::RingFullWait);
    }
}

/// The current thread gets another name, or ends: what it waited for under this one is told. Global, as the functions of
/// [`crate::shares`] are.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn settle(tid: u32) -> u64 {
    if !watched::may_be(tid) {
        return 0;
    }
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: an entry of the map, and the current task, which is read without faulting; the helpers have no preconditions.
    unsafe {
        let task = bpf_get_current_task() as *const u8;
        if (*waiter).quota != 0 {
            throttle::leaves(waiter, task, false);
        }
        if read_volatile(&raw const (*waiter).state) == WaiterState::Waits as u32 {
            // It runs, so the wait is over.
            unseen(waiter, (tid, bpf_ktime_get_ns()), |at| {
                bpf_probe_read_kernel(task.add(at as usize).cast::<u64>()).unwrap_or(0)
            });
        }
        for at in 0..CAUSES {
            tell_all(waiter, at as u64, tid, bpf_ktime_get_ns());
        }
    }
    0
}
