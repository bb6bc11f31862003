//! Metrics of the unwind tables of native code.

use super::kinds::Builder;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

/// Metrics of unwind tables.
pub struct Unwinding {
    /// Bytes of unwind tables.
    pub bytes: IntGauge,
    /// What unwind tables hold; labels: files, rows, rules, processes.
    pub entries: IntGaugeVec,
    /// What became of tables; labels: the result's slug, a closed list of the pipeline.
    pub tables: IntCounterVec,
    /// Nanoseconds that building and loading tables took.
    pub build: IntCounter,
}

impl Unwinding {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            bytes: b.gauge(
                "emberscope_unwind_table_bytes",
                "Memory of the unwind tables of native code, in the kernel.",
            )?,
            entries: {
                let (name, help) = ("emberscope_unwind_table_entries", "What the unwind tables hold.");
                b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["what"])?)?
            },
            tables: b.counters(
                "emberscope_unwind_tables_total",
                "Unwind tables of files, and requests for them, by what became of them.",
                &["result"],
            )?,
            build: b.counter(
                "emberscope_unwind_table_build_nanoseconds_total",
                "Time that building unwind tables and loading them from the disk took.",
            )?,
        })
    }
}
