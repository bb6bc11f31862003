//! How the copying goes, counted and told.
//!
//! In: what was done and what failed. Out: [`ArchiveUsage`], for the status and the metrics. A failure is logged when
//! it begins and when it ends, not each time.

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
    pub missed: u64,
    complete: Instant,
    failing: Option<String>,
    errors: [u64; ArchiveUsage::WHAT.len()],
}

impl Counts {
    pub fn new() -> Self {
        let (complete, failing, errors) = (Instant::now(), None, [0; ArchiveUsage::WHAT.len()]);
        Self { blocks: 0, pieces: 0, bytes: 0, waiting: 0, missed: 0, complete, failing, errors }
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
            errors: ArchiveUsage::WHAT.into_iter().zip(self.errors).collect(),
        }
    }
}
