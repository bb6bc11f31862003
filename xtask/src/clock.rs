//! Waiting for whole windows of the wall clock.

use anyhow::Result;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length of a window, in milliseconds.
pub const WINDOW_MS: u64 = 10_000;
/// A closed window is visible after the grace for late samples and the naming of its stacks.
pub const VISIBLE_AFTER: Duration = Duration::from_secs(8);

/// Unix milliseconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// The first start of a window that is not before.
pub fn border(ms: u64) -> u64 {
    ms.div_ceil(WINDOW_MS) * WINDOW_MS
}

/// Sleeps until then.
pub fn sleep_until(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms.saturating_sub(now())));
}

/// Sleeps until the window that holds this instant can be asked for; its end is the answer.
pub fn sleep_until_visible(ms: u64) -> u64 {
    let end = border(ms + 1);
    sleep_until(end);
    std::thread::sleep(VISIBLE_AFTER);
    end
}

/// Sleeps to the next start of a window, measures there, and again `windows` later; returns when these can
/// be asked for: first instant, last, and what was measured at each.
pub fn over_windows<T>(windows: u64, mut measure: impl FnMut() -> Result<T>) -> Result<(u64, u64, T, T)> {
    let from = border(now() + 1);
    let until = from + windows * WINDOW_MS;
    sleep_until(from);
    let before = measure()?;
    sleep_until(until);
    let after = measure()?;
    std::thread::sleep(VISIBLE_AFTER);
    Ok((from, until, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_whole_windows() {
        assert_eq!((border(0), border(1), border(10_000), border(10_001)), (0, 10_000, 10_000, 20_000));
    }
}
