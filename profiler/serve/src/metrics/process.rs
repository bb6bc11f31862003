//! Metrics of the daemon's process, under the names that every exporter of Prometheus has for them; read at each
//! scrape.

use super::kinds::Builder;
use crate::own;
use prometheus::proto::{Counter, MetricFamily, MetricType};
use prometheus::{Gauge, IntGauge};

/// A gauge inside: the value is the kernel's total.
const CPU: &str = "process_cpu_seconds_total";

/// Metrics of the daemon's process.
pub(super) struct Process {
    cpu: Gauge,
    resident: IntGauge,
    start: Gauge,
}

impl Process {
    /// Declares the metrics of the daemon's process.
    ///
    /// # Errors
    /// As [`Builder::put`].
    pub fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            cpu: {
                let help = "CPU time of the daemon, user and system.";
                b.put(CPU, help, Gauge::new(CPU, help)?)?
            },
            resident: b.gauge("process_resident_memory_bytes", "Resident memory of the daemon.")?,
            start: {
                let (name, help) = ("process_start_time_seconds", "Start of the daemon, Unix time.");
                b.put(name, help, Gauge::new(name, help)?)?
            },
        })
    }

    /// Reads them, as the process is now.
    pub fn read(&self) {
        if let Some(usage) = own::usage() {
            self.cpu.set(usage.cpu_seconds);
            self.resident.set(super::clamp(usage.resident_bytes));
            self.start.set(usage.start_unix_seconds);
        }
    }

    /// The prometheus crate has no counter that can be set; a family can be told that it is one.
    pub fn counters(families: &mut [MetricFamily]) {
        for family in families.iter_mut().filter(|family| family.name() == CPU) {
            family.set_field_type(MetricType::COUNTER);
            let counters = family.take_metric().into_iter().map(|mut metric| {
                let mut counter = Counter::default();
                counter.set_value(metric.get_gauge().get_value());
                metric.set_counter(counter);
                metric
            });
            let counters = counters.collect::<Vec<_>>();
            family.set_metric(counters);
        }
    }
}
