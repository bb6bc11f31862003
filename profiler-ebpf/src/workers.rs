//! Which task a PySpark worker works for: the one whose thread exchanges data with it.
//!
//! A worker serves one task at a time, over a socket. When one side of it waits for data and the other sends some, the
//! sender wakes the waiter: `sched_waking` then has the one as current and the other as the woken. A task's first bytes
//! reach a worker that waits for them, so the worker is bound before it does anything for the task.
//!
//! In: who is who (`PARTIES`: executors and Python daemons from the daemon; a Python daemon's children are workers), names
//! of an executor's threads (`TASK_THREADS`), wake-ups. Out: a worker's main thread gets a new number, as if it had been
//! named, and a [`BoundRecord`] says for which task, or that its task is over; samples copy the number. Nothing is sent
//! while the task stays the same. The tracepoint is attached only while there is a worker; for all who are no [`Party`] it
//! costs one look-up.
//!
//! Wake-ups count in system calls that move bytes only: what an interrupt wakes (a timer, a packet from elsewhere) has
//! nothing to do with whom it interrupted. What reaches a worker that does not wait is `worker_sockets`'. Kernels that do not tell a thread's registers (before 5.15) cannot tell these.
#![allow(unsafe_code)]

mod binding;

pub use binding::{bind, received, task_ends};

use crate::globals::{HAS_TASK_PT_REGS, TASK_PID, TASK_TGID};
use crate::maps::{PARTIES, TASK_THREADS, WATCHED};
use crate::threads::NamedRecord;
use crate::waits::{self, Slept};
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_get_current_task_btf, bpf_task_pt_regs};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use core::ptr::{addr_of, read_volatile};
use profiler_ebpf::{Party, PartyKind, TaskThread, ThreadRecord, arch};

/// How the name of a thread that runs a task begins (`Executor task launch worker for task ..`).
const TASK: &[u8; 32] = b"Executor task launch worker for ";
/// How the name of a thread that feeds a worker begins, up to Spark 3.5 (`stdout writer for python3`).
const FEEDER: &[u8; 16] = b"stdout writer fo";

/// What [`TASK_THREADS`] keeps of a thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Serving {
    /// The task that it runs, or whose thread made it.
    task: TaskThread,
    /// [`RUNS`], [`FEEDS`], or [`MADE`] while it has no name.
    how: u32,
    /// Of a thread that runs a task: the workers that were bound to it last.
    workers: [u32; 2],
    pad: u32,
    /// Of a thread that runs a task: how it sleeps.
    slept: Slept,
}

/// As an entry begins.
static NOTHING: Serving =
    Serving { task: TaskThread::NONE, how: MADE, workers: [0; 2], pad: 0, slept: Slept::NONE };

const MADE: u32 = 0;
const RUNS: u32 = 1;
const FEEDS: u32 = 2;

/// The current thread has a name with this number, which the record holds. Whether it runs a task from now on.
///
/// # Safety
/// `record` is as [`crate::threads::named`] has filled it.
#[inline(always)]
pub unsafe fn named((pid, tid): (u32, u32), seq: u32, record: *const NamedRecord) -> bool {
    let Some(party) = PARTIES.get_ptr(pid) else { return false };
    // SAFETY: an entry of the map, whose kind does not change; by contract.
    unsafe {
        if (*party).kind != PartyKind::Executor as u32 {
            return false;
        }
        let made = TASK_THREADS.get_ptr_mut(tid);
        if begins_with(record, TASK) && seq != 0 {
            // In place: a whole one is too much for this program's stack (Linux 6.1 counts 512 bytes for all calls).
            let serving = match made {
                Some(made) => made,
                None => {
                    let _ = TASK_THREADS.insert(tid, &NOTHING, 0);
                    let Some(new) = TASK_THREADS.get_ptr_mut(tid) else { return false };
                    new
                }
            };
            // Its own entry of the task before, if it was not idle in between.
            let own = (*serving).how == RUNS && (*serving).task.tid == tid;
            ((*serving).task, (*serving).workers) = (TaskThread { tid, seq }, [0; 2]);
            Slept::runs(&raw mut (*serving).slept, own, &raw const (*record).thread);
            (*serving).how = RUNS;
            return true;
        }
        let Some(made) = made else { return false };
        if (*made).how == MADE && begins_with(record, FEEDER) {
            (*made).how = FEEDS;
        } else {
            // A task's thread that is idle, or that its task's code calls something else, and a thread of another kind.
            let _ = TASK_THREADS.remove(tid);
        }
        false
    }
}

/// Whether the name begins so, in ASCII, or in the UTF-16 of a Java 8 String.
///
/// # Safety
/// As for [`named`].
#[inline(always)]
unsafe fn begins_with<const N: usize>(record: *const NamedRecord, text: &[u8; N]) -> bool {
    // SAFETY: by contract.
    unsafe {
        if (*record).thread.name_len < N as u32 {
            false
        } else if (*record).thread.flags & ThreadRecord::FLAG_NAME_UTF16 != 0 {
            differs::<N, 2>(record, text) == 0
        } else {
            differs::<N, 1>(record, text) == 0
        }
    }
}

/// The bits in which the characters differ, each `STEP` bytes. Without a branch for each: the verifier looks at all of them.
///
/// # Safety
/// As for [`named`]. N is 32 at most, and a name has room for 256 bytes.
#[inline(always)]
unsafe fn differs<const N: usize, const STEP: usize>(record: *const NamedRecord, text: &[u8; N]) -> u64 {
    // SAFETY: by contract. Volatile: else the compiler makes it a comparison that stops early.
    unsafe {
        let name = addr_of!((*record).name).cast::<u8>();
        let byte = |at: usize| u64::from(read_volatile(name.add(at * STEP)));
        text.iter().enumerate().fold(0, |bits, (at, expected)| bits | (byte(at) ^ u64::from(*expected)))
    }
}

/// The current thread made another of its process.
#[inline(always)]
pub fn made_thread(maker: u32, child: u32) {
    let Some(serving) = TASK_THREADS.get_ptr(maker) else { return };
    // SAFETY: an entry of the map, each word read whole.
    let serving = unsafe { Serving { how: MADE, workers: [0; 2], slept: Slept::NONE, ..serving.read() } };
    let _ = TASK_THREADS.insert(child, serving, 0);
}

/// The current process made another: what a Python daemon forks is a worker.
#[inline(always)]
pub fn made_process(maker: u32, child: u32) {
    let Some(party) = PARTIES.get_ptr(maker) else { return };
    // SAFETY: an entry of the map, each word read whole.
    let party = unsafe { party.read() };
    if party.kind == PartyKind::Daemon as u32
        && PARTIES.insert(child, Party::new(PartyKind::Worker, party.executor), 0).is_ok()
    {
        let _ = WATCHED.insert(child, 1, 0);
    }
}

/// A thread ends.
#[inline(always)]
pub fn thread_ended(tid: u32) {
    let _ = TASK_THREADS.remove(tid);
}

/// A process ends, or becomes another program.
#[inline(always)]
pub fn forget(pid: u32) {
    if let Some(party) = PARTIES.get_ptr(pid) {
        // SAFETY: an entry of the map.
        let kind = unsafe { (*party).kind };
        if kind != PartyKind::Executor as u32 {
            let _ = WATCHED.remove(pid);
        }
        let _ = PARTIES.remove(pid);
    }
}

/// How long a thread that runs a task slept until Python woke it, in all.
#[inline(always)]
pub fn python_wait(tid: u32) -> u64 {
    // SAFETY: an entry of the map; a word, read whole.
    TASK_THREADS.get_ptr(tid).map_or(0, |serving| unsafe { (*serving).slept.python_ns })
}

/// The current task wakes another: TP_PROTO(struct task_struct *p).
#[raw_tracepoint(tracepoint = "sched_waking")]
pub fn worker_waking(ctx: RawTracePointContext) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    let (pid, tid) = ((ids >> 32) as u32, ids as u32);
    let woken: *const u8 = ctx.arg(0);
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    let word = |at: u32| unsafe { bpf_probe_read_kernel(woken.add(at as usize).cast::<u32>()) }.unwrap_or(0);
    let woken_tid = word(TASK_PID.load());
    let Some(party) = PARTIES.get_ptr_mut(pid) else {
        task_woken(woken_tid, woken, false);
        return 0;
    };
    let woken_pid = word(TASK_TGID.load());
    // SAFETY: an entry of the map, whose kind and executor do not change.
    let by_python = unsafe { (*party).kind != PartyKind::Executor as u32 && (*party).executor == woken_pid };
    task_woken(woken_tid, woken, by_python && moves_bytes());
    if woken_pid == pid || woken_pid == 0 {
        return 0;
    }
    // SAFETY: entries of the maps; kind and executor do not change, and the task is two words that only this program writes.
    unsafe {
        if (*party).kind == PartyKind::Worker as u32 {
            if (*party).executor == woken_pid && tid == pid {
                bind(party, (pid, bpf_get_current_task() as *const u8), woken_tid);
            }
        } else if (*party).kind == PartyKind::Executor as u32
            && woken_pid == woken_tid
            && let Some(worker) = PARTIES.get_ptr_mut(woken_pid)
            && (*worker).kind == PartyKind::Worker as u32
            && (*worker).executor == pid
        {
            bind(worker, (woken_pid, woken), tid);
        }
    }
    0
}

/// If the woken thread runs a task, it sleeps no more.
#[inline(always)]
fn task_woken(tid: u32, task: *const u8, by_python: bool) {
    let Some(serving) = TASK_THREADS.get_ptr_mut(tid) else { return };
    // SAFETY: an entry of the map; the task is read without faulting.
    unsafe {
        if (*serving).how == RUNS {
            waits::woken(&raw mut (*serving).slept, task, by_python);
        }
    }
}

/// Whether a thread runs a task, or feeds a worker for one.
#[inline(always)]
pub fn serves(tid: u32) -> bool {
    // SAFETY: an entry of the map.
    TASK_THREADS.get_ptr(tid).is_some_and(|serving| unsafe { (*serving).how } != MADE)
}

/// Whether the current thread is in a system call that reads or writes; true where this kernel cannot tell.
#[inline(always)]
pub fn moves_bytes() -> bool {
    if HAS_TASK_PT_REGS.load() == 0 {
        return true;
    }
    // SAFETY: the helpers give the current task and its saved registers, which are read without faulting.
    unsafe {
        let saved = bpf_task_pt_regs(bpf_get_current_task_btf()) as *const arch::SavedRegisters;
        bpf_probe_read_kernel(arch::system_call(saved)).is_ok_and(arch::moves_bytes)
    }
}
