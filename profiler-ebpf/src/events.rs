//! exec, fork and exit, by raw tracepoints: system calls are never traced, since that would slow each of
//! them.
#![allow(unsafe_code)]

use crate::globals::{SIGNAL_LIVE, TASK_PID, TASK_SIGNAL, TASK_TGID};
use crate::maps::PROCESSES;
use crate::output::{WAKE_NOW, lost_event, room_for_events, send, waiting, wake_flags};
use crate::walk::runtime;
use crate::{pauses, shares, threads, workers};
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use profiler_ebpf::{Loss, ProcessTables, RecordHeader, RecordKind, TaskRecord};

/// The current process replaced its program.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn task_exec(ctx: RawTracePointContext) -> i32 {
    // A thread that is not the first takes the first one's tid (de_thread, fs/exec.c); its name is gone with
    // the program. TP_PROTO(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm).
    let ids = bpf_get_current_pid_tgid();
    threads::forget(ids as u32);
    forget_code((ids >> 32) as u32);
    threads::forget(ctx.arg::<u64>(1) as u32);
    current(RecordKind::Exec);
    0
}

/// The current thread ends.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn task_exit(_: RawTracePointContext) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    threads::ended((ids >> 32) as u32, ids as u32);
    if last_thread(ids) {
        forget_code((ids >> 32) as u32);
    }
    current(RecordKind::Exit);
    0
}

/// The process's code is gone, and whoever gets its pid has other code.
#[inline(always)]
fn forget_code(pid: u32) {
    runtime::forget(pid);
    workers::forget(pid);
    pauses::forget(pid);
    let _ = PROCESSES.remove(pid);
}

/// A new process has the code of the one that made it.
#[inline(always)]
fn inherit(parent: u32, child: u32) {
    if let Some(tables) = PROCESSES.get_ptr(parent) {
        // SAFETY: an entry of the map; each word is read whole, and the stamp tells what became of the list.
        let mut tables = unsafe { tables.read() };
        tables.ranges |= ProcessTables::INHERITED;
        let _ = PROCESSES.insert(child, tables, 0);
    }
    runtime::inherit(parent, child);
}

/// Whether no thread of the current one's process is left: `signal->live` was counted down just before this
/// tracepoint (do_exit, kernel/exit.c). Where the kernel does not tell its place: whether it is the first one.
#[inline(always)]
fn last_thread(ids: u64) -> bool {
    let (signal_at, live_at) = (TASK_SIGNAL.load() as usize, SIGNAL_LIVE.load() as usize);
    if signal_at == 0 || live_at == 0 {
        return ids as u32 == (ids >> 32) as u32;
    }
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    unsafe {
        let task = bpf_get_current_task() as *const u8;
        match bpf_probe_read_kernel(task.add(signal_at).cast::<*const u8>()) {
            Ok(signal) => matches!(bpf_probe_read_kernel(signal.add(live_at).cast::<u32>()), Ok(0)),
            Err(_) => false,
        }
    }
}

/// The current thread made another: TP_PROTO(struct task_struct *parent, struct task_struct *child).
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn task_fork(ctx: RawTracePointContext) -> i32 {
    let child: *const u8 = ctx.arg(1);
    // SAFETY: a read of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    let (pid, tid) = unsafe {
        (
            bpf_probe_read_kernel(child.add(TASK_TGID.load() as usize).cast::<u32>()),
            bpf_probe_read_kernel(child.add(TASK_PID.load() as usize).cast::<u32>()),
        )
    };
    if let (Ok(pid), Ok(tid)) = (pid, tid) {
        let ids = bpf_get_current_pid_tgid();
        if pid != (ids >> 32) as u32 {
            inherit((ids >> 32) as u32, pid);
            workers::made_process((ids >> 32) as u32, pid);
        } else {
            workers::made_thread(ids as u32, tid);
        }
        task(RecordKind::Fork, (pid, tid), ((ids >> 32) as u32, ids as u32));
    }
    0
}

#[inline(always)]
fn current(kind: RecordKind) {
    let ids = bpf_get_current_pid_tgid();
    task(kind, ((ids >> 32) as u32, ids as u32), (0, 0));
}

#[inline(always)]
fn task(kind: RecordKind, (pid, tid): (u32, u32), parent: (u32, u32)) {
    let waiting = waiting();
    if !shares::may_put(Loss::Task, size_of::<TaskRecord>() as u64, waiting) {
        return lost_event();
    }
    let sent = room_for_events(waiting)
        && send(
            TaskRecord {
                header: RecordHeader { kind: kind as u16, flags: 0, len: size_of::<TaskRecord>() as u32 },
                // SAFETY: the helper has no preconditions.
                time_ns: unsafe { bpf_ktime_get_ns() },
                pid,
                tid,
                parent_pid: parent.0,
                parent_tid: parent.1,
            },
            // A program that just started is walked by its tables as soon as the daemon knows of it.
            if matches!(kind, RecordKind::Exec) { WAKE_NOW } else { wake_flags(waiting) },
        );
    if !sent {
        shares::lost(Loss::Task as u64);
        lost_event();
    }
}
