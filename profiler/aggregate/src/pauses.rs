//! The pauses of one open window; bounded, since a process that is none of HotSpot's can run the probed code at will.
//!
//! Over a limit a pause is counted and not listed: the ledger's sums, which the kernel keeps, have it all the same.

use emberscope_model::{LabelSet, Pause};
use std::collections::HashMap;
use std::sync::Arc;

/// Pauses of one process in one window: a hundred a second, where a JVM that collects all the time has some tens.
const OF_PROCESS: u32 = 1000;
/// Pauses of one window: those of 20 such processes. 1 MiB.
const OF_WINDOW: usize = 20_000;

/// The pauses of a window.
#[derive(Debug, Default)]
pub(super) struct WindowPauses {
    all: Vec<Pause>,
    of_process: HashMap<Arc<LabelSet>, u32>,
}

impl WindowPauses {
    /// Lists a pause; false: there is no room.
    pub(super) fn add(&mut self, pause: Pause) -> bool {
        if self.all.len() >= OF_WINDOW {
            return false;
        }
        let own = self.of_process.entry(pause.labels.clone()).or_default();
        if *own >= OF_PROCESS {
            return false;
        }
        *own += 1;
        self.all.push(pause);
        true
    }

    pub(super) fn into_list(mut self) -> Vec<Pause> {
        self.all.sort_by_key(|pause| pause.began);
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{LabelKey, LabelSetBuilder, WallTime};

    #[test]
    fn a_process_has_its_share_and_a_window_its_limit() {
        let pause = |pid: u32, began| Pause {
            labels: Arc::new(LabelSetBuilder::new().set(LabelKey::Pid, pid.to_string()).build()),
            began: WallTime(began),
            length_ns: 5,
            cause: "Cleanup".into(),
        };
        let mut pauses = WindowPauses::default();
        let taken = (0..3000).filter(|n| pauses.add(pause(1, 3000 - n))).count();
        assert_eq!(taken as u32, OF_PROCESS);
        let others = (2..40).map(|pid| (0..1000).filter(|n| pauses.add(pause(pid, *n))).count());
        assert_eq!(others.sum::<usize>(), OF_WINDOW - taken);
        let list = pauses.into_list();
        assert!(list.len() == OF_WINDOW && list.is_sorted_by_key(|pause| pause.began));
    }
}
