//! Every metric of the daemon, declared in one place.
//!
//! In: the rooms count here, through the pipeline. Out: the Prometheus text of `/metrics`. Reasons are
//! closed lists, so all their series exist from the start, at 0. No label carries text from a target: the
//! number of series is bounded. docs/reference/metrics.md lists them; a test holds it to that.

mod archive;
mod bounded;
mod disk;
mod http;
mod kinds;
mod naming;
mod process;
mod push;
mod reads;
mod sampling;
mod stored;
#[cfg(test)]
mod tests;
mod threads;
mod unwinding;

pub use archive::{Archiving, Reading};
use bounded::Bounded;
use disk::Disk;
use emberscope_store::{DiskUsage, StoreUsage};
use http::Http;
use kinds::Builder;
pub use kinds::{Declared, raise_to};
use naming::Naming;
use process::Process;
use prometheus::{GaugeVec, IntGauge, Opts, Registry, TextEncoder};
pub use push::Pushing;
use reads::Reads;
use sampling::Sampling;
use std::sync::Mutex;
use stored::Stored;
use threads::Threads;
use unwinding::Unwinding;

/// All metrics of a daemon or server.
pub struct Metrics {
    registry: Registry,
    declared: Vec<Declared>,
    /// Samples and their windows.
    pub sampling: Sampling,
    /// What bounded tables hold.
    pub bounded: Bounded,
    /// Where names come from.
    pub naming: Naming,
    /// Unwind tables.
    pub unwinding: Unwinding,
    /// Reads of targets.
    pub reads: Reads,
    /// The HTTP server.
    pub http: Http,
    threads: Threads,
    ready: IntGauge,
    stored: Stored,
    disk: Disk,
    /// How copying to an archive goes.
    pub archiving: Archiving,
    /// How reading an archive goes.
    pub reading: Reading,
    /// Pushing to another server.
    pub push: Pushing,
    process: Process,
    scrape: Mutex<()>,
}

impl Metrics {
    /// Declares all metrics.
    ///
    /// # Errors
    /// A name that was declared twice.
    pub fn new(version: &str) -> prometheus::Result<Self> {
        let mut b = Builder { registry: Registry::new(), declared: Vec::new() };
        let (name, help) = ("emberscope_build_info", "Always 1; the label says the version.");
        let info = GaugeVec::new(Opts::new(name, help), &["version"])?;
        b.put(name, help, info)?.with_label_values(&[version]).set(1.0);
        Ok(Self {
            ready: b.gauge("emberscope_ready", "1 once sampling has begun.")?,
            sampling: Sampling::declare(&mut b)?,
            stored: Stored::declare(&mut b)?,
            disk: Disk::declare(&mut b)?,
            archiving: Archiving::declare(&mut b)?,
            reading: Reading::declare(&mut b)?,
            push: Pushing::declare(&mut b)?,
            threads: Threads::declare(&mut b)?,
            bounded: Bounded::declare(&mut b)?,
            naming: Naming::declare(&mut b)?,
            unwinding: Unwinding::declare(&mut b)?,
            reads: Reads::declare(&mut b)?,
            http: Http::declare(&mut b)?,
            process: Process::declare(&mut b)?,
            registry: b.registry,
            declared: b.declared,
            scrape: Mutex::new(()),
        })
    }

    /// All that is declared, for the reference page.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// The text of `/metrics`, with what is read at the scrape: the store, readiness, the process.
    ///
    /// # Errors
    /// A metric that cannot be written as text.
    pub fn text(
        &self,
        usage: &StoreUsage,
        disk: Option<&DiskUsage>,
        ready: bool,
    ) -> prometheus::Result<String> {
        // One scrape at a time: `raise_to` reads and then adds.
        let _one = self.scrape.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.threads.read();
        self.ready.set(i64::from(ready));
        self.stored.set(usage);
        if let Some(disk) = disk {
            self.disk.set(disk);
        }
        self.process.read();
        let mut families = self.registry.gather();
        Process::counters(&mut families);
        TextEncoder::new().encode_to_string(&families)
    }
}

fn clamp(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
