//! Metrics of pushing profiles to another server.
//!
//! In: numbers that the pushing room counts. Out: counters and gauges; reasons are a closed list of that room's, so the
//! pipeline hands them over.

use super::{Builder, raise_to};
use prometheus::{IntCounter, IntCounterVec, IntGauge};

/// Metrics of pushing to another server.
#[derive(Debug)]
pub struct Pushing {
    /// Profiles that the server took.
    pub sent: IntCounter,
    /// Bytes of the profiles that the server took.
    pub sent_bytes: IntCounter,
    /// Requests that failed and are tried again.
    pub retries: IntCounter,
    /// Profiles that were not sent, by reason.
    pub dropped: IntCounterVec,
    /// Bytes of profiles that wait.
    pub queued_bytes: IntGauge,
}

impl Pushing {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            sent: b.counter("emberscope_push_profiles_total", "Profiles that the server took.")?,
            sent_bytes: b.counter("emberscope_push_bytes_total", "Bytes of these, with their labels.")?,
            retries: b.counter(
                "emberscope_push_retries_total",
                "Requests that failed and are tried again; the status says why.",
            )?,
            dropped: b.counters(
                "emberscope_push_dropped_total",
                "Profiles that were not sent, by reason.",
                &["reason"],
            )?,
            queued_bytes: b.gauge("emberscope_push_queued_bytes", "Bytes of profiles that wait.")?,
        })
    }

    /// Brings a reason's counter up to its total; the series is there from the first time on.
    pub fn dropped(&self, reason: &str, total: u64) {
        raise_to(&self.dropped.with_label_values(&[reason]), total);
    }
}
