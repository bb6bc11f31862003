//! Every metric of the daemon, declared in one place.
//!
//! In: the rooms count here, through the pipeline. Out: the Prometheus text of `/metrics`. Reasons are
//! closed lists, so all their series exist from the start, at 0. No label carries text from a target: the
//! number of series is bounded. docs/reference/metrics.md lists them; a test holds it to that.

mod archive;
mod disk;
mod kinds;
mod push;
#[cfg(test)]
mod tests;
mod threads;

use super::own;
pub use archive::{Archiving, Reading};
use disk::Disk;
use emberscope_model::{DropReason, SampleKind, StackEnd, ThreadClass, UnknownReason};
use emberscope_store::{DiskUsage, StoreUsage};
use kinds::Builder;
pub use kinds::{Declared, JvmCpu, PerReason, raise_to};
use prometheus::{
    CounterVec, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
pub use push::Pushing;
use std::sync::Mutex;
use threads::Threads;

/// The metrics.
pub struct Metrics {
    registry: Registry,
    declared: Vec<Declared>,
    /// Samples that came up from the kernel, by type.
    pub samples: PerReason<SampleKind>,
    /// What the kernel side could not deliver, by reason.
    pub lost: PerReason<DropReason>,
    /// Samples of applications and executors that the user does not want kept.
    pub not_kept: IntCounter,
    /// Samples by how their user stack ended.
    pub stack_end: PerReason<StackEnd>,
    /// Frames of all samples.
    pub frames_walked: IntCounter,
    /// Of these, without a name, by reason.
    pub unnamed_frames: PerReason<UnknownReason>,
    /// CPU seconds of JVMs, from the ledger.
    pub jvm_cpu: JvmCpu,
    /// Windows closed.
    pub windows: IntCounter,
    /// Of these, cut short.
    pub partial_windows: IntCounter,
    /// What a bounded table holds; labels: the table's name.
    pub registry_entries: IntGaugeVec,
    /// What a full table turned away or threw out; labels: the table's name.
    pub registry_refused: IntCounterVec,
    /// What tables turned away or threw out because a tenant had more than his share; labels: the table's name.
    pub quota_refused: IntCounterVec,
    /// Perf maps that were not read; labels: the refusal's slug, a closed list of its room.
    pub perf_maps_refused: IntCounterVec,
    /// Memory of the BPF maps, in bytes, as the kernel accounts for it.
    pub bpf_map_bytes: IntGauge,
    /// Debug files that servers were asked for, by what came of it.
    pub debug_files: IntCounterVec,
    /// C++ and Rust names that stay mangled.
    pub names_mangled: IntCounterVec,
    /// Reads of targets on threads that can be given up.
    pub reads: IntCounter,
    /// Those for which nobody waited any more.
    pub reads_late: IntCounter,
    /// Those that were given up; labels: what was read, a closed list of its room.
    pub reads_given_up: IntCounterVec,
    /// Those that were not begun; labels: the reason's slug, a closed list of its room.
    pub reads_refused: IntCounterVec,
    /// Given up and not back.
    pub reads_stuck: IntGauge,
    /// Perf maps asked of JVMs; labels: the result's slug, a closed list of its room.
    pub perf_map_asks: IntCounterVec,
    /// Threads' names and what became of them; labels: the result's slug, a closed list of its room.
    pub thread_names: IntCounterVec,
    /// Java frames read from JVMs' memory; labels: `named`, or the reason's slug, a closed list of its room.
    pub java_frames: IntCounterVec,
    /// Nanoseconds that reading them took.
    pub java_read: IntCounter,
    /// Claims on an application that were not believed.
    pub identity_conflicts: IntCounter,
    /// libjvm files with a probe on their naming function.
    pub name_probes: IntGauge,
    /// libjvm files whose allocations are sampled.
    pub alloc_probes: IntGauge,
    /// Bytes of unwind tables.
    pub unwind_table_bytes: IntGauge,
    /// What these hold; labels: files, rows, rules, processes.
    pub unwind_table_entries: IntGaugeVec,
    /// What became of tables; labels: the result's slug, a closed list of the pipeline.
    pub unwind_tables: IntCounterVec,
    /// Nanoseconds that building and loading them took.
    pub unwind_table_build: IntCounter,
    /// Nanoseconds in a BPF program; labels: the program's name. Only with bpf_stats_enabled.
    pub bpf_run_nanoseconds: IntCounterVec,
    /// Runs of a BPF program; labels: the program's name. Only with bpf_stats_enabled.
    pub bpf_runs: IntCounterVec,
    /// Answered requests; labels: route, code.
    pub http_requests: IntCounterVec,
    /// Open connections.
    pub http_connections: IntGauge,
    /// Connections closed at once because there were too many.
    pub http_connections_refused: IntCounter,
    /// Idle connections closed to make room.
    pub http_connections_evicted: IntCounter,
    /// Files of tokens and certificates that are no good any more; labels: the setting.
    pub access_file_failing: IntGaugeVec,
    threads: Threads,
    ready: IntGauge,
    store_windows: IntGauge,
    store_bytes: IntGauge,
    store_dropped: IntCounterVec,
    disk: Disk,
    /// How copying to an archive goes.
    pub archiving: Archiving,
    /// How reading one goes.
    pub reading: Reading,
    /// Pushing to another server.
    pub push: Pushing,
    own_cpu: Gauge,
    own_resident: IntGauge,
    own_start: Gauge,
    scrape: Mutex<()>,
}

impl Metrics {
    /// Declares them all. An error is a name that was declared twice.
    pub fn new(version: &str) -> prometheus::Result<Self> {
        let mut b = Builder { registry: Registry::new(), declared: Vec::new() };
        let info = Opts::new("emberscope_build_info", "Always 1; the label says the version.");
        let (name, help) = ("emberscope_build_info", "Always 1; the label says the version.");
        b.put(name, help, GaugeVec::new(info, &["version"])?)?.with_label_values(&[version]).set(1.0);
        let metrics = Self {
            ready: b.gauge("emberscope_ready", "1 once sampling has begun.")?,
            samples: b.per_reason(
                ("emberscope_samples_total", "Samples that came up from the kernel.", "type"),
                SampleKind::ALL,
                SampleKind::slug,
            )?,
            lost: b.per_reason(
                ("emberscope_lost_total", "Records that the kernel side could not deliver.", "reason"),
                DropReason::ALL,
                DropReason::slug,
            )?,
            not_kept: b.counter(
                "emberscope_samples_not_kept_total",
                "Samples of applications and executors that the configuration leaves out.",
            )?,
            stack_end: b.per_reason(
                (
                    "emberscope_stack_end_total",
                    "Samples by how the walk of their user stack ended.",
                    "reason",
                ),
                StackEnd::ALL,
                StackEnd::slug,
            )?,
            frames_walked: b.counter(
                "emberscope_frames_walked_total",
                "User frames walked in the kernel, physical ones, of all samples.",
            )?,
            unnamed_frames: b.per_reason(
                ("emberscope_unnamed_frames_total", "Frames of samples that have no name.", "reason"),
                UnknownReason::ALL,
                UnknownReason::slug,
            )?,
            jvm_cpu: {
                let (name, help) = (
                    "emberscope_jvm_cpu_seconds_total",
                    "CPU time of the node's JVMs by class of thread, from the ledger of closed windows.",
                );
                let vec = CounterVec::new(Opts::new(name, help), &["thread_class", "mode"])?;
                let vec = b.put(name, help, vec)?;
                let of = |class: &ThreadClass| {
                    ["user", "system"].map(|mode| vec.with_label_values(&[class.slug(), mode]))
                };
                JvmCpu(ThreadClass::ALL.iter().map(of).collect())
            },
            windows: b.counter("emberscope_windows_total", "Windows closed.")?,
            partial_windows: b.counter(
                "emberscope_partial_windows_total",
                "Windows cut short by the start, the end or a step of the clock.",
            )?,
            store_windows: b.gauge("emberscope_store_windows", "Windows in the store.")?,
            store_bytes: b
                .gauge("emberscope_store_bytes", "Bytes that the store's windows take, estimated.")?,
            store_dropped: b.counters(
                "emberscope_store_dropped_windows_total",
                "Windows dropped from the store because of its limits.",
                &["reason"],
            )?,
            disk: Disk::declare(&mut b)?,
            archiving: Archiving::declare(&mut b)?,
            reading: Reading::declare(&mut b)?,
            push: Pushing::declare(&mut b)?,
            threads: Threads::declare(&mut b)?,
            registry_entries: {
                let (name, help) =
                    ("emberscope_registry_entries", "Entries of a bounded table of the daemon.");
                b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["registry"])?)?
            },
            registry_refused: b.counters(
                "emberscope_registry_refused_total",
                "Entries that a full table turned away or threw out.",
                &["registry"],
            )?,
            quota_refused: b.counters(
                "emberscope_quota_refused_total",
                "Entries of tenants with more than their share that a full table turned away, threw out or folded.",
                &["table"],
            )?,
            thread_names: b.counters(
                "emberscope_thread_names_total",
                "Names, records and samples of threads of JVMs, by what became of them.",
                &["result"],
            )?,
            java_frames: b.counters(
                "emberscope_java_frames_total",
                "Java frames read from JVMs' memory, by what became of them.",
                &["result"],
            )?,
            java_read: b.counter(
                "emberscope_java_read_nanoseconds_total",
                "Time of the thread that reads Java frames from JVMs' memory.",
            )?,
            identity_conflicts: b.counter(
                "emberscope_identity_conflicts_total",
                "Processes that named an application and were not believed to be of it.",
            )?,
            alloc_probes: b.gauge(
                "emberscope_alloc_probes",
                "libjvm files with probes on the functions that report allocations.",
            )?,
            name_probes: b.gauge(
                "emberscope_name_probes",
                "libjvm files with a probe on the function by which threads are named.",
            )?,
            unwind_table_bytes: b.gauge(
                "emberscope_unwind_table_bytes",
                "Memory of the unwind tables of native code, in the kernel.",
            )?,
            unwind_table_entries: {
                let (name, help) = ("emberscope_unwind_table_entries", "What the unwind tables hold.");
                b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["what"])?)?
            },
            unwind_tables: b.counters(
                "emberscope_unwind_tables_total",
                "Unwind tables of files, and requests for them, by what became of them.",
                &["result"],
            )?,
            unwind_table_build: b.counter(
                "emberscope_unwind_table_build_nanoseconds_total",
                "Time that building unwind tables and loading them from the disk took.",
            )?,
            debug_files: b.counters(
                "emberscope_debug_files_total",
                "Debug files that debuginfod servers were asked for.",
                &["result"],
            )?,
            names_mangled: b.counters(
                "emberscope_names_mangled_total",
                "C++ and Rust names that are shown as their files have them.",
                &["reason"],
            )?,
            reads: b.counter(
                "emberscope_target_reads_total",
                "Reads of processes' files and memory on threads that can be given up.",
            )?,
            reads_late: b.counter(
                "emberscope_target_reads_late_total",
                "Of these, those that were not back when whoever wanted them went on.",
            )?,
            reads_given_up: b.counters(
                "emberscope_target_reads_given_up_total",
                "Reads that did not come back and were given up.",
                &["what"],
            )?,
            reads_refused: b.counters(
                "emberscope_target_reads_refused_total",
                "Reads that were not begun.",
                &["reason"],
            )?,
            reads_stuck: b.gauge(
                "emberscope_target_reads_stuck",
                "Reads that were given up and are not back, each with its thread.",
            )?,
            perf_map_asks: b.counters(
                "emberscope_perf_map_asks_total",
                "Requests to a JVM to write its perf map.",
                &["result"],
            )?,
            perf_maps_refused: b.counters(
                "emberscope_perf_maps_refused_total",
                "Perf maps that were not read.",
                &["reason"],
            )?,
            bpf_map_bytes: b.gauge(
                "emberscope_bpf_map_bytes",
                "Memory of the BPF maps, as the kernel accounts for it.",
            )?,
            bpf_run_nanoseconds: b.counters(
                "emberscope_bpf_run_nanoseconds_total",
                "Time in a BPF program; counted while kernel.bpf_stats_enabled is 1.",
                &["program"],
            )?,
            bpf_runs: b.counters(
                "emberscope_bpf_runs_total",
                "Runs of a BPF program; counted while kernel.bpf_stats_enabled is 1.",
                &["program"],
            )?,
            http_requests: b.counters(
                "emberscope_http_requests_total",
                "Answered requests.",
                &["route", "code"],
            )?,
            http_connections: b.gauge("emberscope_http_connections", "Open HTTP connections.")?,
            http_connections_refused: b.counter(
                "emberscope_http_connections_refused_total",
                "HTTP connections closed at once because too many were open, and none idle.",
            )?,
            http_connections_evicted: b.counter(
                "emberscope_http_connections_evicted_total",
                "Idle HTTP connections closed to make room for new ones.",
            )?,
            access_file_failing: {
                let name = "emberscope_access_file_failing";
                let help =
                    "Files of tokens and certificates that changed and are no good: 1; the ones before hold.";
                let vec = b.put(name, help, IntGaugeVec::new(Opts::new(name, help), &["file"])?)?;
                for file in super::config::FILES {
                    vec.with_label_values(&[file]).set(0);
                }
                vec
            },
            own_cpu: {
                // A gauge inside: the value is the kernel's total, read at each scrape.
                let (name, help) = ("process_cpu_seconds_total", "CPU time of the daemon, user and system.");
                b.put(name, help, Gauge::new(name, help)?)?
            },
            own_resident: b.gauge("process_resident_memory_bytes", "Resident memory of the daemon.")?,
            own_start: {
                let (name, help) = ("process_start_time_seconds", "Start of the daemon, Unix time.");
                b.put(name, help, Gauge::new(name, help)?)?
            },
            registry: b.registry,
            declared: b.declared,
            scrape: Mutex::new(()),
        };
        for reason in ["bytes", "age", "full"] {
            metrics.store_dropped.with_label_values(&[reason]);
        }
        Ok(metrics)
    }

    /// All that is declared, for the reference page.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// The text of `/metrics`, with what is read at the scrape: the store, readiness, the process itself.
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
        self.store_windows.set(clamp(usage.windows));
        self.store_bytes.set(clamp(usage.bytes));
        raise_to(&self.store_dropped.with_label_values(&["bytes"]), usage.dropped_for_bytes);
        raise_to(&self.store_dropped.with_label_values(&["age"]), usage.dropped_for_age);
        raise_to(&self.store_dropped.with_label_values(&["full"]), usage.dropped_for_full);
        if let Some(disk) = disk {
            self.disk.set(disk);
        }
        if let Some(usage) = own::usage() {
            self.own_cpu.set(usage.cpu_seconds);
            self.own_resident.set(clamp(usage.resident_bytes));
            self.own_start.set(usage.start_unix_seconds);
        }
        let mut families = self.registry.gather();
        for family in &mut families {
            if family.name() == "process_cpu_seconds_total" {
                as_counter(family);
            }
        }
        TextEncoder::new().encode_to_string(&families)
    }
}

/// The prometheus crate has no counter that can be set; a family can be told that it is one.
fn as_counter(family: &mut prometheus::proto::MetricFamily) {
    family.set_field_type(prometheus::proto::MetricType::COUNTER);
    let counters = family.take_metric().into_iter().map(|mut metric| {
        let mut counter = prometheus::proto::Counter::default();
        counter.set_value(metric.get_gauge().get_value());
        metric.set_counter(counter);
        metric
    });
    let counters = counters.collect::<Vec<_>>();
    family.set_metric(counters);
}

fn clamp(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
