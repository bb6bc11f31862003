//! When somebody is asked again: the longer the more often it was in vain.

use super::Limits;
use std::time::{Duration, Instant};

/// Longest time between two questions while there is no answer. A driver on a busy machine takes 20 s for
/// its first one (it loads some thousand classes), and is not asked to do so twice.
const SLOWEST: Duration = Duration::from_secs(10);

/// When somebody is asked next, and how often that was in vain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub next: Instant,
    pub times: u32,
    pub waiting: bool,
}

impl Turn {
    pub fn new() -> Self {
        Self { next: Instant::now(), times: 0, waiting: false }
    }
    pub fn due(&self, now: Instant) -> bool {
        !self.waiting && now >= self.next
    }
    pub fn asked(&mut self, now: Instant, limits: &Limits) {
        self.waiting = true;
        self.next = now + limits.ask_interval.saturating_mul(1 << self.times.min(16)).min(SLOWEST);
        self.times = self.times.saturating_add(1);
    }
}
