//! Metrics of samples: how many, what was lost, how their stacks ended, the windows they are in, what the BPF programs
//! take.

use super::kinds::{Builder, JvmCpu, PerReason};
use emberscope_model::{DropReason, SampleKind, StackEnd, ThreadClass, UnknownReason};
use prometheus::{CounterVec, IntCounter, IntCounterVec, IntGauge, Opts};

/// Metrics of samples and their windows.
pub struct Sampling {
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
    /// Frames without a name, by reason.
    pub unnamed_frames: PerReason<UnknownReason>,
    /// CPU seconds of JVMs, from the ledger.
    pub jvm_cpu: JvmCpu,
    /// What JVMs' compilers did; labels: `compilations` or `deoptimizations`.
    pub jit_events: IntCounterVec,
    /// Windows closed.
    pub windows: IntCounter,
    /// Windows that were cut short.
    pub partial_windows: IntCounter,
    /// Memory of the BPF maps, in bytes, as the kernel accounts for it.
    pub bpf_map_bytes: IntGauge,
    /// Nanoseconds in a BPF program; labels: the program's name. Only with bpf_stats_enabled.
    pub bpf_run_nanoseconds: IntCounterVec,
    /// Runs of a BPF program; labels: the program's name. Only with bpf_stats_enabled.
    pub bpf_runs: IntCounterVec,
}

impl Sampling {
    pub(super) fn declare(b: &mut Builder) -> prometheus::Result<Self> {
        Ok(Self {
            samples: b.per_reason(
                ("emberscope_samples_total", "Samples that came up from the kernel.", "type"),
                SampleKind::TAKEN,
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
            jit_events: b.counters(
                "emberscope_jvm_jit_events_total",
                "Compilations that ended, and deoptimisations, of the node's JVMs while they were watched.",
                &["event"],
            )?,
            windows: b.counter("emberscope_windows_total", "Windows closed.")?,
            partial_windows: b.counter(
                "emberscope_partial_windows_total",
                "Windows cut short by the start, the end or a step of the clock.",
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
        })
    }
}
