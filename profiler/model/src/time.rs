//! Points and ranges of wall-clock time.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Wall-clock time: nanoseconds since the Unix epoch (UTC). Negative values do not occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WallTime(pub u64);

impl WallTime {
    /// Now, by the system's clock.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_nanos() as u64)
    }
    /// The time so many milliseconds after the Unix epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// Milliseconds since the Unix epoch, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds since the Unix epoch, with fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The time, rounded down to a multiple of `step` since the Unix epoch.
    pub fn floor(self, step: Duration) -> Self {
        let step = step.as_nanos().max(1) as u64;
        Self(self.0 - self.0 % step)
    }
    /// The time, rounded up to a multiple of `step` since the Unix epoch.
    pub fn ceil(self, step: Duration) -> Self {
        let step = step.as_nanos().max(1) as u64;
        Self(self.0.div_ceil(step).saturating_mul(step))
    }
    /// The time later by `d`, saturating.
    pub fn plus(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.as_nanos().min(u128::from(u64::MAX)) as u64))
    }
    /// The time earlier by `d`, saturating at the epoch.
    pub fn minus(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.as_nanos().min(u128::from(u64::MAX)) as u64))
    }
}

/// RFC 3339 in UTC, with milliseconds.
impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.as_millis() as i64) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.as_millis()),
        }
    }
}

/// A stretch of wall-clock time, `[from, until)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The first instant that lies in it.
    pub from: WallTime,
    /// The first instant after it.
    pub until: WallTime,
}

impl TimeRange {
    /// Whether the two share an instant.
    pub fn overlaps(&self, other: &TimeRange) -> bool {
        self.from < other.until && other.from < self.until
    }
    /// Whether no instant lies in the range.
    pub fn is_empty(&self) -> bool {
        self.from >= self.until
    }
    /// Makes the range longer, so that all of the other lies in it too.
    pub fn cover(&mut self, other: &TimeRange) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
    }
    /// How long the range is.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.until.0.saturating_sub(self.from.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_covers_what_lies_beyond_it_and_between() {
        let range = |from, until| TimeRange { from: WallTime(from), until: WallTime(until) };
        let mut seen = range(5, 7);
        seen.cover(&range(6, 7));
        assert_eq!(seen, range(5, 7));
        seen.cover(&range(9, 12));
        seen.cover(&range(2, 3));
        assert_eq!(seen, range(2, 12));
    }
}
