//! What the kernel keeps of a thread whose waits are watched, and which of its waits have their stack walked.
//!
//! Walking at each switch would be too dear, and a wait that is not walked must still be counted. So waits are told apart by
//! their *cause*: the system call and how deep the thread's stack was. The first wait of a cause is walked, and later ones
//! with a chance in proportion to how long waits of this cause last. Those that are not walked count as much as they lasted,
//! at the stack of their cause's that was walked last. So a thread's sum of waits is exact, and chance decides only which of
//! a cause's stacks an amount goes to. Of a cause the walked stack is at most [`REFRESH_NS`] old, well within the epochs for
//! which the daemon keeps it.

/// Threads whose waits are watched, at most. 1 MiB.
pub const MAX_WAITERS: u32 = 2048;

/// Causes kept of a thread.
pub const CAUSES: usize = 8;

/// A wait at least as long is told by itself, and short ones are told when they are this long together.
pub const LONG_NS: u64 = 10_000_000;

/// A cause's stack is walked again when it is older.
pub const REFRESH_NS: u64 = 5_000_000_000;

/// Stacks of a thread that are walked in a second (of 2^30 ns), at most. At 10 us each half a percent of its time.
const MAX_WALKS_A_SECOND: u32 = 500;

/// A cause.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Which; 0: none.
    pub key: u64,
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
}

impl Cause {
    /// Takes in one that lasted so long. Rises at once and falls slowly: a long one that was not expected costs precision,
    /// a short one a walk.
    #[inline(always)]
    pub fn lasted(&mut self, ns: u64) {
        self.usual_ns = if ns >= self.usual_ns { ns } else { self.usual_ns - (self.usual_ns - ns) / 8 };
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

/// A thread whose waits are watched. The thread's own CPU writes while it leaves, who wakes it once it is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// When the wait began.
    pub began_ns: u64,
    /// Process.
    pub pid: u32,
    /// Number of the thread's name.
    pub name_seq: u32,
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
    /// What it waited for last.
    pub causes: [Cause; CAUSES],
}

impl Waiter {
    /// The hash of the stack at which it waits.
    pub fn stack(&self) -> u64 {
        self.causes.get(self.cause as usize).map_or(0, |cause| cause.stack)
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
    assert!(size_of::<Waiter>() == 40 + CAUSES * 48);
    assert!(CAUSES.is_power_of_two());
};

#[cfg(test)]
mod tests {
    use super::*;

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
        cause.lasted(3 * LONG_NS);
        assert_eq!(cause.usual_ns, 3 * LONG_NS, "rises at once");
        assert_eq!(cause.chance(0), 1 << 16);
    }

    #[test]
    fn walks_of_a_second_are_bounded() {
        let mut waiter = Waiter::default();
        let walked = (0..2_000).filter(|_| waiter.may_walk(5 << 30)).count();
        assert_eq!(walked, MAX_WALKS_A_SECOND as usize);
        assert!(waiter.may_walk(6 << 30), "the next has its own");
    }
}
