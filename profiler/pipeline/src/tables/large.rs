//! Where processes have code of files that have tables of parts only: told by the teller, asked by the sampling thread.

use emberscope_model::Pid;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type ByProcess = HashMap<Pid, Arc<[Range<u64>]>>;

/// The mappings of such files, by process.
#[derive(Clone, Debug, Default)]
pub struct Large(Arc<Mutex<ByProcess>>);

impl Large {
    /// Of a process, all of them.
    pub fn tell(&self, pid: Pid, ranges: Arc<[Range<u64>]>) {
        match ranges.is_empty() {
            true => self.all().remove(&pid),
            false => self.all().insert(pid, ranges),
        };
    }

    /// Those of a process; None: it has none.
    pub fn of(&self, pid: Pid) -> Option<Arc<[Range<u64>]>> {
        self.all().get(&pid).cloned()
    }

    /// Forgets the processes for which this does not hold.
    pub fn retain(&self, holds: impl Fn(Pid) -> bool) {
        self.all().retain(|pid, _| holds(*pid));
    }

    fn all(&self) -> MutexGuard<'_, ByProcess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
