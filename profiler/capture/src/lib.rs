//! The kernel side's other half: loads and attaches the BPF programs, reads their ring buffer and perf's
//! rings of mapped code, counts.
//!
//! In: a [`CaptureConfig`] and what the host can do ([`HostFeatures`]). Out: [`RawEvent`]s by
//! [`Capture::read`], cumulative losses and counters. Numbers only: no names, no /proc of other
//! processes. The rings are bounded; what they cannot take is counted by reason.
//!
//! [`RawEvent`]: emberscope_model::RawEvent

mod alloc;
mod asked;
mod block;
mod btf;
mod config;
mod cpus;
mod decode;
mod decode_sample;
mod decode_thread;
mod decode_wait;
mod error;
mod features;
mod file_probes;
mod kernel_log;
mod loader;
mod mapped;
mod named;
mod names;
mod off_cpu;
mod pauses;
mod perf_ring;
mod probe;
mod proc_threads;
mod ring;
mod runtimes;
mod session;
mod shares;
mod source;
mod stats;
mod tables;
mod thread_features;
mod threads;
mod tracepoints;
mod uprobe_right;
mod workers;

pub use config::CaptureConfig;
pub use cpus::CpuChange;
pub use decode::decode;
pub use emberscope_model::{FileId, NameProbe};
pub use error::CaptureError;
pub use features::{Capabilities, Finding, FindingState, HostFeatures};
pub use file_probes::Detached;
pub use names::MAX_PROBES;
pub use profiler_ebpf::Loss;
pub use session::{Capture, SmokeReport};
pub use shares::UserLoss;
pub use source::{Lacking, SourceState};
pub use stats::{KernelStats, ProgramStats};
pub use tables::TableMaps;
