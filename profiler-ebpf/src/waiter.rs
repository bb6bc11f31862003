//! What the kernel keeps of a thread whose waits are watched, and which of its waits have their stack walked.
//!
//! Walking at each switch would be too dear, and a wait that is not walked must still be counted. So waits are told apart by
//! their *cause*: the system call and how deep the thread's stack was. The first wait of a cause is walked, and later ones
//! with a chance in proportion to how long waits of this cause last. Those that are not walked count as much as they lasted,
//! at the stack of their cause's that was walked last. So a thread's sum of waits is exact, and chance decides only which of
//! a cause's stacks an amount goes to. Of a cause the walked stack is at most [`REFRESH_NS`] old, well within the epochs for
//! which the daemon keeps it.

/// Threads whose waits are watched, at most. 1.2 MiB: 616 bytes an entry, 16 a bucket.
pub const MAX_WAITERS: u32 = 2048;

/// Causes kept of a thread.
pub const CAUSES: usize = 8;

/// A wait at least as long is told by itself. Short ones are told when they are a period long together
/// ([`together_ns`]), so that of a cause there are about as many records as stacks.
pub const LONG_NS: u64 = 10_000_000;

/// A cause's stack is walked again when it is older.
pub const REFRESH_NS: u64 = 5_000_000_000;

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

/// How long short waits of a cause are together when they are told, where a stack is walked each so much of waiting.
#[inline(always)]
pub const fn together_ns(every_ns: u64) -> u64 {
    if every_ns < LONG_NS { LONG_NS } else { every_ns }
}

/// A cause.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Hash of its stack that was walked last.
    pub stack: u64,
    /// When that was.
    pub walked_ns: u64,
    /// How long it lasts, about.
    pub usual_ns: u64,
    /// How long waits lasted that were not told yet.
    pub owed_ns: u64,
    /// When the first of these began.
    pub owed_since_ns: u64,
    /// How many these are.
    pub owed: u64,
}

impl Cause {
    /// A wait that began then is owed: it is told with others.
    #[inline(always)]
    pub fn owe(&mut self, began_ns: u64, ns: u64) {
        if self.owed_ns == 0 {
            self.owed_since_ns = began_ns;
        }
        self.owed_ns += ns;
        self.owed += 1;
    }

    /// What is owed, which is told now: how long all of these waits lasted, and how many they are.
    #[inline(always)]
    pub fn settle(&mut self) -> (u64, u64) {
        let owed = (self.owed_ns, self.owed);
        (self.owed_ns, self.owed) = (0, 0);
        owed
    }

    /// Takes in one that lasted so long: a mean of the last ones, about eight. So walks are as many as the time that is
    /// waited asks for, whatever single waits last.
    #[inline(always)]
    pub fn lasted(&mut self, ns: u64) {
        let usual = self.usual_ns;
        self.usual_ns = if usual == 0 {
            ns
        } else if ns >= usual {
            usual + (ns - usual) / 8
        } else {
            usual - (usual - ns) / 8
        };
    }

    /// Of 2^16 waits of this cause, how many are walked; never none.
    #[inline(always)]
    pub fn chance(&self, every_ns: u64) -> u32 {
        if self.usual_ns >= every_ns {
            return 1 << 16;
        }
        let chance = (self.usual_ns << 16) / if every_ns == 0 { 1 } else { every_ns };
        if chance < LEAST_CHANCE { LEAST_CHANCE as u32 } else { chance as u32 }
    }
}

/// One of 512.
const LEAST_CHANCE: u64 = 1 << 7;

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
    /// The hash of the stack at which it waits.
    pub fn stack(&self) -> u64 {
        self.causes.get(self.cause as usize).map_or(0, |cause| cause.stack)
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
    assert!(size_of::<Cause>() == 48);
    assert!(size_of::<Throttled>() == 32);
    assert!(size_of::<Waiter>() == 64 + CAUSES * 56 + 32 + 16);
    assert!(CAUSES.is_power_of_two() && FILTER_SLOTS.is_power_of_two());
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
    fn the_chance_follows_how_long_waits_last() {
        let mut cause = Cause::default();
        assert_eq!(cause.chance(LONG_NS), LEAST_CHANCE as u32, "never none");
        cause.lasted(LONG_NS);
        assert_eq!(cause.chance(LONG_NS), 1 << 16, "all of those that are long");
        for _ in 0..200 {
            cause.lasted(1_000_000);
        }
        let tenth = (1 << 16) / 10;
        assert!((tenth..tenth + 10).contains(&cause.chance(LONG_NS)), "{}", cause.chance(LONG_NS));
        for _ in 0..200 {
            cause.lasted(3 * LONG_NS);
        }
        assert!(cause.usual_ns > 3 * LONG_NS - 10);
        assert_eq!(cause.chance(0), 1 << 16);
    }

    #[test]
    fn walks_follow_the_time_that_is_waited() {
        // Nine of ten waits are short; each tenth lasts a hundred times as long.
        let (mut cause, mut waited, mut walks) = (Cause::default(), 0, 0.0);
        for wait in 0..10_000 {
            let ns = if wait % 10 == 9 { LONG_NS / 2 } else { LONG_NS / 200 };
            walks += f64::from(cause.chance(LONG_NS)) / 65536.0;
            cause.lasted(ns);
            waited += ns;
        }
        let asked = waited as f64 / LONG_NS as f64;
        assert!((walks / asked - 1.0).abs() < 0.05, "{walks} walks for {asked} periods");
    }

    #[test]
    fn each_wait_that_is_owed_is_told_once() {
        let mut cause = Cause { stack: 7, ..Cause::default() };
        cause.owe(100, 30);
        cause.owe(200, 5);
        assert_eq!((cause.owed_since_ns, cause.owed_ns, cause.owed), (100, 35, 2));
        assert_eq!(cause.settle(), (35, 2));
        assert_eq!(cause.settle(), (0, 0));
        cause.owe(300, 1);
        assert_eq!((cause.owed_since_ns, cause.settle(), cause.stack), (300, (1, 1), 7));
    }

    #[test]
    fn short_waits_are_told_as_often_as_stacks_are_walked() {
        assert_eq!(together_ns(1), LONG_NS, "none more often for a finer period");
        assert_eq!(together_ns(5 * LONG_NS), 5 * LONG_NS);
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
