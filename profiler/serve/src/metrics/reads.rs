//! Metrics of reads of targets, on threads that can be given up.

use super::kinds::Builder;
use prometheus::{IntCounter, IntCounterVec, IntGauge};

/// Metrics of reads of targets.
pub struct Reads {
    /// Reads of targets on threads that can be given up.
    pub begun: IntCounter,
    /// Reads for which nobody waited any more.
    pub late: IntCounter,
    /// Reads that were given up; labels: what was read, a closed list of its room.
    pub given_up: IntCounterVec,
    /// Reads that were not begun; labels: the reason's slug, a closed list of its room.
    pub refused: IntCounterVec,
    /// Reads that are given up and not back now, each with its thread.
    pub stuck: IntGauge,
}

impl Reads {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            begun: b.counter(
                "emberscope_target_reads_total",
                "Reads of processes' files and memory on threads that can be given up.",
            )?,
            late: b.counter(
                "emberscope_target_reads_late_total",
                "Of these, those that were not back when whoever wanted them went on.",
            )?,
            given_up: b.counters(
                "emberscope_target_reads_given_up_total",
                "Reads that did not come back and were given up.",
                &["what"],
            )?,
            refused: b.counters(
                "emberscope_target_reads_refused_total",
                "Reads that were not begun.",
                &["reason"],
            )?,
            stuck: b.gauge(
                "emberscope_target_reads_stuck",
                "Reads that were given up and are not back, each with its thread.",
            )?,
        })
    }
}
