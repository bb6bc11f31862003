//! Metrics of bounded tables: what they hold, and what they turned away. A table is one of a closed list.

use super::kinds::Builder;
use prometheus::{IntCounterVec, IntGaugeVec, Opts};

/// Metrics of bounded tables.
pub struct Bounded {
    /// What a bounded table holds; labels: the table's name.
    pub entries: IntGaugeVec,
    /// What a full table turned away or threw out; labels: the table's name.
    pub refused: IntCounterVec,
    /// What tables turned away or threw out because a tenant had more than his share; labels: the table's name.
    pub quota_refused: IntCounterVec,
}

impl Bounded {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            entries: {
                let (name, help) =
                    ("emberscope_registry_entries", "Entries of a bounded table of the daemon.");
                b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["registry"])?)?
            },
            refused: b.counters(
                "emberscope_registry_refused_total",
                "Entries that a full table turned away or threw out.",
                &["registry"],
            )?,
            quota_refused: b.counters(
                "emberscope_quota_refused_total",
                "Entries of tenants with more than their share that a full table turned away, threw out or folded.",
                &["table"],
            )?,
        })
    }
}
