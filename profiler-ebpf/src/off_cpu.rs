//! Where tasks' threads stand still, and for how long.
//!
//! In: switches (a thread that goes to wait is current, and its memory is mapped) and wake-ups. Out: the stack at which a
//! thread waits, if it was not sent in this epoch, and a [`WaitRecord`] when it is woken. Which waits are walked is
//! `profiler_ebpf::Waiter`'s.
//!
//! Only waits count: a thread that was preempted wants to run, and that time is its run delay; how much of it its cgroup was
//! throttled is `throttle`'s. Threads are those that run a task (`watched`); for nearly all others a switch ends at a word of
//! a filter, before any look-up.
//!
//! A switch happens with interrupts off, so no program of a perf event comes in the middle and the scratch is ours; nor does
//! a switch come in the middle of one of those, as they run with preemption off. `sched_wakeup`, and not `sched_waking`, ends a
//! wait: who wakes a thread that is still on its way waits until it is off its CPU (try_to_wake_up, kernel/sched/core.c), and
//! from that moment on its time is run delay. So an end always comes after its beginning.
#![allow(unsafe_code)]

mod throttle;
mod told;
mod watched;

use crate::globals::{HAS_TASK_PT_REGS, TASK_CPU, TASK_PID, TASK_RUN_DELAY, TASK_STATE, WAIT_EVERY_NS};
use crate::maps::{OF_EVENTS, SCRATCH, Scratch, WAITERS};
use crate::output::Counts;
use crate::regs;
use crate::sample::{fresh, kernel_stack};
use crate::send::stack_alone;
use crate::walk::{begin, in_a_loop, mix, prepare, runtime};
use aya_ebpf::helpers::generated::{
    bpf_get_current_task_btf, bpf_get_prandom_u32, bpf_ktime_get_ns, bpf_task_pt_regs,
};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use core::ptr::{addr_of_mut, read_volatile, write_volatile};
use profiler_ebpf::{
    Alike, CAUSES, Cause, Counter, LENGTHS, REFRESH_NS, SampleKindTag, Waiter, WaiterState, arch,
};
pub use told::settle;
use told::{ended, tell_all, unseen};
pub use watched::{renamed, renumbered, thread_ended, throttled};

/// The current task goes: TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, ..).
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn off_cpu_switch(ctx: RawTracePointContext) -> i32 {
    let ids = bpf_get_current_pid_tgid();
    if !watched::may_be(ids as u32) {
        return 0;
    }
    let Some(waiter) = WAITERS.get_ptr_mut(ids as u32) else { return 0 };
    // SAFETY: an entry of the map, which is the current thread's.
    if unsafe { leaves(&ctx, waiter) } == 0 {
        return 0;
    }
    if let Some(scratch) = SCRATCH.get_ptr_mut(OF_EVENTS) {
        // SAFETY: this CPU's scratch, which nobody else uses meanwhile; the verifier checks each access.
        unsafe {
            fresh(scratch, (ids >> 32) as u32, SampleKindTag::OffCpu, 0);
            (*scratch).walk.taken_ns = bpf_ktime_get_ns();
            kernel_stack(&ctx, scratch);
            let walk = &mut (*scratch).walk;
            walk.kernel_frames = walk.words;
            match regs::from_task(addr_of_mut!((*scratch).fetched).cast()) {
                Ok(registers) => {
                    let now = walk.taken_ns;
                    begin(scratch, &registers);
                    prepare(scratch, ((ids >> 32) as u32, ids as u32), now);
                    let thread = (*waiter).java;
                    runtime::waits(scratch, (ids >> 32) as u32, thread);
                    in_a_loop::<OF_EVENTS>(scratch);
                }
                Err(end) => walk.end = end as u64,
            }
            walked(scratch);
        }
    }
    if let Some(waiter) = WAITERS.get_ptr_mut(ids as u32) {
        // SAFETY: an entry of the map. Written last: who reads the map finds the rest.
        unsafe { write_volatile(&raw mut (*waiter).state, WaiterState::Waits as u32) };
    }
    0
}

/// A task is woken: TP_PROTO(struct task_struct *p).
#[raw_tracepoint(tracepoint = "sched_wakeup")]
pub fn off_cpu_wakeup(ctx: RawTracePointContext) -> i32 {
    let woken: *const u8 = ctx.arg(0);
    // SAFETY: a read of kernel memory that cannot fault; the offset is that of this kernel's BTF.
    let tid = unsafe { bpf_probe_read_kernel(woken.add(TASK_PID.load() as usize).cast::<u32>()) };
    let Ok(tid) = tid else { return 0 };
    if !watched::may_be(tid) {
        return 0;
    }
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: an entry of the map, each word read and written whole.
    unsafe {
        if (*waiter).quota != 0 {
            throttle::wants_to_run(waiter, woken);
        }
        if read_volatile(&raw const (*waiter).state) == WaiterState::Waits as u32 {
            ended(waiter, tid, bpf_ktime_get_ns());
        }
    }
    0
}

/// The current thread is about to stand still, or only about to let another run. 1: its stack is to be walked; else the wait has
/// begun, if there is one.
#[inline(never)]
unsafe fn leaves(ctx: &RawTracePointContext, waiter: *mut Waiter) -> u64 {
    // SAFETY: the task is the current one, whose fields the verifier holds against the kernel's types, and the entry of the map
    // is its own, each word read and written whole.
    unsafe {
        if waiter.is_null() || (*waiter).runs | (*waiter).quota == 0 {
            return 0;
        }
        let task = bpf_get_current_task_btf() as *const u8;
        let preempted = ctx.arg::<u64>(0) & 1 != 0;
        let stays = preempted || read_volatile(task.add(TASK_STATE.load() as usize).cast::<u32>()) == 0;
        if (*waiter).quota != 0 {
            throttle::leaves(waiter, task, stays);
        }
        if stays || (*waiter).runs == 0 {
            return 0;
        }
        let (tid, now) = (bpf_get_current_pid_tgid() as u32, bpf_ktime_get_ns());
        // Both accounts are brought up to date before a switch.
        let word = |at: u32| read_volatile(task.add(at as usize).cast::<u64>());
        if (*waiter).state != WaiterState::Runs as u32 {
            unseen(waiter, (tid, now), word);
        }
        (*waiter).state = WaiterState::Runs as u32;
        (*waiter).began_ns = now;
        ((*waiter).cpu_ns, (*waiter).run_delay_ns) = (word(TASK_CPU.load()), word(TASK_RUN_DELAY.load()));
        let key = key();
        let (at, known) = place(waiter, key);
        (*waiter).cause = at as u32;
        let cause = addr_of_mut!((*waiter).causes).cast::<Cause>().add(at & (CAUSES - 1));
        let is_old = now - (*cause).walked_ns >= REFRESH_NS;
        if !known || is_old {
            tell_all(waiter, at as u64, tid, now);
            // Where the one was that is walked now, all are told.
            for length in 0..LENGTHS {
                (*addr_of_mut!((*cause).alike).cast::<Alike>().add(length)).walked_ns = 0;
            }
        }
        if !known {
            addr_of_mut!((*waiter).keys).cast::<u64>().add(at & (CAUSES - 1)).write(key);
            cause.write(Cause::default());
        }
        let wanted =
            !known || is_old || bpf_get_prandom_u32() & 0xffff < (*cause).chance(WAIT_EVERY_NS.load());
        (*waiter).walked = u32::from(wanted && (*waiter).may_walk(now));
        if (*waiter).walked == 0 {
            write_volatile(&raw mut (*waiter).state, WaiterState::Waits as u32);
        }
        u64::from((*waiter).walked)
    }
}

/// What the current thread waits for: its system call, and how deep its stack was then.
#[inline(always)]
unsafe fn key() -> u64 {
    if HAS_TASK_PT_REGS.load() == 0 {
        return 1;
    }
    // SAFETY: the helpers give the current task and its saved registers, whose fields the verifier holds against the kernel's
    // types: to read them in place is one instruction each.
    unsafe {
        let saved = bpf_task_pt_regs(bpf_get_current_task_btf()) as *const arch::SavedRegisters;
        mix(read_volatile(arch::system_call(saved)), read_volatile(arch::stack_pointer(saved))) | 1
    }
}

/// The place of a cause, and whether it is there; else that of the one that was walked longest ago.
#[inline(always)]
unsafe fn place(waiter: *mut Waiter, key: u64) -> (usize, bool) {
    for at in 0..CAUSES {
        // SAFETY: within the entry.
        if unsafe { addr_of_mut!((*waiter).keys).cast::<u64>().add(at).read() } == key {
            return (at, true);
        }
    }
    let (mut oldest, mut oldest_ns) = (0, u64::MAX);
    for at in 0..CAUSES {
        // SAFETY: likewise.
        let walked_ns = unsafe { (*addr_of_mut!((*waiter).causes).cast::<Cause>().add(at)).walked_ns };
        if walked_ns < oldest_ns {
            (oldest, oldest_ns) = (at, walked_ns);
        }
    }
    (oldest, false)
}

/// The current thread's stack is walked.
#[inline(never)]
unsafe fn walked(scratch: *mut Scratch) -> u64 {
    let tid = bpf_get_current_pid_tgid() as u32;
    let Some(counts) = Counts::of_this_cpu() else { return 0 };
    let Some(waiter) = WAITERS.get_ptr_mut(tid) else { return 0 };
    counts.add(Counter::OtherRuns, 1);
    // SAFETY: this CPU's scratch, and an entry of the map.
    unsafe {
        let now = (*scratch).walk.taken_ns;
        let at = (*waiter).cause as usize & (CAUSES - 1);
        let cause = addr_of_mut!((*waiter).causes).cast::<Cause>().add(at);
        let stack = stack_alone(scratch);
        ((*waiter).stack, (*cause).stack, (*cause).walked_ns) = (stack, stack, now);
        0
    }
}
