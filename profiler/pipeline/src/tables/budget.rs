//! How much of a core something may take: what it took in, whether it may go on out.

use std::time::{Duration, Instant};

/// A share of a core, and how much may be taken ahead.
#[derive(Debug)]
pub struct Budget {
    share: f64,
    ahead: Duration,
    left: Duration,
    at: Instant,
}

impl Budget {
    /// A budget of which all of `ahead` may be taken at first.
    pub fn new(share: f64, ahead: Duration) -> Self {
        Self { share, ahead, left: ahead, at: Instant::now() }
    }

    /// So much was taken. The answer: how long to wait before more is.
    pub fn take(&mut self, took: Duration, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.at).mul_f64(self.share);
        self.at = self.at.max(now);
        self.left = (self.left + gained).min(self.ahead);
        let debt = took.saturating_sub(self.left);
        self.left = self.left.saturating_sub(took);
        // It is paid while nothing is done.
        self.at += debt.div_f64(self.share);
        debt.div_f64(self.share)
    }

    /// Whether nothing has to be waited for.
    pub fn is_free(&self, now: Instant) -> bool {
        now >= self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_is_free_and_then_a_share() {
        let mut budget = Budget::new(0.5, Duration::from_secs(1));
        let start = budget.at;
        assert_eq!(budget.take(Duration::from_millis(900), start), Duration::ZERO);
        assert_eq!(budget.take(Duration::from_millis(300), start), Duration::from_millis(400));
        assert!(!budget.is_free(start + Duration::from_millis(399)));
        let later = start + Duration::from_millis(400);
        assert!(budget.is_free(later));
        assert_eq!(budget.take(Duration::from_millis(10), later), Duration::from_millis(20));
        let later = later + Duration::from_secs(60);
        assert_eq!(budget.take(Duration::from_secs(1), later), Duration::ZERO, "no more than that ahead");
        assert_ne!(budget.take(Duration::from_millis(1), later), Duration::ZERO);
    }
}
