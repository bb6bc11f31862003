//! When the ring is read next. A program that starts is told at once, and its libraries follow within milliseconds:
//! for a moment the ring is read often, so that its unwind tables are known before it has done much. The same while code
//! is met for the first time that its process may drop again (Python's): its name is there only as long as it is.

use std::time::{Duration, Instant};

/// How long a read of the ring waits: the delay of an event, and our wake-ups a second on an idle node.
const READ_TIMEOUT: Duration = Duration::from_millis(200);
/// The same while a program starts; and the least time from one read to the next, whoever wakes us.
const SOON: Duration = Duration::from_millis(2);
/// How long a program starts.
const START: Duration = Duration::from_millis(12);

/// How long a read of the ring waits while code comes that may go again: it lives some tens of milliseconds at least, or
/// is hardly sampled. At most a hundred reads a second, and only while more of it comes. The same while a process is read of
/// which it is not known yet how it is walked.
const PASSING: Duration = Duration::from_millis(10);
/// For how long more of it is expected.
const MORE: Duration = Duration::from_millis(500);

/// When the ring is read next: until when it is read often.
#[derive(Debug)]
pub struct Pace {
    last: Instant,
    /// Until when a program starts.
    starting: Instant,
    /// Until when code that may go again is expected.
    passing: Instant,
}

impl Pace {
    /// The slow pace.
    pub fn new() -> Self {
        let now = Instant::now();
        Self { last: now, starting: now, passing: now }
    }

    /// A program started.
    pub fn started(&mut self) {
        self.starting = Instant::now() + START;
    }

    /// Code that may go again was met for the first time.
    pub fn passing(&mut self) {
        self.passing = Instant::now() + MORE;
    }

    /// How long to do nothing, and how long to wait for events then; `awaits`: something else is about to come.
    pub fn next(&mut self, awaits: bool) -> (Duration, Duration) {
        let now = Instant::now();
        let rest = SOON.saturating_sub(now.saturating_duration_since(self.last));
        self.last = now + rest;
        let timeout = if now < self.starting {
            SOON
        } else if awaits || now < self.passing {
            PASSING
        } else {
            READ_TIMEOUT
        };
        (rest, timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn often_only_while_a_program_starts_or_code_passes() {
        let mut pace = Pace::new();
        pace.last = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(pace.next(false), (Duration::ZERO, READ_TIMEOUT));
        assert_eq!(pace.next(true).1, PASSING);
        pace.passing();
        assert_eq!(pace.next(false).1, PASSING);
        pace.started();
        let (rest, timeout) = pace.next(false);
        assert!(rest > Duration::ZERO && rest <= SOON && timeout == SOON);
    }
}
