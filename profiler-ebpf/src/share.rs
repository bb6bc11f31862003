//! What the kernel keeps of each user, and of each of his cgroups, to share the ring, and the tables of named and of
//! waiting threads.
//!
//! The program side is in `shares`; the daemon reads what each user lost, and tells which users run Spark.

/// Slots in a set of [`Share`]s: an owner finds his in one of these.
pub const SHARE_WAYS: u32 = 4;

/// Sets of users', and as many of cgroups'; a power of two. 512 users, 512 of their cgroups: 128 KiB.
pub const SHARE_SETS: u32 = 128;

/// Where the cgroups' slots begin.
pub const GROUPS_AT: u32 = SHARE_SETS * SHARE_WAYS;

/// The slot of what all have together.
pub const TOTAL_AT: u32 = GROUPS_AT * 2;

/// Slots in all.
pub const SHARE_SLOTS: u32 = TOTAL_AT + 1;

/// Users with a process of Spark's that are told to the programs, at most.
pub const MAX_SPARK_USERS: u32 = 1024;

/// What Spark's users may take, as a multiple of what others may: three quarters of what one of each fill.
pub const SPARK_WEIGHT: u64 = 3;

/// Names that the threads of a user who runs no Spark tell in a second (of 2^30 ns), at most; of one who does, three
/// times as many: 100 tasks a second on each of 300 cores.
pub const MAX_NAMES_OF_USER: u64 = 20_000;

/// What a user can lose for want of room; the value is its place in [`Share::lost`].
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// A stack's record: the sample goes up without.
    Stack = 0,
    /// A sample.
    Sample = 1,
    /// An exec, fork or exit.
    Task = 2,
    /// A thread's name, or its end.
    Thread = 3,
    /// A place in the table of named threads.
    Place = 4,
    /// A name that was one too many in its second.
    Name = 5,
    /// A pause of a JVM.
    Pause = 6,
    /// A place in the table of threads whose waits are watched.
    Waiter = 7,
}

impl Loss {
    /// All of them, in the order of their places.
    pub const ALL: [Self; 8] = [
        Self::Stack,
        Self::Sample,
        Self::Task,
        Self::Thread,
        Self::Place,
        Self::Name,
        Self::Pause,
        Self::Waiter,
    ];
}

/// What a user, or a cgroup of his, has in the ring and in the tables of threads. Positions are those of the ring, which
/// only grow: what was put before the reader's has been read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Whose: a user's uid and one; of a cgroup a hash that is not 0. 0: nobody's.
    pub owner: u64,
    /// `older` was put before this position, `newer` after it.
    pub mark: u64,
    /// Nothing was put after this position.
    pub last: u64,
    /// Bytes.
    pub older: u64,
    /// Bytes.
    pub newer: u64,
    /// A second, in the upper half, and the names told in it.
    pub names: u64,
    /// Entries in the table of named threads.
    pub threads: u64,
    /// Entries in the table of threads whose waits are watched.
    pub waiters: u64,
    /// What he lost, by [`Loss`]; a user's only.
    pub lost: [u64; 8],
}

impl Share {
    /// Bytes of his in the ring, when the reader is at `read` and the writers are at `written`. Forgets what was read: all,
    /// or all before the mark, so that it says too much rather than too little.
    #[inline(always)]
    pub fn in_ring(&mut self, read: u64, written: u64) -> u64 {
        if read >= self.last {
            self.older = 0;
            self.newer = 0;
            self.mark = written;
        } else if read >= self.mark {
            self.older = self.newer;
            self.newer = 0;
            self.mark = written;
        }
        self.older + self.newer
    }

    /// Notes a record of his.
    #[inline(always)]
    pub fn put(&mut self, bytes: u64, written: u64) {
        self.newer += bytes;
        self.last = written + bytes;
    }

    /// Whether one more name may be told now, which is then counted.
    #[inline(always)]
    pub fn one_more_name(&mut self, now_ns: u64, limit: u64) -> bool {
        let second = now_ns >> 30 << 32;
        if self.names >> 32 << 32 != second {
            self.names = second;
        }
        if self.names & 0xffff_ffff >= limit {
            return false;
        }
        self.names += 1;
        true
    }
}

const _: () = {
    assert!(size_of::<Share>() == 128);
    assert!(SHARE_SETS.is_power_of_two());
    assert!(Loss::ALL.len() <= 8);
};
