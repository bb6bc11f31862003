//! Metrics of what the store holds, read at each scrape.

use super::kinds::{Builder, raise_to};
use emberscope_store::StoreUsage;
use prometheus::{IntCounterVec, IntGauge};

/// Metrics of what the store holds.
pub(super) struct Stored {
    windows: IntGauge,
    bytes: IntGauge,
    dropped: IntCounterVec,
    facts: IntCounterVec,
}

impl Stored {
    /// Declares the metrics of what the store holds.
    ///
    /// # Errors
    /// As [`Builder::put`].
    pub fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        let stored = Self {
            windows: b.gauge("emberscope_store_windows", "Windows in the store.")?,
            bytes: b.gauge("emberscope_store_bytes", "Bytes that the store's windows take, estimated.")?,
            dropped: b.counters(
                "emberscope_store_dropped_windows_total",
                "Windows dropped from the store because of its limits.",
                &["reason"],
            )?,
            facts: b.counters(
                "emberscope_store_spark_facts_total",
                "What Spark said of its applications: kept with the windows, and refused for want of room.",
                &["outcome"],
            )?,
        };
        stored.set(&StoreUsage::default());
        Ok(stored)
    }

    /// Sets them to what the store holds now.
    pub fn set(&self, usage: &StoreUsage) {
        self.windows.set(super::clamp(usage.windows));
        self.bytes.set(super::clamp(usage.bytes));
        raise_to(&self.dropped.with_label_values(&["bytes"]), usage.dropped_for_bytes);
        raise_to(&self.dropped.with_label_values(&["age"]), usage.dropped_for_age);
        raise_to(&self.dropped.with_label_values(&["full"]), usage.dropped_for_full);
        raise_to(&self.facts.with_label_values(&["kept"]), usage.facts);
        raise_to(&self.facts.with_label_values(&["refused"]), usage.facts_refused);
    }
}
