//! What is known of a process of a runtime.

use emberscope_model::{NameSource, RuntimeId};
use emberscope_runtime::Facts;
use std::path::PathBuf;

/// Its state, as far as it has been read or asked.
#[derive(Clone, Debug)]
pub struct RuntimeState {
    /// Which runtime.
    pub id: RuntimeId,
    /// The file that shows it, as mapped: a JVM's libjvm.so.
    pub library: PathBuf,
    /// Version, once looked up.
    pub version: Option<String>,
    /// Where its names come from.
    pub names: NameSource,
    /// What its memory told of it.
    pub facts: Option<Facts>,
    /// Its memory cannot be read.
    pub unread: bool,
    /// It will never answer.
    pub never: bool,
    /// Signals sent in vain.
    pub vain_signals: u32,
}

/// Whether the kernel's walker knows the code of a process's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// Not yet.
    NotYet,
    /// Stacks taken from this instant on (CLOCK_MONOTONIC, nanoseconds).
    From(u64),
    /// It is not as we know that runtime.
    Never,
}
