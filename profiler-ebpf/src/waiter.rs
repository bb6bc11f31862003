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
mod tests;
