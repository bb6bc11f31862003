//! What the room counts; the pipeline shows it as metrics and in the status.

use super::native::NativeCounters;
use emberscope_target::open::Refusal;
use std::collections::BTreeMap;

/// Counts since start, except where it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolizerCounters {
    /// Processes held now.
    pub processes: u64,
    /// Processes dropped because of the limit, and those whose code was, for its bytes.
    pub processes_evicted: u64,
    /// Frames shared now.
    pub frames: u64,
    /// Perf maps that went on beyond the limit of bytes.
    pub perf_maps_cut: u64,
    /// Perf map entries that a limit left out.
    pub perf_map_entries_dropped: u64,
    /// Perf maps refused, by [`Refusal::slug`].
    pub perf_maps_refused: BTreeMap<&'static str, u64>,
    /// JVMs asked for a map that answered.
    pub asks_answered: u64,
    /// JVMs asked in vain, by [`super::AskError::slug`].
    pub asks_failed: BTreeMap<&'static str, u64>,
    /// Jobs turned away because too many waited.
    pub asks_dropped: u64,
    /// JIT addresses that no map named at [`super::Symbolizer::finish`].
    pub jit_unnamed: u64,
    /// JIT addresses that a map named.
    pub jit_named: u64,
    /// JIT addresses and ranges that a limit left out, of the processes held now.
    pub jit_dropped: u64,
    /// Java frames named from a JVM's memory.
    pub java_named: u64,
    /// Java frames that its memory did not name, by the slug of [`emberscope_model::UnknownReason`].
    pub java_unnamed: BTreeMap<&'static str, u64>,
    /// Time the reader of JVMs' memory took, nanoseconds.
    pub java_read_ns: u64,
    /// JVMs whose memory is held open now, or whose failure is remembered.
    pub java_held: usize,
    /// What is counted of native code.
    pub native: NativeCounters,
}

impl SymbolizerCounters {
    pub(super) fn refused(&mut self, refusal: Refusal) {
        *self.perf_maps_refused.entry(refusal.slug()).or_default() += 1;
    }
}
