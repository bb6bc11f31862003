//! exec, fork, exit and mapped code.
//!
//! Raw tracepoints and an fentry program: system calls are never traced, since that would slow each of
//! them. The order of an exec is: code mapped, then exec.
#![allow(unsafe_code)]

use crate::globals::{TASK_PID, TASK_TGID, VMA_END, VMA_FILE, VMA_FLAGS, VMA_START};
use crate::output::{lost_event, send};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::{fentry, raw_tracepoint};
use aya_ebpf::programs::{FEntryContext, RawTracePointContext};
use profiler_ebpf::{MmapRecord, RecordHeader, RecordKind, TaskRecord};

/// `VM_EXEC` (include/linux/mm.h).
const VM_EXEC: u64 = 4;

/// The current process replaced its program.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn task_exec(ctx: RawTracePointContext) -> i32 {
    current(&ctx, RecordKind::Exec);
    0
}

/// The current thread ends.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn task_exit(ctx: RawTracePointContext) -> i32 {
    current(&ctx, RecordKind::Exit);
    0
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
        task(&ctx, RecordKind::Fork, (pid, tid), ((ids >> 32) as u32, ids as u32));
    }
    0
}

#[inline(always)]
fn current<C: EbpfContext>(ctx: &C, kind: RecordKind) {
    let ids = bpf_get_current_pid_tgid();
    task(ctx, kind, ((ids >> 32) as u32, ids as u32), (0, 0));
}

#[inline(always)]
fn task<C: EbpfContext>(ctx: &C, kind: RecordKind, (pid, tid): (u32, u32), parent: (u32, u32)) {
    let sent = send(TaskRecord {
        header: RecordHeader { kind: kind as u16, flags: 0, len: size_of::<TaskRecord>() as u32 },
        // SAFETY: the helper has no preconditions.
        time_ns: unsafe { bpf_ktime_get_ns() },
        pid,
        tid,
        parent_pid: parent.0,
        parent_tid: parent.1,
    });
    if !sent {
        lost_event(ctx);
    }
}

/// `perf_event_mmap(struct vm_area_struct *vma)` is called when a mapping was made or became
/// executable (kernel/events/core.c; callers in mm/vma.c, mm/mprotect.c).
#[fentry(function = "perf_event_mmap")]
pub fn code_mapped(ctx: FEntryContext) -> i32 {
    let vma: *const u8 = ctx.arg(0);
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    unsafe {
        let flags = bpf_probe_read_kernel(vma.add(VMA_FLAGS.load() as usize).cast::<u64>());
        if !matches!(flags, Ok(flags) if flags & VM_EXEC != 0) {
            return 0;
        }
        let file = bpf_probe_read_kernel(vma.add(VMA_FILE.load() as usize).cast::<u64>());
        let start = bpf_probe_read_kernel(vma.add(VMA_START.load() as usize).cast::<u64>());
        let end = bpf_probe_read_kernel(vma.add(VMA_END.load() as usize).cast::<u64>());
        let (Ok(1..), Ok(start), Ok(end)) = (file, start, end) else { return 0 };
        let ids = bpf_get_current_pid_tgid();
        let sent = send(MmapRecord {
            header: RecordHeader {
                kind: RecordKind::Mmap as u16,
                flags: 0,
                len: size_of::<MmapRecord>() as u32,
            },
            time_ns: bpf_ktime_get_ns(),
            start,
            end,
            pid: (ids >> 32) as u32,
            tid: ids as u32,
        });
        if !sent {
            lost_event(&ctx);
        }
    }
    0
}
