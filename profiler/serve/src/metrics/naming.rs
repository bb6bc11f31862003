//! Metrics of names: of Java frames, of threads, of native code.

use super::kinds::Builder;
use prometheus::{IntCounter, IntCounterVec, IntGauge};

/// Metrics of where names come from.
pub struct Naming {
    /// Threads' names and what became of them; labels: the result's slug, a closed list of its room.
    pub thread_names: IntCounterVec,
    /// Java frames read from JVMs' memory; labels: `named`, or the reason's slug, a closed list of its room.
    pub java_frames: IntCounterVec,
    /// Nanoseconds that reading names of Java took.
    pub java_read: IntCounter,
    /// Claims on an application that were not believed.
    pub identity_conflicts: IntCounter,
    /// libjvm files whose allocations are sampled.
    pub alloc_probes: IntGauge,
    /// libjvm files with a probe on their naming function.
    pub name_probes: IntGauge,
    /// Debug files that servers were asked for, by what came of it.
    pub debug_files: IntCounterVec,
    /// Native functions by how their name is known.
    pub functions_named: IntCounterVec,
    /// C++ and Rust names that stay mangled.
    pub names_mangled: IntCounterVec,
    /// Perf maps asked of JVMs; labels: the result's slug, a closed list of its room.
    pub perf_map_asks: IntCounterVec,
    /// Perf maps that were not read; labels: the refusal's slug, a closed list of its room.
    pub perf_maps_refused: IntCounterVec,
}

impl Naming {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
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
            debug_files: b.counters(
                "emberscope_debug_files_total",
                "Debug files that debuginfod servers were asked for.",
                &["result"],
            )?,
            functions_named: b.counters(
                "emberscope_native_functions_named_total",
                "Native functions that were named, by how their name is known.",
                &["by"],
            )?,
            names_mangled: b.counters(
                "emberscope_names_mangled_total",
                "C++ and Rust names that are shown as their files have them.",
                &["reason"],
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
        })
    }
}
