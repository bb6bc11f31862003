//! Waiting for what is not there yet, and for what has been sampled to be asked for.

use crate::Daemon;
use anyhow::{Result, ensure};
use emberscope_model::WallTime;
use std::time::{Duration, Instant};

/// How long what is seconds away on an idle machine may take on a crowded one: a window is visible once late
/// samples and perf maps have been waited for.
pub const VISIBLE: Duration = Duration::from_secs(180);

/// Asks until there is a value.
pub fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(begun.elapsed() < limit, "{what}: not in {limit:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Waits until the windows before `until`, Unix milliseconds, can be asked for.
pub fn wait_visible(daemon: &Daemon, until: u64) -> Result<()> {
    let (begun, until) = (Instant::now(), WallTime::from_millis(until).to_string());
    loop {
        let span = daemon.json("/api/v1/apps")?["span"]["until"].as_str().unwrap_or_default().to_owned();
        // RFC 3339 in UTC, all of one length: order of text is order of time.
        if span >= until {
            return Ok(());
        }
        ensure!(begun.elapsed() < VISIBLE, "windows until {until} are not visible, only until {span}");
        std::thread::sleep(Duration::from_millis(250));
    }
}
