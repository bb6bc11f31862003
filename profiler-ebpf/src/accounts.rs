//! What the kernel has on a thread's account, out of its `task_struct`.
//!
//! In: a task, and the offsets of the kernel's BTF (globals). Out: the figures of a [`ThreadRecord`]. A field
//! that this kernel does not tell stays 0.
#![allow(unsafe_code)]

use crate::globals::*;
use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use profiler_ebpf::ThreadRecord;

/// Fills in the accounts, the time of start and the flag that says so.
///
/// # Safety
/// `record` may be written; the verifier checks. `task` is read without faulting, whatever it is.
#[inline(always)]
pub unsafe fn fill(record: *mut ThreadRecord, task: *const u8) {
    // SAFETY: by contract.
    unsafe {
        (*record).start_ns = field(task, &TASK_START);
        (*record).cpu_ns = field(task, &TASK_CPU);
        (*record).run_delay_ns = field(task, &TASK_RUN_DELAY);
        (*record).user_ns = field(task, &TASK_UTIME);
        (*record).system_ns = field(task, &TASK_STIME);
        (*record).voluntary_switches = field(task, &TASK_NVCSW);
        (*record).involuntary_switches = field(task, &TASK_NIVCSW);
        (*record).minor_faults = field(task, &TASK_MIN_FLT);
        (*record).major_faults = field(task, &TASK_MAJ_FLT);
        (*record).read_bytes = field(task, &TASK_READ_BYTES);
        (*record).written_bytes = field(task, &TASK_WRITE_BYTES);
        (*record).flags = if TASK_CPU.load() == 0 { 0 } else { ThreadRecord::FLAG_ACCOUNTS };
    }
}

#[inline(always)]
fn field(task: *const u8, offset: &Global<u32>) -> u64 {
    let offset = offset.load() as usize;
    if offset == 0 {
        return 0;
    }
    // SAFETY: a read of kernel memory that cannot fault.
    unsafe { bpf_probe_read_kernel(task.add(offset).cast::<u64>()) }.unwrap_or(0)
}
