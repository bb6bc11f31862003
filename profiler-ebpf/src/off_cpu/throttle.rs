//! For how long a task's thread wanted to run while its cgroup had used up its quota of CPU time.
//!
//! The kernel's run delay has that in it. What tells it apart is the group's run queue of a CPU (`cfs_rq`): it keeps since when
//! and for how long it was throttled while threads were in it, itself or by a group above (`throttled_clock_self`,
//! `throttled_clock_self_time`, kernel/sched/fair.c, Linux 6.6), by the clock that the run delay goes by. In: switches and
//! wake-ups of threads in a group with a quota; all others take no part. Out: a sum for each thread, `Throttled`'s. A thread
//! that was moved to another CPU meanwhile, and kernels before 6.6: that time stays run delay.
#![allow(unsafe_code)]

use crate::globals::{
    CFS_RQ_RQ, CFS_RQ_SINCE, CFS_RQ_THROTTLED, GROUP_PARENT, GROUP_QUOTA, RQ_CLOCK, TASK_CFS_RQ, TASK_GROUP,
    TASK_RUN_DELAY,
};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use core::ptr::addr_of_mut;
use profiler_ebpf::Waiter;

/// Groups that a quota is looked for in: a task's own, and those above. A pod's is the third or fourth.
const GROUPS: usize = 12;
/// `RUNTIME_INF` (kernel/sched/sched.h): no quota.
const NO_QUOTA: u64 = u64::MAX;

/// 1: a thread's cgroup has a quota of CPU time, or one above it has, and this kernel tells how long it was throttled.
#[inline(never)]
pub fn has_quota(task: *const u8) -> u32 {
    // The daemon sets all of them or none.
    if GROUP_QUOTA.load() == 0 {
        return 0;
    }
    // Addresses of the kernel's, read without faulting.
    let mut group = word(task, TASK_GROUP.load());
    for _ in 0..GROUPS {
        if group == 0 {
            break;
        }
        if word(group as *const u8, GROUP_QUOTA.load()) != NO_QUOTA {
            return 1;
        }
        group = word(group as *const u8, GROUP_PARENT.load());
    }
    0
}

/// The current thread, `task`, leaves its CPU; `stays`: it wants to run on.
///
/// # Safety
/// `waiter` is an entry of the map, which is the current thread's.
#[inline(never)]
pub unsafe fn leaves(waiter: *mut Waiter, task: *const u8, stays: bool) -> u64 {
    // SAFETY: by contract.
    unsafe {
        if waiter.is_null() {
            return 0;
        }
        let (queue, queue_ns, delay) = of(task);
        let throttled = &mut *addr_of_mut!((*waiter).throttled);
        throttled.leaves(queue, queue_ns, delay);
        if stays {
            throttled.wants_to_run(queue, queue_ns, delay);
        }
        0
    }
}

/// A thread, `task`, is woken.
///
/// # Safety
/// `waiter` is an entry of the map, which is that thread's.
#[inline(never)]
pub unsafe fn wants_to_run(waiter: *mut Waiter, task: *const u8) -> u64 {
    // SAFETY: by contract.
    unsafe {
        if waiter.is_null() {
            return 0;
        }
        let (queue, queue_ns, delay) = of(task);
        (*addr_of_mut!((*waiter).throttled)).wants_to_run(queue, queue_ns, delay);
        0
    }
}

/// The run queue on which a thread is, for how long that was throttled until now, and the thread's run delay.
#[inline(always)]
fn of(task: *const u8) -> (u64, u64, u64) {
    let queue = word(task, TASK_CFS_RQ.load());
    let at = queue as *const u8;
    let (before, since) = (word(at, CFS_RQ_THROTTLED.load()), word(at, CFS_RQ_SINCE.load()));
    let now = if since == 0 {
        0
    } else {
        word(word(at, CFS_RQ_RQ.load()) as *const u8, RQ_CLOCK.load()).saturating_sub(since)
    };
    (queue, before + now, word(task, TASK_RUN_DELAY.load()))
}

#[inline(always)]
fn word(of: *const u8, at: u32) -> u64 {
    // SAFETY: a read of kernel memory that cannot fault; the offset is that of this kernel's BTF.
    unsafe { bpf_probe_read_kernel(of.wrapping_add(at as usize).cast::<u64>()) }.unwrap_or(0)
}
