//! Metrics of the daemon's own threads, read at each scrape: whoever would count them may be the one that hangs.
//!
//! In: the process's beats, panics and quarantine. Out: gauges and counters; threads are a closed list.

use super::{Builder, raise_to};
use emberscope_supervise::{THREADS, quarantine};
use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, Opts};
use std::time::Duration;

/// Metrics of the daemon's own threads.
#[derive(Debug)]
pub(super) struct Threads {
    ages: GaugeVec,
    last_window: Gauge,
    panics: IntCounterVec,
    quarantined: IntGauge,
    refused: IntCounter,
}

impl Threads {
    /// Declares the metrics of the daemon's threads.
    ///
    /// # Errors
    /// As [`Builder::put`].
    pub fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        let threads = Self {
            ages: {
                let (name, help) = (
                    "emberscope_thread_beat_age_seconds",
                    "How long a thread has been busy with one thing; 0 while it waits for something to do.",
                );
                b.put(name, help, GaugeVec::new(Opts::new(name, help), &["thread"])?)?
            },
            last_window: {
                let (name, help) = (
                    "emberscope_last_window_age_seconds",
                    "Since a window was stored last; 0 before the first.",
                );
                b.put(name, help, Gauge::new(name, help)?)?
            },
            panics: b.counters(
                "emberscope_thread_panics_total",
                "Panics of the daemon's threads: defects, of which the log says more.",
                &["thread"],
            )?,
            quarantined: b.gauge(
                "emberscope_quarantined",
                "Files and processes that are left alone because reading them made the daemon fail.",
            )?,
            refused: b.counter(
                "emberscope_quarantine_refused_total",
                "Times that something was not read because it is left alone.",
            )?,
        };
        threads.read();
        Ok(threads)
    }

    /// Reads them, as the threads are now.
    pub fn read(&self) {
        let health = emberscope_supervise::health();
        for thread in THREADS {
            let all = health.threads.iter().filter(|state| state.thread == thread);
            let busy = all.filter_map(|state| state.busy_for).max();
            self.ages.with_label_values(&[thread]).set(busy.unwrap_or(Duration::ZERO).as_secs_f64());
            raise_to(&self.panics.with_label_values(&[thread]), emberscope_supervise::count_of(thread));
        }
        self.last_window.set(health.last_window.unwrap_or(Duration::ZERO).as_secs_f64());
        let alone = quarantine::state();
        self.quarantined.set(super::clamp(alone.entries.len()));
        raise_to(&self.refused, alone.refused);
    }
}
