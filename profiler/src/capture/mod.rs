//! The kernel side's other half: loads and attaches the BPF programs, reads the ring buffer, counts.
//!
//! In: a [`CaptureConfig`] and what the host can do ([`HostFeatures`]). Out: [`RawEvent`]s by
//! [`Capture::read`], cumulative losses and counters. Numbers only: no names, no /proc of other
//! processes. The ring buffer is bounded; what it cannot take is counted by reason.
//!
//! [`RawEvent`]: crate::model::RawEvent

mod btf;
mod config;
mod cpus;
mod decode;
mod error;
mod features;
mod kernel_log;
mod loader;
mod probe;
mod ring;
mod session;
mod stats;

pub use config::CaptureConfig;
pub use cpus::CpuChange;
pub use error::CaptureError;
pub use features::{Capabilities, Finding, FindingState, HostFeatures};
pub use session::{Capture, SmokeReport};
pub use stats::{KernelStats, ProgramStats};
