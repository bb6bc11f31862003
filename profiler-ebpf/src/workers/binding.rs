//! A worker's main thread gets a new number when its task is another or over, and a record says for which task.
//!
//! A task is over when its thread gets another name. Its worker may still clean up then: `pyspark.daemon` collects garbage
//! after each task. Where what sockets receive is seen, that is the task's, until the worker has received something.
#![allow(unsafe_code)]

use super::{MADE, RUNS, Serving, moves_bytes};
use crate::globals::{SEES_RECEIVED, TASK_TGID};
use crate::maps::{EVENTS, PARTIES, TASK_THREADS};
use crate::output::{Counts, room_for_events, waiting};
use crate::threads::{has_place, number_of, number_too_fast, renew};
use crate::{accounts, shares};
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns};
use core::ptr::addr_of_mut;
use profiler_ebpf::{BoundRecord, DropReason, Loss, Party, RecordHeader, RecordKind, TaskThread};

/// Binds a worker to the task that a thread of its executor serves, if it is not its task already.
///
/// # Safety
/// `worker` is an entry of the map, `main` its pid and its main thread, whose memory is read without faulting.
#[inline(always)]
pub unsafe fn bind(worker: *mut Party, main: (u32, *const u8), thread: u32) {
    let Some(serving) = TASK_THREADS.get_ptr(thread) else { return };
    // SAFETY: an entry of the map, each word read whole; by contract.
    unsafe {
        let Serving { task, how, .. } = serving.read();
        if how == MADE || (*worker).task == task {
            return;
        }
        // A feeder may outlive its task.
        if number_of(task.tid) != task.seq || !moves_bytes() {
            return;
        }
        if may_announce(main.0) && announce(main, task, false) {
            ((*worker).task, (*worker).main) = (task, main.1 as u64);
            if let Some(serving) = TASK_THREADS.get_ptr_mut(task.tid) {
                (*serving).workers = [main.0, (*serving).workers[0]];
            }
        }
    }
}

/// The current thread gets another name: the task that it ran is over. What workers that are still bound to it have used is
/// told: from then on they clean up after it ([`received`]), or work for none. Global, as the functions of [`shares`] are.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn task_ends(tid: u32) -> u64 {
    let Some(serving) = TASK_THREADS.get_ptr(tid) else { return 0 };
    // SAFETY: an entry of the map, each word read whole.
    let Serving { task, how, workers, .. } = unsafe { serving.read() };
    if how == RUNS {
        unbind(workers[0], task);
        unbind(workers[1], task);
    }
    0
}

#[inline(always)]
fn unbind(pid: u32, task: TaskThread) {
    if pid == 0 {
        return;
    }
    let Some(worker) = PARTIES.get_ptr_mut(pid) else { return };
    // SAFETY: an entry of the map, each word read whole; a read of kernel memory that cannot fault.
    unsafe {
        let main = (*worker).main as *const u8;
        let is_there = bpf_probe_read_kernel(main.add(TASK_TGID.load() as usize).cast::<u32>()) == Ok(pid);
        if (*worker).task == task
            && is_there
            && announce((pid, main), TaskThread::NONE, true)
            && SEES_RECEIVED.load() == 0
        {
            (*worker).task = TaskThread::NONE;
        }
    }
}

/// A worker's main thread, which is the current one, has received something. If its task is over, that was for another: if
/// this is not known by now, the worker works for none.
///
/// # Safety
/// `worker` is an entry of the map, `pid` its pid.
#[inline(always)]
pub unsafe fn received(worker: *mut Party, pid: u32) {
    // SAFETY: the task is read whole; by contract. The helper has no preconditions.
    unsafe {
        let task = (*worker).task;
        if task != TaskThread::NONE && number_of(task.tid) != task.seq {
            // Whether or not the ring takes it: a number that nobody knows is no task's either.
            announce((pid, bpf_get_current_task() as *const u8), TaskThread::NONE, false);
            (*worker).task = TaskThread::NONE;
        }
    }
}

/// Whether the worker may have one more number, and has one.
#[inline(always)]
fn may_announce(pid: u32) -> bool {
    let Some(counts) = Counts::of_this_cpu() else { return false };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    if number_too_fast(pid, now) {
        counts.lost(DropReason::NamesTooFast);
        return false;
    }
    if !shares::may_put(Loss::Thread, size_of::<BoundRecord>() as u64, waiting()) {
        counts.lost(DropReason::RingFullThread);
        return false;
    }
    has_place(&counts, pid)
}

/// Gives the worker's main thread, which has a number, a new one, and says what it means; whether the ring took that. If not,
/// samples have a number that nobody knows, until the next wake-up tries again. `outlived`: until the worker receives
/// something, where that is seen, it means the task that is over.
///
/// # Safety
/// As for [`bind`].
#[inline(always)]
unsafe fn announce((pid, main): (u32, *const u8), task: TaskThread, outlived: bool) -> bool {
    let Some(counts) = Counts::of_this_cpu() else { return false };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(mut entry) = room_for_events(waiting()).then(|| EVENTS.reserve::<BoundRecord>(0)).flatten()
    else {
        renew(&counts, pid, now);
        counts.lost(DropReason::RingFullThread);
        return false;
    };
    let record = entry.as_mut_ptr();
    // After the record has its place in the ring: a sample with the new number always comes after it.
    let (previous_seq, name_seq) = renew(&counts, pid, now);
    // SAFETY: the ring's own memory, as large as the type; the verifier checks each access.
    unsafe {
        let thread = addr_of_mut!((*record).thread);
        accounts::fill(thread, main);
        // It runs no task.
        ((*thread).python_wait_ns, (*thread).throttled_ns, (*thread).paused_ns) = (0, 0, 0);
        (*thread).header = RecordHeader {
            kind: RecordKind::WorkerBound as u16,
            flags: if outlived && SEES_RECEIVED.load() != 0 { BoundRecord::FLAG_OUTLIVED } else { 0 },
            len: size_of::<BoundRecord>() as u32,
        };
        (*thread).time_ns = now;
        (*thread).pid = pid;
        (*thread).tid = pid;
        (*thread).name_seq = name_seq;
        (*thread).previous_seq = previous_seq;
        (*thread).name_len = 0;
        (*record).task = task;
    }
    // No wake-up from here: the scheduler holds a lock, and the reader comes some times a second.
    entry.submit(u64::from(BPF_RB_NO_WAKEUP));
    name_seq != 0
}
