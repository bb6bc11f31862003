//! Threads: records of names and accounts, and which number a thread's name has (`numbers`).
//!
//! A uprobe on HotSpot's naming function gives each name a number and keeps `tid -> number` in `THREADS`;
//! a sample copies the number (`sample`), the name itself goes up once. A thread's end removes its entry,
//! so that who gets its tid next has number 0. What no record announced has a number that nobody knows:
//! never the old one.
#![allow(unsafe_code)]

mod numbers;

use crate::accounts;
use crate::maps::{EVENTS, WATCHED};
use crate::off_cpu;
use crate::output::{Counts, room_for_events, waiting, wake_flags};
use crate::pauses;
use crate::shares;
use crate::walk::recent;
use crate::workers;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns, bpf_probe_read_user_str};
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use core::ptr::addr_of_mut;
pub use numbers::{forget, has_place, number_of, number_too_fast, renew};
use numbers::{renumber, too_fast};
use profiler_ebpf::{DropReason, Loss, MAX_NAME, RecordHeader, RecordKind, ThreadRecord};

/// One byte more than is kept, to know that there is more, and the terminating zero.
const NAME_BYTES: usize = MAX_NAME + 2;

/// A [`ThreadRecord`] and its name, at its longest. Put together in the ring itself: a uprobe may be
/// preempted by another (since Linux 6.0 or so), and what is per CPU would be torn.
#[repr(C)]
pub struct NamedRecord {
    pub thread: ThreadRecord,
    pub name: [u8; NAME_BYTES + 6],
}

/// `os::set_native_thread_name(const char *name)`, which names the current thread
/// (src/hotspot/os/linux/os_linux.cpp, JDK 8 to 25).
#[uprobe]
pub fn thread_named(ctx: ProbeContext) -> u32 {
    let name: *const u8 = ctx.arg(0).unwrap_or(core::ptr::null());
    named(|record| {
        // SAFETY: the length is the buffer's; a read of user memory that cannot fault.
        let read = unsafe {
            let buffer = addr_of_mut!((*record).name);
            bpf_probe_read_user_str(buffer.cast(), NAME_BYTES as u32, name.cast())
        };
        // The terminating zero counts; without at least that, nothing was read.
        if read <= 0 {
            return None;
        }
        let len = read as u32 - 1;
        Some(if len > MAX_NAME as u32 { (MAX_NAME as u32, ThreadRecord::FLAG_NAME_CUT) } else { (len, 0) })
    });
    0
}

/// The current thread has a new name, which `read_name` puts behind the record; it answers with the bytes of
/// it and flags.
#[inline(always)]
pub fn named(read_name: impl FnOnce(*mut NamedRecord) -> Option<(u32, u32)>) {
    let Some(counts) = Counts::of_this_cpu() else { return };
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    off_cpu::settle(tid);
    let too_fast = too_fast(tid, now);
    if too_fast || shares::one_more_name(now) == 0 {
        if too_fast {
            shares::lost(Loss::Name as u64);
        }
        renumber(tid, now);
        counts.lost(DropReason::NamesTooFast);
        return;
    }
    workers::task_ends(tid);
    let waiting = waiting();
    if !shares::may_put(Loss::Thread, size_of::<NamedRecord>() as u64, waiting) {
        renumber(tid, now);
        counts.lost(DropReason::RingFullThread);
        return;
    }
    let Some(mut entry) = room_for_events(waiting).then(|| EVENTS.reserve::<NamedRecord>(0)).flatten() else {
        shares::lost(Loss::Thread as u64);
        renumber(tid, now);
        counts.lost(DropReason::RingFullThread);
        return;
    };
    let record = entry.as_mut_ptr();
    // After the record has its place in the ring and before it can be read: a sample with the new number
    // always comes after it.
    let (previous_seq, name_seq) = renumber(tid, now);
    // SAFETY: the ring's own memory, as large as the type; the verifier checks each access.
    unsafe {
        let Some((name_len, flags)) = read_name(record) else {
            entry.discard(0);
            counts.lost(DropReason::NameUnreadable);
            return;
        };
        let thread = addr_of_mut!((*record).thread);
        accounts::fill(thread, bpf_get_current_task() as *const u8);
        (*thread).python_wait_ns = workers::python_wait(tid);
        (*thread).throttled_ns = off_cpu::throttled(tid, bpf_get_current_task() as *const u8);
        (*thread).paused_ns = pauses::paused(pid, now);
        (*thread).header = RecordHeader {
            kind: RecordKind::ThreadNamed as u16,
            flags: 0,
            len: size_of::<ThreadRecord>() as u32 + name_len,
        };
        (*thread).time_ns = now;
        (*thread).pid = pid;
        (*thread).tid = tid;
        (*thread).name_seq = name_seq;
        (*thread).previous_seq = previous_seq;
        (*thread).name_len = name_len;
        (*thread).flags |= flags;
    }
    // SAFETY: as above; the record is whole.
    let runs_task = unsafe { workers::named((pid, tid), name_seq, record) };
    off_cpu::renamed(pid, tid, name_seq, u32::from(runs_task));
    entry.submit(wake_flags(waiting));
}

/// The current thread ends: what it used, if anyone wants to know.
#[inline(always)]
pub fn ended(pid: u32, tid: u32) {
    let name_seq = number_of(tid);
    if name_seq != 0 {
        forget(tid);
    } else {
        recent::forget(tid);
    }
    off_cpu::settle(tid);
    if name_seq == 0 && WATCHED.get_ptr(pid).is_none() {
        off_cpu::thread_ended(tid);
        return;
    }
    // SAFETY: the helper has no preconditions.
    let task = unsafe { bpf_get_current_task() } as *const u8;
    let waiting = waiting();
    let may = shares::may_put(Loss::Thread, size_of::<ThreadRecord>() as u64, waiting);
    let flags = wake_flags(waiting);
    let reported =
        may && room_for_events(waiting) && report(RecordKind::ThreadEnded, task, (pid, tid), name_seq, flags);
    workers::thread_ended(tid);
    off_cpu::thread_ended(tid);
    if reported {
        return;
    }
    if may {
        shares::lost(Loss::Thread as u64);
    }
    if let Some(counts) = Counts::of_this_cpu() {
        counts.lost(DropReason::RingFullThread);
    }
}

/// Sends a thread's accounts without a name, with the ring's `flags`; whether the ring took them.
#[inline(always)]
pub fn report(kind: RecordKind, task: *const u8, (pid, tid): (u32, u32), name_seq: u32, flags: u64) -> bool {
    let Some(mut entry) = EVENTS.reserve::<ThreadRecord>(0) else { return false };
    let record = entry.as_mut_ptr();
    // SAFETY: the ring's own memory, as large as the type; the verifier checks each access.
    unsafe {
        accounts::fill(record, task);
        (*record).python_wait_ns = workers::python_wait(tid);
        let now = bpf_ktime_get_ns();
        (*record).throttled_ns = off_cpu::throttled(tid, task);
        (*record).paused_ns = pauses::paused(pid, now);
        (*record).header =
            RecordHeader { kind: kind as u16, flags: 0, len: size_of::<ThreadRecord>() as u32 };
        (*record).time_ns = now;
        (*record).pid = pid;
        (*record).tid = tid;
        (*record).name_seq = name_seq;
        (*record).previous_seq = name_seq;
        (*record).name_len = 0;
    }
    entry.submit(flags);
    true
}
