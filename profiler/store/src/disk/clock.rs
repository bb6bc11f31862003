//! The times by which the store works: when hours are over, and when windows are old.
//!
//! Hours are over by the wall clock as it was at the start, and the monotonic clock from then on. By the same clock
//! windows would grow old at once where a machine boots with a clock that is days ahead, before anything set it right.
//! So age goes by a *mark*, which is kept in the store (`clock`): it goes on with the time that really passes, and a
//! [`STEP`] more an hour until it has reached the wall clock; while the kernel says that nothing has set the clock
//! since the boot (adjtimex(2), STA_UNSYNC) it makes no steps. It is never ahead of the wall clock.

#![allow(unsafe_code)]

use emberscope_model::WallTime;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How far the mark goes in an hour of running, beside that hour: a node that was off for two weeks ages them in a
/// day, and a clock that is wrong for an hour costs at most a day.
const STEP: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);
const NAME: &str = "clock";
/// Bytes of the file that are read at most: the digits of a number of 64 bits.
const MAX_BYTES: usize = 32;

#[derive(Debug)]
pub(super) struct Clock {
    wall: WallTime,
    since: Instant,
    mark: WallTime,
    file: PathBuf,
    /// Whether something keeps the clock right; None: the kernel does not tell.
    synchronized: fn() -> Option<bool>,
}

impl Clock {
    pub fn start(store: &Path) -> Self {
        Self::with(store, WallTime::now(), synchronized)
    }

    /// A clock whose wall clock has some time, for tests.
    pub fn with(store: &Path, wall: WallTime, synchronized: fn() -> Option<bool>) -> Self {
        let file = store.join(NAME);
        let text = fs::read(&file).ok().filter(|bytes| bytes.len() <= MAX_BYTES);
        let mark = text.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse().ok());
        let mark = mark.map_or(wall, WallTime);
        if mark.plus(STEP) < wall {
            tracing::warn!(
                days = Duration::from_nanos(wall.0.saturating_sub(mark.0)).as_secs() / 86_400,
                "the clock is far ahead of when the store was last written: windows grow old by a day an hour at most"
            );
        }
        Self { wall, since: Instant::now(), mark, file, synchronized }
    }

    /// The time by which hours are over.
    pub fn now(&self) -> WallTime {
        self.wall.plus(self.since.elapsed())
    }

    /// The time by which windows are old.
    pub fn age(&self) -> WallTime {
        let elapsed = self.since.elapsed();
        aged(self.mark, self.wall, elapsed, (self.synchronized)())
    }

    /// Keeps the mark for the next start.
    ///
    /// # Errors
    /// The mark cannot be written beside the old one, or not renamed. The old mark stays then.
    pub fn keep(&self) -> std::io::Result<()> {
        let aside = self.file.with_file_name(".clock");
        fs::write(&aside, self.age().0.to_string())?;
        fs::rename(&aside, &self.file)
    }
}

/// The time by which windows are old: after so long from a mark, and from a wall clock.
fn aged(mark: WallTime, wall: WallTime, elapsed: Duration, synchronized: Option<bool>) -> WallTime {
    let hours = u32::try_from(elapsed.as_secs() / HOUR.as_secs()).unwrap_or(u32::MAX);
    let steps = if synchronized == Some(false) { Duration::ZERO } else { STEP.saturating_mul(hours) };
    mark.plus(elapsed).plus(steps).min(wall.plus(elapsed))
}

fn synchronized() -> Option<bool> {
    // SAFETY: an all zero timex is one (integers only); with no modes the call reads, into a structure of ours.
    let state = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        libc::adjtimex(&raw mut timex)
    };
    match state {
        // Seccomp refuses it under the unit that comes with the daemon.
        ..0 => None,
        state => Some(state != libc::TIME_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;
    fn at(days: u64) -> WallTime {
        WallTime(days * DAY * 1_000_000_000)
    }

    #[test]
    fn a_jump_ages_nothing_at_once_and_a_day_an_hour_then() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        // The machine boots with a clock 30 days ahead.
        for known in [None, Some(true)] {
            assert_eq!(aged(at(100), at(130), Duration::ZERO, known), at(100));
            assert_eq!(aged(at(100), at(130), hours(1), known), at(101).plus(hours(1)));
            assert_eq!(aged(at(100), at(130), hours(48), known), at(132));
        }
        assert_eq!(aged(at(100), at(130), hours(5), Some(false)), at(100).plus(hours(5)));
        // Behind, it keeps more.
        assert_eq!(aged(at(100), at(90), hours(24), Some(true)), at(91));
    }

    #[test]
    fn the_mark_is_kept_and_a_broken_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::with(dir.path(), at(100), || None);
        clock.keep().unwrap();
        let next = Clock::with(dir.path(), at(130), || None);
        assert!(next.age() < at(101) && next.now() >= at(130));
        next.keep().unwrap();
        assert!(Clock::with(dir.path(), at(130), || None).age() < at(101));
        fs::write(dir.path().join("clock"), "soon").unwrap();
        assert!(Clock::with(dir.path(), at(130), || None).age() >= at(130));
    }
}
