//! Metrics of the store's files.
//!
//! In: what the store tells of its disk at a scrape. Out: gauges and counters. What fails is a closed list
//! of the store's.

use super::{Builder, clamp, raise_to};
use emberscope_store::DiskUsage;
use prometheus::{IntCounter, IntCounterVec, IntGauge};

/// Metrics of the store's disk.
#[derive(Debug)]
pub(super) struct Disk {
    blocks: IntGauge,
    bytes: IntGauge,
    journal_bytes: IntGauge,
    pending_bytes: IntGauge,
    failing: IntGauge,
    errors: IntCounterVec,
    unjournaled: IntCounter,
    set_aside: IntCounter,
    cut_bytes: IntCounter,
}

impl Disk {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        let errors =
            b.counters("emberscope_store_errors_total", "Failed writes, by what failed.", &["what"])?;
        for what in DiskUsage::WHAT {
            errors.with_label_values(&[what]);
        }
        Ok(Self {
            errors,
            blocks: b.gauge("emberscope_store_blocks", "Blocks on the disk.")?,
            bytes: b.gauge("emberscope_store_disk_bytes", "Bytes of the store's files, journals too.")?,
            journal_bytes: b.gauge("emberscope_store_journal_bytes", "Bytes of its journals.")?,
            pending_bytes: b.gauge(
                "emberscope_store_pending_bytes",
                "Bytes of journal records that wait in memory for a disk that fails.",
            )?,
            failing: b.gauge(
                "emberscope_store_failing",
                "How many of journal, sync, block, remove, roll-up and merge fail now; the status says why.",
            )?,
            unjournaled: b.counter(
                "emberscope_store_unjournaled_windows_total",
                "Windows that only memory holds, because the journal could not take them.",
            )?,
            set_aside: b.counter(
                "emberscope_store_set_aside_total",
                "Damaged blocks and journals that are not answered for; the status names them.",
            )?,
            cut_bytes: b
                .counter("emberscope_store_cut_bytes_total", "Bytes cut off torn journals at the start.")?,
        })
    }

    pub(super) fn set(&self, disk: &DiskUsage) {
        let long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.blocks.set(clamp(disk.blocks));
        self.bytes.set(long(disk.bytes));
        self.journal_bytes.set(long(disk.journal_bytes));
        self.pending_bytes.set(long(disk.pending_bytes));
        self.failing.set(clamp(disk.failing.len()));
        for (what, count) in &disk.errors {
            raise_to(&self.errors.with_label_values(&[what]), *count);
        }
        raise_to(&self.unjournaled, disk.unjournaled_windows);
        raise_to(&self.set_aside, disk.set_aside);
        raise_to(&self.cut_bytes, disk.cut_bytes);
    }
}
