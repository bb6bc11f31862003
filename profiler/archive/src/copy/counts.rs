//! How the copying goes, counted and told.
//!
//! In: what was done and what failed. Out: [`ArchiveUsage`], for the status and the metrics. A failure is logged when
//! it begins and when it ends, not each time.

use super::super::heartbeat::CLOCK;
use std::time::Instant;

/// What was copied to an archive since the start, and what waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveUsage {
    /// URL of the archive.
    pub url: String,
    /// Blocks copied since the start.
    pub blocks: u64,
    /// Pieces of the journal sent.
    pub pieces: u64,
    /// Bytes of files and pieces sent.
    pub bytes: u64,
    /// Blocks that wait to be copied.
    pub waiting: u64,
    /// Blocks that went from the disk (retention) before they were copied.
    pub missed: u64,
    /// Seconds since everything was copied, or since the start.
    pub behind_seconds: f64,
    /// What fails now, and how; None while all goes well.
    pub failing: Option<String>,
    /// By how many milliseconds the node's clock is ahead of the object store's; None: not known.
    pub clock_ahead_ms: Option<i64>,
    /// Why the node's heartbeat cannot be put; None while it can.
    pub heartbeat_failing: Option<String>,
    /// Failures since the start, by what failed.
    pub errors: Vec<(&'static str, u64)>,
}

impl ArchiveUsage {
    /// What can fail: `denied` (credentials), `missing` (no such bucket), `failed` (anything else of the object
    /// store), `disk` (reading the store's files).
    pub const WHAT: [&'static str; 4] = ["denied", "missing", "failed", "disk"];
}

#[derive(Debug)]
pub(super) struct Counts {
    pub blocks: u64,
    pub pieces: u64,
    pub bytes: u64,
    pub waiting: u64,
    /// Name of the oldest of them.
    pub oldest: Option<String>,
    pub missed: u64,
    complete: Instant,
    failing: Option<String>,
    clock_ahead_ms: Option<i64>,
    heartbeat_failing: Option<String>,
    errors: [u64; ArchiveUsage::WHAT.len()],
}

impl Counts {
    pub fn new() -> Self {
        Self {
            blocks: 0,
            pieces: 0,
            bytes: 0,
            waiting: 0,
            oldest: None,
            missed: 0,
            complete: Instant::now(),
            failing: None,
            clock_ahead_ms: None,
            heartbeat_failing: None,
            errors: [0; ArchiveUsage::WHAT.len()],
        }
    }

    pub fn beaten(&mut self, ahead_ms: i64) {
        let is_off = |ms: i64| u128::from(ms.unsigned_abs()) > CLOCK.as_millis();
        if is_off(ahead_ms) && !self.clock_ahead_ms.is_some_and(is_off) {
            tracing::warn!(
                ahead_ms,
                "this node's clock is not the archive's: its windows will not fit others'"
            );
        }
        (self.clock_ahead_ms, self.heartbeat_failing) = (Some(ahead_ms), None);
    }

    pub fn not_beaten(&mut self, says: &str) {
        if self.heartbeat_failing.is_none() {
            tracing::warn!(
                says,
                "the archive takes no heartbeat of this node: blocks are copied all the same"
            );
        }
        self.heartbeat_failing = Some(says.to_owned());
    }

    pub fn failed(&mut self, what: &str, says: &str) {
        let place = ArchiveUsage::WHAT.iter().position(|known| *known == what);
        if let Some(count) = place.and_then(|place| self.errors.get_mut(place)) {
            *count += 1;
        }
        if self.failing.is_none() {
            tracing::warn!(
                what,
                says,
                "the archive cannot be written: it is tried again, and nothing else waits for it"
            );
        }
        self.failing = Some(says.to_owned());
    }

    pub fn went_well(&mut self, url: &str) {
        self.complete = Instant::now();
        self.waiting = 0;
        if self.failing.take().is_some() {
            tracing::info!(url, "the archive is written again");
        }
    }

    pub fn usage(&self, url: &str) -> ArchiveUsage {
        ArchiveUsage {
            url: url.to_owned(),
            blocks: self.blocks,
            pieces: self.pieces,
            bytes: self.bytes,
            waiting: self.waiting,
            missed: self.missed,
            behind_seconds: self.complete.elapsed().as_secs_f64(),
            failing: self.failing.clone(),
            clock_ahead_ms: self.clock_ahead_ms,
            heartbeat_failing: self.heartbeat_failing.clone(),
            errors: ArchiveUsage::WHAT.into_iter().zip(self.errors).collect(),
        }
    }
}
