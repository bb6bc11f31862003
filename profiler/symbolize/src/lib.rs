//! Gives frames their names: stacks of addresses in, stacks of frames out.
//!
//! Kernel frames from kallsyms, native ones from ELF symbols (blazesym), JIT code from perf maps that are
//! there or that a JVM is asked for. Names are given at capture: [`Symbolizer::begin`] resolves what can
//! be named at once, while the process lives; [`Symbolizer::finish`] resolves JIT code at the window's
//! end, after [`Symbolizer::ask`] and [`Symbolizer::poll`] brought the newest map. An address that cannot
//! be named is a frame that says why. Everything that targets wrote is bounded, checked and never waited
//! for on the caller's thread.

mod asker;
mod attach;
mod config;
mod counters;
mod deferred;
mod files;
mod frames;
mod identity;
mod java_name;
mod jit;
mod jvm;
mod kernel;
mod native;
mod outcome;
mod packed;
mod pending;
pub mod perf_map;
mod process;
mod symbolizer;
#[cfg(test)]
mod tests;
mod thread_start;
mod vdso;

pub use attach::AskError;
pub use config::{SymbolizerConfig, Target};
pub use counters::SymbolizerCounters;
pub use emberscope_target::open::Refusal;
pub use java_name::frame as perf_map_frame;
pub use native::{By, DebuginfodCounters, Mangled, NativeCounters, names as native_names};
pub use pending::{PendingFrame, PendingStack};
pub use process::Walked;
pub use symbolizer::Symbolizer;
