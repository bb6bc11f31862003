//! What the kernel keeps of a thread whose waits are watched. What it keeps of each cause, and which waits have their stack
//! walked: [`Cause`].

use super::cause::{CAUSES, Cause, length_of};

/// Threads whose waits are watched, at most. 2.8 MiB: 1,408 bytes an entry, 16 a bucket.
pub const MAX_WAITERS: u32 = 2048;

/// A thread begins to wait anew, as if it had never waited before, with its next task after so long (2^28 ns): what it waits
/// for then is another stage's, maybe. Shorter tasks that follow one another are mostly of one stage.
pub const ANEW_NS: u64 = 1 << 28;

/// Stacks of a thread that are walked in a second (of 2^30 ns), at most. At 10 us each half a percent of its time.
const MAX_WALKS_A_SECOND: u32 = 500;

/// Slots of the filter that ends most switches before any look-up: how many threads whose waits are watched have tids with the
/// same low bits. A power of two; 8 KiB, which stays in a CPU's cache.
pub const FILTER_SLOTS: usize = 1024;

/// The slot of a thread.
#[inline(always)]
pub const fn filter_slot(tid: u32) -> usize {
    tid as usize & (FILTER_SLOTS - 1)
}

/// Where a thread is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterState {
    /// It runs, or could.
    Runs = 0,
    /// It stands still.
    Waits = 1,
}

/// For how long a thread wanted to run while its cgroup was throttled. What the kernel keeps is the time for which a group was
/// throttled on a CPU, with threads of it there: the difference from when a thread began to wait for a CPU (it was
/// preempted, or woken) until it leaves one is its own, if it was of one run queue all the time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// The address of the run queue on which the thread began to wait for a CPU; 0: not known.
    pub queue: u64,
    /// Nanoseconds for which that was throttled by then.
    pub queue_ns: u64,
    /// The thread's run delay by then.
    pub run_delay_ns: u64,
    /// The thread's own, in all.
    pub sum_ns: u64,
}

impl Throttled {
    /// The thread leaves its CPU, with a run delay of so much in all; `queue` and `queue_ns` are of the run queue that it
    /// was on.
    #[inline(always)]
    pub fn leaves(&mut self, queue: u64, queue_ns: u64, run_delay_ns: u64) {
        if self.queue != 0 && self.queue == queue {
            let throttled = queue_ns.saturating_sub(self.queue_ns);
            let delay = run_delay_ns.saturating_sub(self.run_delay_ns);
            // On newer kernels (6.18) a thread runs on in the kernel for a moment while its group is throttled.
            self.sum_ns += if throttled < delay { throttled } else { delay };
        }
        self.queue = 0;
    }

    /// The thread begins to wait for a CPU. One that does already, or that runs, may be woken as well.
    #[inline(always)]
    pub fn wants_to_run(&mut self, queue: u64, queue_ns: u64, run_delay_ns: u64) {
        if self.queue == 0 {
            (self.queue, self.queue_ns, self.run_delay_ns) = (queue, queue_ns, run_delay_ns);
        }
    }
}

/// A thread whose waits are watched, from its first task on. The thread's own CPU writes while it leaves, who wakes it once
/// it is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// When the wait began.
    pub began_ns: u64,
    /// Process.
    pub pid: u32,
    /// Number of the thread's name.
    pub name_seq: u32,
    /// 1: it runs a task.
    pub runs: u32,
    /// 1: its cgroup has a quota of CPU time, or one above it.
    pub quota: u32,
    /// A [`WaiterState`].
    pub state: u32,
    /// Place of the wait's cause.
    pub cause: u32,
    /// 1: this wait was walked.
    pub walked: u32,
    /// Walks in `second`.
    pub walks: u32,
    /// In units of 2^30 ns.
    pub second: u64,
    /// On whose account the entry is, which is given back at the thread's end.
    pub place: u64,
    /// Hash of the stack of this wait, if it was walked.
    pub stack: u64,
    /// When what it waited for before was forgotten.
    pub anew_ns: u64,
    /// The thread's `JavaThread*`, as it said when it named itself; 0: not known.
    pub java: u64,
    /// What it waited for last; 0: nothing. Together, as they are looked at at each switch.
    pub keys: [u64; CAUSES],
    /// What is kept of each.
    pub causes: [Cause; CAUSES],
    /// How long it was throttled.
    pub throttled: Throttled,
    /// Time on a CPU that the kernel had on its account when the wait began.
    pub cpu_ns: u64,
    /// Likewise time of waiting for a CPU.
    pub run_delay_ns: u64,
}

impl Waiter {
    /// The hash of the stack at which it waits, for so long until now.
    pub fn stack(&self, lasted_ns: u64, now_ns: u64) -> u64 {
        if self.walked != 0 {
            return self.stack;
        }
        let cause = self.causes.get(self.cause as usize);
        cause.map_or(0, |cause| cause.stack_of(length_of(lasted_ns), now_ns))
    }

    /// How long it stood still since the wait began: all but what its account of `now_ns` says that it ran, and waited to run.
    /// It runs then, and nobody told the wait's end.
    #[inline(always)]
    pub fn stood_still(&self, now_ns: u64, cpu_ns: u64, run_delay_ns: u64) -> u64 {
        let awake =
            cpu_ns.wrapping_sub(self.cpu_ns).wrapping_add(run_delay_ns.wrapping_sub(self.run_delay_ns));
        now_ns.saturating_sub(self.began_ns).saturating_sub(awake)
    }

    /// Whether one more stack may be walked now, which is then counted.
    #[inline(always)]
    pub fn may_walk(&mut self, now_ns: u64) -> bool {
        let second = now_ns >> 30;
        if self.second != second {
            self.second = second;
            self.walks = 0;
        }
        self.walks += 1;
        self.walks <= MAX_WALKS_A_SECOND
    }
}

const _: () = {
    assert!(size_of::<Throttled>() == 32);
    assert!(size_of::<Waiter>() == 80 + CAUSES * (8 + size_of::<Cause>()) + 32 + 16);
    assert!(FILTER_SLOTS.is_power_of_two());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_an_end_is_what_its_thread_did_not_use() {
        let waiter = Waiter { began_ns: 1000, cpu_ns: 70, run_delay_ns: 20, ..Waiter::default() };
        assert_eq!(waiter.stood_still(1500, 170, 50), 370);
        assert_eq!(waiter.stood_still(1100, 270, 20), 0, "accounts of another clock");
    }

    #[test]
    fn a_thread_is_throttled_while_it_wants_to_run() {
        let mut throttled = Throttled::default();
        throttled.leaves(7, 500, 100);
        assert_eq!(throttled.sum_ns, 0, "when it began to wait is not known");
        throttled.wants_to_run(7, 500, 100);
        throttled.leaves(7, 530, 140);
        assert_eq!(throttled.sum_ns, 30, "10 more it waited for a CPU");
        throttled.leaves(7, 590, 200);
        assert_eq!(throttled.sum_ns, 30, "it slept, or ran");
        throttled.wants_to_run(7, 590, 200);
        throttled.leaves(8, 700, 300);
        assert_eq!(throttled.sum_ns, 30, "moved to another CPU: not known");
        throttled.wants_to_run(8, 700, 300);
        throttled.wants_to_run(8, 750, 300);
        throttled.leaves(8, 900, 350);
        assert_eq!(throttled.sum_ns, 80, "never more than its run delay");
    }

    #[test]
    fn walks_of_a_second_are_bounded() {
        let mut waiter = Waiter::default();
        let walked = (0..2_000).filter(|_| waiter.may_walk(5 << 30)).count();
        assert_eq!(walked, MAX_WALKS_A_SECOND as usize);
        assert!(waiter.may_walk(6 << 30), "the next has its own");
    }
}
