//! Moments of a window, which lies on the wall clock.

use emberscope_model::WallTime;
use std::time::Duration;

/// Tells once a window that a moment of it has passed: the number of the last window.
#[derive(Debug, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// The moment is `after` the window's start, which lies on the wall clock.
    pub(super) fn passed(&mut self, window: Duration, after: Duration) -> bool {
        let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let number = WallTime::now().0.saturating_sub(ns(after)) / ns(window).max(1);
        std::mem::replace(&mut self.0, number) != number
    }
}

/// How long the window that is now still lasts, and a little more.
pub(super) fn until_end(window: Duration) -> Duration {
    let length = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos(length - WallTime::now().0 % length) + Duration::from_micros(500)
}
