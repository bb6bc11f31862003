//! What is known of a process of a runtime.

use emberscope_model::{NameSource, RuntimeId};
use emberscope_runtime::Facts;
use std::path::PathBuf;

/// A process's state as one of a runtime, as far as it has been read or asked.
#[derive(Clone, Debug)]
pub struct RuntimeState {
    /// The runtime that it runs.
    pub id: RuntimeId,
    /// The file that shows it, as mapped: a JVM's libjvm.so.
    pub library: PathBuf,
    /// Version of the runtime, once looked up.
    pub version: Option<String>,
    /// Where the names of its code come from.
    pub names: NameSource,
    /// What the process's memory told of it.
    pub facts: Option<Facts>,
    /// Whether the process's memory cannot be read.
    pub unread: bool,
    /// Whether the process will never answer.
    pub never: bool,
    /// Signals sent that brought no socket.
    pub vain_signals: u32,
}

/// Whether the kernel's walker knows the code of a process's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// The walker does not know it yet.
    NotYet,
    /// The walker knows it in stacks taken from this instant on (CLOCK_MONOTONIC, nanoseconds).
    From(u64),
    /// The process is not as we know that runtime.
    Never,
}
