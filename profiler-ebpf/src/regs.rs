//! The user-space registers of the interrupted thread.
//!
//! The event's own registers are the user's only when it hit user mode. In the kernel, the user's were
//! saved at the top of the kernel stack when the thread came in; `bpf_task_pt_regs` gives them (5.15).
#![allow(unsafe_code)]

use crate::globals::{HAS_TASK_PT_REGS, MM_START_STACK, TASK_FLAGS, TASK_MM, TASK_THREAD_POINTER};
use aya_ebpf::bindings::bpf_perf_event_data;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::{
    bpf_get_current_task, bpf_get_current_task_btf, bpf_probe_read_kernel as copy_kernel, bpf_task_pt_regs,
};
use core::ffi::c_void;
use core::ptr::{addr_of, read_volatile};
use profiler_ebpf::StackEnd;
use profiler_ebpf::arch::{self, SavedRegisters, Taken};

/// `PF_KTHREAD` (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

/// Whether the event hit the kernel.
#[inline(always)]
pub fn in_kernel(ctx: *const bpf_perf_event_data) -> bool {
    // SAFETY: the context is valid for the program's run; the verifier checks the access.
    unsafe { !arch::is_user(addr_of!((*ctx).regs)) }
}

/// Registers of an event that hit user mode; some architectures copy them to `copy`.
///
/// # Safety
/// `copy` may be written.
#[inline(always)]
pub unsafe fn from_event(
    ctx: *const bpf_perf_event_data,
    copy: *mut SavedRegisters,
) -> Result<Taken, StackEnd> {
    // SAFETY: as above; perf_event programs may read the context only in whole words.
    unsafe {
        let regs = addr_of!((*ctx).regs);
        if arch::is_foreign(regs) { Err(StackEnd::ArchUnsupported) } else { Ok(arch::of_event(regs, copy)) }
    }
}

/// Registers of a uprobe, at the instruction that it is on; likewise.
///
/// # Safety
/// `copy` may be written.
#[inline(always)]
pub unsafe fn from_uprobe(regs: *const SavedRegisters, copy: *mut SavedRegisters) -> Result<Taken, StackEnd> {
    // SAFETY: the context is valid for the program's run; the verifier checks each access.
    unsafe {
        if arch::is_foreign(regs) { Err(StackEnd::ArchUnsupported) } else { Ok(arch::of_event(regs, copy)) }
    }
}

/// Registers with which the current thread entered the kernel, or why there are none. All of them are copied to
/// `copy`, since they would take a third of the 512 bytes that a program and all it calls have on the stack.
///
/// # Safety
/// `copy` may be written.
#[inline(always)]
pub unsafe fn from_task(copy: *mut SavedRegisters) -> Result<Taken, StackEnd> {
    if HAS_TASK_PT_REGS.load() == 0 {
        return Err(StackEnd::NoUserRegisters);
    }
    // SAFETY: the helper gives a trusted pointer to the current task, and the second one to its saved
    // registers; the verifier checks each access against the kernel's BTF.
    unsafe {
        let task = bpf_get_current_task_btf();
        let flags_at = TASK_FLAGS.load() as usize;
        if flags_at != 0 && read_volatile(task.cast::<u8>().add(flags_at).cast::<u32>()) & PF_KTHREAD != 0 {
            return Err(StackEnd::KernelThread);
        }
        // Copied out: were they read in place, the compiler would merge these loads with those of
        // `from_event`, and the verifier refuses one load through two kinds of pointer.
        let from = bpf_task_pt_regs(task) as *const c_void;
        if copy_kernel(copy.cast(), size_of::<SavedRegisters>() as u32, from) != 0 {
            return Err(StackEnd::NoUserRegisters);
        }
        let regs = &*copy;
        let start = arch::of_task(regs);
        // A worker thread of io_uring or vhost has no PF_KTHREAD, but no user code either: copy_thread()
        // clears its pc.
        if !arch::is_user(regs) || start.pc() == 0 {
            return Err(StackEnd::KernelThread);
        }
        if arch::is_foreign(regs) {
            return Err(StackEnd::ArchUnsupported);
        }
        Ok(start)
    }
}

/// The current thread's pointer to its TLS; 0 where this kernel does not tell.
#[inline(always)]
pub fn thread_pointer() -> u64 {
    let at = TASK_THREAD_POINTER.load() as usize;
    if at == 0 {
        return 0;
    }
    // SAFETY: a read of kernel memory that cannot fault; the offset is that of this kernel's BTF.
    unsafe { bpf_probe_read_kernel((bpf_get_current_task() as *const u8).add(at).cast::<u64>()) }.unwrap_or(0)
}

/// A thread's first frames lie this close to the top of its stack: argv and environment are above
/// `start_stack`, and of a further thread glibc has its TLS (a few KB) at the top.
const TOP_BYTES: u64 = 16 * 1024;

/// Whether `fp` is near the top of the current thread's stack. A chain of frame pointers ends with zero
/// at the thread's first frame (glibc's clone3 and _start clear the register), but zero is also what a
/// function without frame pointers may keep in the register. True where this kernel cannot tell.
#[inline(always)]
pub fn near_stack_top(fp: u64) -> bool {
    let (pointer_at, mm_at) = (TASK_THREAD_POINTER.load() as usize, TASK_MM.load() as usize);
    let start_stack_at = MM_START_STACK.load() as usize;
    if HAS_TASK_PT_REGS.load() == 0 || pointer_at == 0 || mm_at == 0 || start_stack_at == 0 {
        return true;
    }
    // SAFETY: reads of kernel memory that cannot fault; the offsets are those of this kernel's BTF.
    unsafe {
        let task = bpf_get_current_task_btf() as *const u8;
        let near = |top: Result<u64, i32>| matches!(top, Ok(top) if top.wrapping_sub(fp) <= TOP_BYTES);
        if near(bpf_probe_read_kernel(task.add(pointer_at).cast::<u64>())) {
            return true;
        }
        match bpf_probe_read_kernel(task.add(mm_at).cast::<*const u8>()) {
            Ok(mm) => near(bpf_probe_read_kernel(mm.add(start_stack_at).cast::<u64>())),
            Err(_) => false,
        }
    }
}
