//! When somebody is asked again: the longer the more often it was in vain.

use super::Limits;
use std::time::{Duration, Instant};

/// Longest time between two questions while there is no answer. A driver on a busy machine takes 20 s for
/// its first one (it loads some thousand classes), and is not asked to do so twice.
const SLOWEST: Duration = Duration::from_secs(10);
/// So often nobody listens that is no question in vain: a driver's web server is up some seconds after the JVM began, and after two
/// questions that came too early the third would come nine seconds after the first, when a short run is nearly over.
pub(super) const STARTS: u32 = 30;

/// When somebody is asked next, and how often that was in vain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub next: Instant,
    pub times: u32,
    pub waiting: bool,
    /// How often nobody listened.
    absent: u32,
}

impl Turn {
    pub fn new() -> Self {
        Self { next: Instant::now(), times: 0, waiting: false, absent: 0 }
    }
    pub fn due(&self, now: Instant) -> bool {
        !self.waiting && now >= self.next
    }
    pub fn asked(&mut self, now: Instant, limits: &Limits) {
        self.waiting = true;
        self.next = now + limits.ask_interval.saturating_mul(1 << self.times.min(16)).min(SLOWEST);
        self.times = self.times.saturating_add(1);
    }
    /// Whether the one that was asked listens at all.
    pub fn met(&mut self, listens: bool) {
        if !listens && self.absent < STARTS {
            self.absent += 1;
            self.times = self.times.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_listen_yet_is_asked_as_often_as_at_first_for_a_while() {
        let (mut turn, now) = (Turn::new(), Instant::now());
        let limits = Limits::default();
        let mut asked = |listens| {
            turn.asked(now, &limits);
            turn.waiting = false;
            turn.met(listens);
            turn.next - now
        };
        for _ in 0..STARTS {
            assert_eq!(asked(false), limits.ask_interval);
        }
        // Its web server is up, and slow; or there will be none.
        for listens in [true, false] {
            assert!(asked(listens) <= 2 * limits.ask_interval);
        }
        assert_eq!([asked(true), asked(false), asked(false)][2], SLOWEST);
    }
}
