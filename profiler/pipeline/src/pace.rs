//! When the ring is read next. A program that starts is told at once, and its libraries follow within milliseconds:
//! for a moment the ring is read often, so that its unwind tables are known before it has done much.

use std::time::{Duration, Instant};

/// How long a read of the ring waits: the delay of an event, and our wake-ups a second on an idle node.
const READ_TIMEOUT: Duration = Duration::from_millis(200);
/// The same while a program starts; and the least time from one read to the next, whoever wakes us.
const SOON: Duration = Duration::from_millis(2);
/// How long a program starts.
const START: Duration = Duration::from_millis(12);

/// The pace.
#[derive(Debug)]
pub struct Pace {
    last: Instant,
    until: Instant,
}

impl Pace {
    /// Slow.
    pub fn new() -> Self {
        let now = Instant::now();
        Self { last: now, until: now }
    }

    /// A program started.
    pub fn started(&mut self) {
        self.until = Instant::now() + START;
    }

    /// How long to do nothing, and how long to wait for events then.
    pub fn next(&mut self) -> (Duration, Duration) {
        let now = Instant::now();
        let rest = SOON.saturating_sub(now.saturating_duration_since(self.last));
        self.last = now + rest;
        (rest, if now < self.until { SOON } else { READ_TIMEOUT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn often_only_while_a_program_starts() {
        let mut pace = Pace::new();
        pace.last = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(pace.next(), (Duration::ZERO, READ_TIMEOUT));
        pace.started();
        let (rest, timeout) = pace.next();
        assert!(rest > Duration::ZERO && rest <= SOON && timeout == SOON);
    }
}
