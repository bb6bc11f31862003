//! Metrics of the HTTP server.

use super::kinds::Builder;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};

/// Metrics of the HTTP server.
pub struct Http {
    /// Answered requests; labels: route, code.
    pub requests: IntCounterVec,
    /// Open connections.
    pub connections: IntGauge,
    /// Connections closed at once because there were too many.
    pub refused: IntCounter,
    /// Idle connections closed to make room.
    pub evicted: IntCounter,
    /// Files of tokens and certificates that are no good any more; labels: the setting.
    pub file_failing: IntGaugeVec,
}

impl Http {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            requests: b.counters(
                "emberscope_http_requests_total",
                "Answered requests.",
                &["route", "code"],
            )?,
            connections: b.gauge("emberscope_http_connections", "Open HTTP connections.")?,
            refused: b.counter(
                "emberscope_http_connections_refused_total",
                "HTTP connections closed at once because too many were open, and none idle.",
            )?,
            evicted: b.counter(
                "emberscope_http_connections_evicted_total",
                "Idle HTTP connections closed to make room for new ones.",
            )?,
            file_failing: {
                let name = "emberscope_access_file_failing";
                let help =
                    "Files of tokens and certificates that changed and are no good: 1; the ones before hold.";
                let vec = b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["file"])?)?;
                for file in crate::config::FILES {
                    vec.with_label_values(&[file]).set(0);
                }
                vec
            },
        })
    }
}
