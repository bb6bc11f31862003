//! What a process takes of the room that all share for code, and how it gives way.

use super::ProcessState;
use std::time::{Duration, Instant};

/// Bytes of a mapping: 88 with the state of its file, and 48 of the slot that the state may hold.
const MAPPING_BYTES: usize = 136;
/// How long a process that gave way is not read again: whoever maps the most comes back with as much.
const CROWDED: Duration = Duration::from_secs(30);

impl ProcessState {
    /// Bytes of its mappings, their paths, and what is known of its JIT code; estimated.
    pub fn bytes(&self) -> usize {
        self.mappings.len() * MAPPING_BYTES + self.path_bytes + self.jit.bytes()
    }

    /// Gives up what [`Self::bytes`] counts: its frames are `[unknown: table full]` for a while.
    pub fn give_way(&mut self, now: Instant) {
        (self.mappings, self.files, self.path_bytes) = (Vec::new(), Vec::new(), 0);
        self.jit.give_up();
        (self.reading, self.read_at) = (None, None);
        self.crowded = Some(now + CROWDED);
    }

    /// Whether it gave way a short while ago.
    pub fn is_crowded(&self) -> bool {
        self.crowded.is_some_and(|until| Instant::now() < until)
    }
}
