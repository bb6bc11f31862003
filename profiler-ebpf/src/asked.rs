//! All threads of the watched processes, when the daemon asks: a task iterator (Linux 5.8, with BTF).
//!
//! The daemon reads the iterator's file; for each thread of the machine the program runs once. Nothing is
//! written into the file: the records go into the ring, in order with names and ends. When the ring is
//! half full the program asks to be run again for the same thread: the daemon's read fails with EAGAIN, it
//! empties the ring and reads on.
#![allow(unsafe_code)]

use crate::globals::{TASK_FLAGS, TASK_PID, TASK_TGID};
use crate::maps::WATCHED;
use crate::output::half_is_free;
use crate::threads::{number_of, report};
use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use core::ffi::c_void;
use core::ptr::read_volatile;
use profiler_ebpf::RecordKind;

/// `PF_EXITING` (include/linux/sched.h): its end was reported, or will be.
const PF_EXITING: u32 = 4;

/// `struct bpf_iter__task` (kernel/bpf/task_iter.c).
#[repr(C)]
pub struct Context {
    meta: *const c_void,
    task: *const u8,
}

/// Done with this thread.
const NEXT: i32 = 0;
/// Run again for the same.
const AGAIN: i32 = 1;

#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub fn all_threads(ctx: *const Context) -> i32 {
    // SAFETY: the context that the kernel gives to such a program; the verifier checks each access.
    let task = unsafe { read_volatile(&raw const (*ctx).task) };
    if task.is_null() {
        return NEXT;
    }
    // SAFETY: a task that the kernel holds; the offsets are those of this kernel's BTF, which the verifier
    // holds against it.
    let (pid, tid, flags) = unsafe {
        let word = |offset: u32| read_volatile(task.add(offset as usize).cast::<u32>());
        (word(TASK_TGID.load()), word(TASK_PID.load()), word(TASK_FLAGS.load()))
    };
    if flags & PF_EXITING != 0 || WATCHED.get_ptr(pid).is_none() {
        return NEXT;
    }
    // Who asks reads the ring next: a wake-up for each thread would cost more than all else here.
    let quietly = u64::from(BPF_RB_NO_WAKEUP);
    let told = || report(RecordKind::ThreadAsked, task, (pid, tid), number_of(tid), quietly);
    if !half_is_free() || !told() { AGAIN } else { NEXT }
}
