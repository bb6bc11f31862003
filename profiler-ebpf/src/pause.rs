//! What the kernel keeps of a JVM whose pauses are seen.

/// Pauses of one process that are told in a second (of 2^30 ns), at most. A JVM that does nothing but collect has some
/// hundreds.
pub const MAX_PAUSES_A_SECOND: u64 = 1000;

/// A process's pauses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When the pause began that is not over, CLOCK_MONOTONIC; 0: there is none.
    pub began_ns: u64,
    /// When the pause before ended, CLOCK_MONOTONIC; 0: none was seen.
    pub ended_ns: u64,
    /// Address of the virtual table of its first operation; 0: none yet.
    pub operation: u64,
    /// How long all pauses before lasted, nanoseconds.
    pub sum_ns: u64,
    /// A second, in the upper part, and the pauses told in it.
    pub told: u64,
}

impl Standing {
    /// When a pause began of which its function is run at `now_ns`, and which began `since_ns` after the one before ended,
    /// as the JVM measured it. Both are too late where the VM thread had to wait for a CPU after it took the time: the
    /// earlier is nearer.
    #[inline(always)]
    pub fn begin(&self, now_ns: u64, since_ns: u64) -> u64 {
        let told = self.ended_ns.wrapping_add(since_ns);
        if self.ended_ns == 0 || told < self.ended_ns || told > now_ns { now_ns } else { told }
    }

    /// Whether one more pause may be told now, which is then counted.
    #[inline(always)]
    pub fn one_more(&mut self, now_ns: u64) -> bool {
        let second = now_ns >> 30 << 32;
        if self.told >> 32 << 32 != second {
            self.told = second;
        }
        if self.told & 0xffff_ffff >= MAX_PAUSES_A_SECOND {
            return false;
        }
        self.told += 1;
        true
    }
}

const _: () = assert!(size_of::<Standing>() == 40);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_at_the_earlier_of_two_times() {
        let standing = Standing { ended_ns: 100, ..Standing::default() };
        assert_eq!(
            (standing.begin(150, 45), standing.begin(150, 60), standing.begin(150, u64::MAX)),
            (145, 150, 150)
        );
        assert_eq!(Standing::default().begin(150, 45), 150, "there was none before");
    }

    #[test]
    fn a_process_tells_so_many_pauses_in_a_second() {
        let mut standing = Standing::default();
        let now = 77 << 30;
        assert_eq!((0..5000).filter(|n| standing.one_more(now + n)).count() as u64, MAX_PAUSES_A_SECOND);
        assert!(standing.one_more(now + (1 << 30)));
    }
}
