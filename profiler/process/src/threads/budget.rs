//! How many new tasks a process may bring a minute before they fold: names are the process's word, and a
//! hostile one could name a thousand tasks a second.

/// A minute in nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// A bucket that fills up within a minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Time, in nanoseconds, that is paid for already; a task costs a minute over the limit.
    paid_until_ns: u64,
}

impl Budget {
    /// A full bucket.
    pub fn new() -> Self {
        Self { paid_until_ns: 0 }
    }
    /// Takes a task's share, if there is one.
    pub fn take(&mut self, now_ns: u64, a_minute: u32) -> bool {
        let Some(price) = MINUTE.checked_div(u64::from(a_minute)) else { return false };
        let paid = self.paid_until_ns.max(now_ns.saturating_sub(MINUTE)).saturating_add(price);
        let there = paid <= now_ns;
        if there {
            self.paid_until_ns = paid;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut budget = Budget::new();
        let start = 1_000 * MINUTE;
        let taken = (0..1_000).filter(|_| budget.take(start, 100)).count();
        assert_eq!(taken, 100);
        let taken = (0..1_000).filter(|i| budget.take(start + i * MINUTE / 1_000, 100)).count();
        assert_eq!(taken, 99, "one each 0.6 s, the last of which is not over");
        assert!(!Budget::new().take(start, 0));
    }
}
