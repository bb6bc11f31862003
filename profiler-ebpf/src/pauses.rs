//! When a JVM's threads stood still at a safepoint, and for which operation.
//!
//! Uprobes on three functions of libjvm, each of which the VM thread runs once a pause (JDK 11 to 25):
//! `RuntimeService::record_safepoint_begin` and `.._end` (src/hotspot/share/services/runtimeService.cpp), by which the
//! JVM itself keeps its counters of safepoints, and `VM_Operation::evaluate()` (src/hotspot/share/runtime/vmOperations.cpp)
//! in between. What an operation is its virtual table tells, whose address goes up.
//!
//! In: processes that are watched (`WATCHED`); any program may run these instructions as often as it likes. Out: a record a
//! pause, [`profiler_ebpf::MAX_PAUSES_A_SECOND`] of a process at most, what is beyond being counted; and how long the process stood still in
//! all, which the accounts of its threads carry ([`paused`]): the difference between two of them is exact, whether or not a
//! record was lost.
#![allow(unsafe_code)]

use crate::maps::{PAUSES, WATCHED};
use crate::output::{Counts, room_for_events, send, waiting, wake_flags};
use crate::shares;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_user};
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use profiler_ebpf::{DropReason, Loss, PauseRecord, RecordHeader, RecordKind, Standing};

/// A safepoint begins: threads are about to be stopped.
#[uprobe]
pub fn pause_begins(_: ProbeContext) -> u32 {
    begins(u64::MAX)
}

/// The same where the function is told for how many nanoseconds threads ran since the last one (JDK 14 on).
#[uprobe]
pub fn pause_begins_since(ctx: ProbeContext) -> u32 {
    begins(ctx.arg(0).unwrap_or(u64::MAX))
}

#[inline(always)]
fn begins(since_ns: u64) -> u32 {
    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    if let Some(standing) = PAUSES.get_ptr_mut(pid) {
        // SAFETY: an entry of the map, each word written whole; of a JVM only its VM thread writes.
        unsafe {
            let began_ns = (*standing).begin(now, since_ns);
            ((*standing).began_ns, (*standing).operation) = (began_ns, 0);
        }
    } else if WATCHED.get_ptr(pid).is_some() {
        let standing = Standing { began_ns: now, ..Standing::default() };
        if PAUSES.insert(pid, standing, 0).is_err() {
            lost();
        }
    }
    0
}

/// The VM thread begins an operation: of those at a safepoint the first is what it is for.
#[uprobe]
pub fn pause_operation(ctx: ProbeContext) -> u32 {
    let Some(standing) = PAUSES.get_ptr_mut((bpf_get_current_pid_tgid() >> 32) as u32) else { return 0 };
    let Some(operation) = ctx.arg::<*const u64>(0) else { return 0 };
    // SAFETY: as above; the operation is read without faulting.
    unsafe {
        if (*standing).began_ns != 0 && (*standing).operation == 0 {
            (*standing).operation = bpf_probe_read_user(operation).unwrap_or(0);
        }
    }
    0
}

/// The threads go on.
#[uprobe]
pub fn pause_ends(_: ProbeContext) -> u32 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let Some(standing) = PAUSES.get_ptr_mut(pid) else { return 0 };
    // SAFETY: as above.
    let (began_ns, now, operation, is_told) = unsafe {
        let (began_ns, now) = ((*standing).began_ns, bpf_ktime_get_ns());
        if began_ns == 0 {
            // It began before the probes were there.
            return 0;
        }
        ((*standing).began_ns, (*standing).ended_ns) = (0, now);
        (*standing).sum_ns += now.saturating_sub(began_ns);
        (began_ns, now, (*standing).operation, (*standing).one_more(now))
    };
    let waiting = waiting();
    let size = size_of::<PauseRecord>();
    let sent = is_told
        && shares::may_put(Loss::Pause, size as u64, waiting)
        && room_for_events(waiting)
        && send(
            PauseRecord {
                header: RecordHeader { kind: RecordKind::Pause as u16, flags: 0, len: size as u32 },
                time_ns: now,
                began_ns,
                operation,
                pid,
                tid,
            },
            wake_flags(waiting),
        );
    if !sent {
        shares::lost(Loss::Pause as u64);
        lost();
    }
    0
}

/// For how long a process stood still, in all, nanoseconds.
#[inline(always)]
pub fn paused(pid: u32, now: u64) -> u64 {
    let Some(standing) = PAUSES.get_ptr(pid) else { return 0 };
    // SAFETY: an entry of the map, each word read whole.
    let (began_ns, sum_ns) = unsafe { ((*standing).began_ns, (*standing).sum_ns) };
    if began_ns == 0 { sum_ns } else { sum_ns + now.saturating_sub(began_ns) }
}

/// The process's JVM is gone.
#[inline(always)]
pub fn forget(pid: u32) {
    let _ = PAUSES.remove(pid);
}

#[inline(always)]
fn lost() {
    if let Some(counts) = Counts::of_this_cpu() {
        counts.lost(DropReason::PauseLost);
    }
}
