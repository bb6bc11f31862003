//! Threads: which number a thread's name has, and records of names and accounts.
//!
//! A uprobe on HotSpot's naming function gives each name a number and keeps `tid -> number` in `THREADS`;
//! a sample copies the number (`sample`), the name itself goes up once. A thread's end removes its entry,
//! so that who gets its tid next has number 0. What no record announced has a number that nobody knows:
//! never the old one.
#![allow(unsafe_code)]

use crate::accounts;
use crate::maps::{EVENTS, THREADS, WATCHED};
use crate::off_cpu;
use crate::output::{Counts, room_for_events, waiting, wake_flags};
use crate::pauses;
use crate::shares;
use crate::walk::recent;
use crate::workers;
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns, bpf_probe_read_user_str};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id};
use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;
use core::arch::asm;
use core::ptr::addr_of_mut;
use profiler_ebpf::{
    Counter, DropReason, Loss, MAX_NAME, MAX_NAMES_A_SECOND, RecordHeader, RecordKind, ThreadRecord,
    ThreadState,
};

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

/// Gives the current thread's name a fresh number; the one before and the new one. The new one is 0 when
/// there is no room for it.
#[inline(always)]
fn renumber(tid: u32, now: u64) -> (u32, u32) {
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
fn too_fast(tid: u32, now: u64) -> bool {
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
