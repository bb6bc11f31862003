//! Metrics of an archive: of the daemon that copies to it, and of `emberscope serve`, which reads it.
//!
//! In: what the pipeline takes from the archive's room. Out: gauges and counters, all there from the start at 0. What
//! fails is a closed list.

use super::Builder;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

/// What can fail: credentials, a bucket that is not there, anything else of the object store, the store's own files.
const WHAT: [&str; 4] = ["denied", "missing", "failed", "disk"];

/// How a node may be: not heard of, with a clock of its own, with blocks that wait, well.
const STATES: [&str; 4] = ["silent", "clock", "behind", "live"];

/// How copying to an archive goes.
#[derive(Debug)]
pub struct Archiving {
    /// Blocks copied.
    pub blocks: IntCounter,
    /// Pieces of the journal sent.
    pub pieces: IntCounter,
    /// Bytes sent.
    pub bytes: IntCounter,
    /// Blocks that wait to be copied.
    pub waiting: IntGauge,
    /// Blocks that went from the disk before they were copied.
    pub missed: IntCounter,
    /// Seconds since all was copied.
    pub behind: Gauge,
    /// 1 while the archive cannot be written.
    pub failing: IntGauge,
    /// By how many seconds the node's clock is ahead of the object store's.
    pub clock_ahead: Gauge,
    /// Failures of copying; labels: what failed.
    pub errors: IntCounterVec,
}

impl Archiving {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        let errors = b.counters(
            "emberscope_archive_errors_total",
            "Failures of copying to the archive, by what failed.",
            &["what"],
        )?;
        for what in WHAT {
            errors.with_label_values(&[what]);
        }
        let name = "emberscope_archive_behind_seconds";
        let help = "Seconds since everything was in the archive; 0 without one.";
        let clock = "emberscope_archive_clock_ahead_seconds";
        let ahead = "By how much this node's clock is ahead of the archive's; 0 while that is not known.";
        Ok(Self {
            errors,
            blocks: b.counter("emberscope_archive_blocks_total", "Blocks copied to the archive.")?,
            pieces: b
                .counter("emberscope_archive_pieces_total", "Pieces of the journal sent to the archive.")?,
            bytes: b.counter("emberscope_archive_bytes_total", "Bytes sent to the archive.")?,
            waiting: b.gauge(
                "emberscope_archive_waiting_blocks",
                "Blocks that wait to be copied to the archive.",
            )?,
            missed: b.counter(
                "emberscope_archive_missed_blocks_total",
                "Blocks that retention took from the disk before they were copied.",
            )?,
            behind: b.put(name, help, Gauge::new(name, help)?)?,
            failing: b.gauge("emberscope_archive_failing", "1 while the archive cannot be written.")?,
            clock_ahead: b.put(clock, ahead, Gauge::new(clock, ahead)?)?,
        })
    }
}

/// How reading an archive goes.
#[derive(Debug)]
pub struct Reading {
    /// Files brought.
    pub files: IntCounter,
    /// Bytes of the files that were brought.
    pub bytes: IntCounter,
    /// Bytes in the cache.
    pub cached_bytes: IntGauge,
    /// Blocks that went from the cache for others.
    pub evicted: IntCounter,
    /// Objects set aside.
    pub set_aside: IntCounter,
    /// Lists that could not be read.
    pub list_failures: IntCounter,
    /// Nodes with a heartbeat in the last day; labels: how they are.
    pub nodes: IntGaugeVec,
}

impl Reading {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        let name = "emberscope_archive_nodes";
        let help = "Nodes with a heartbeat in the archive in the last day, by how they are; 0 without one.";
        let nodes = b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["state"])?)?;
        for state in STATES {
            nodes.with_label_values(&[state]);
        }
        Ok(Self {
            nodes,
            files: b.counter(
                "emberscope_archive_read_files_total",
                "Files that `emberscope serve` brought from the archive.",
            )?,
            bytes: b.counter("emberscope_archive_read_bytes_total", "Bytes of these.")?,
            cached_bytes: b.gauge(
                "emberscope_archive_cached_bytes",
                "Bytes of the archive's files held in the cache.",
            )?,
            evicted: b.counter(
                "emberscope_archive_evicted_blocks_total",
                "Blocks that went from the cache because others needed the room.",
            )?,
            set_aside: b.counter(
                "emberscope_archive_set_aside_total",
                "Objects of the archive that are bad and not answered for; the status names them.",
            )?,
            list_failures: b.counter(
                "emberscope_archive_list_failures_total",
                "Lists of the archive that could not be read.",
            )?,
        })
    }
}
