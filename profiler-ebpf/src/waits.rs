//! How long a task's thread slept until Python woke it.
//!
//! A thread that sleeps runs again only after a wake-up, so between two wake-ups of a thread lies one sleep, at the end: it is
//! what is left of the time between them after the time on a CPU and the time of waiting for one. All three are the
//! kernel's, exact at a wake-up, when the thread does not run. Its count of voluntary switches tells that it was one sleep, and
//! that no wake-up was missed: before there was a worker none is seen. In: wake-ups of threads that run tasks, whoever wakes
//! (`workers`). Out: the sum of the sleeps that a Python process of the executor ended.
//!
//! Time in which the CPU served interrupts, or was the hypervisor's, is in nobody's account, and counts as sleep here as in
//! what the ledger calls blocked.
#![allow(unsafe_code)]

use crate::globals::{TASK_CPU, TASK_NVCSW, TASK_ON_CPU, TASK_RUN_DELAY};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use profiler_ebpf::ThreadRecord;

/// What is kept of a thread's sleeps.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slept {
    /// Its last wake-up, or the beginning of the task; 0: none that is known.
    since_ns: u64,
    /// Its account then.
    cpu_ns: u64,
    run_delay_ns: u64,
    switches: u64,
    /// Sleeps that Python ended, in all.
    pub python_ns: u64,
}

impl Slept {
    /// Nothing is known.
    pub const NONE: Self = Self { since_ns: 0, cpu_ns: 0, run_delay_ns: 0, switches: 0, python_ns: 0 };

    /// A thread begins a task, `record` being its account; `own` is whether `slept` is what was kept of it before.
    ///
    /// # Safety
    /// `slept` is of an entry of the map, and `record` may be read.
    #[inline(always)]
    pub unsafe fn runs(slept: *mut Self, own: bool, record: *const ThreadRecord) {
        // SAFETY: by contract.
        unsafe {
            (*slept).since_ns = (*record).time_ns;
            (*slept).cpu_ns = (*record).cpu_ns;
            (*slept).run_delay_ns = (*record).run_delay_ns;
            (*slept).switches = (*record).voluntary_switches;
            if !own {
                (*slept).python_ns = 0;
            }
        }
    }
}

/// A thread is woken.
///
/// # Safety
/// `slept` is of an entry of the map; `task` is read without faulting, whatever it is.
#[inline(always)]
pub unsafe fn woken(slept: *mut Slept, task: *const u8, by_python: bool) {
    let (on_cpu, cpu, delay, switches) =
        (TASK_ON_CPU.load(), TASK_CPU.load(), TASK_RUN_DELAY.load(), TASK_NVCSW.load());
    if on_cpu == 0 || cpu == 0 || delay == 0 || switches == 0 {
        return;
    }
    // SAFETY: by contract; the helper has no preconditions.
    unsafe {
        // Woken before it slept: its account is of its last tick.
        if bpf_probe_read_kernel(task.add(on_cpu as usize).cast::<u32>()) != Ok(0) {
            return;
        }
        let word = |at: u32| bpf_probe_read_kernel(task.add(at as usize).cast::<u64>()).unwrap_or(0);
        let then = slept.read();
        let mut now = Slept {
            since_ns: bpf_ktime_get_ns(),
            cpu_ns: word(cpu),
            run_delay_ns: word(delay),
            switches: word(switches),
            ..then
        };
        if by_python && then.since_ns != 0 && now.switches.wrapping_sub(then.switches) == 1 {
            let ran = now.cpu_ns.wrapping_sub(then.cpu_ns);
            let awake = ran.wrapping_add(now.run_delay_ns.wrapping_sub(then.run_delay_ns));
            now.python_ns += now.since_ns.saturating_sub(then.since_ns).saturating_sub(awake);
        }
        slept.write(now);
    }
}
