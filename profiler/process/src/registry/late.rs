//! Processes that did not tell in time what they are, as where nobody had time to wait for them: they are read again.
//!
//! A Python daemon sleeps, so that no sample asks for it: its workers are bound to no task until it is known.

use super::{MAX_ANCESTORS, Registry};
use emberscope_model::{Pid, ProcessKey};

/// Most ticks between two readings.
const SLOWEST: u64 = 16;

/// When a process is read again that was late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    due: u64,
    times: u32,
}

impl Late {
    /// It was late once more, at this tick.
    pub fn again(self, tick: u64) -> Self {
        let pause = 1_u64.checked_shl(self.times).unwrap_or(SLOWEST).min(SLOWEST);
        Self { due: tick + pause, times: self.times + 1 }
    }
}

impl Registry {
    /// Reads those again whose time has come: the longest due first, as many as are checked in a tick.
    pub(super) fn read_late(&mut self) {
        let tick = self.tick;
        let mut due: Vec<(u64, ProcessKey)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.process.exited)
            .filter_map(|(key, entry)| Some((entry.late?.due, *key)))
            .filter(|(due, _)| *due <= tick)
            .collect();
        due.sort_unstable();
        let due: Vec<Pid> = due.iter().take(self.config.limits.checks).map(|(_, key)| key.pid).collect();
        for pid in due {
            if let Some(entry) = self.by_pid.get(&pid).and_then(|key| self.entries.get_mut(key)) {
                entry.stale = true;
            }
            self.current(pid, MAX_ANCESTORS);
        }
    }
}
