//! The pauses of one open window; bounded, since a process that is none of HotSpot's can run the probed code at will.
//!
//! Over a limit a pause is counted and not listed, of a process the shortest: the ledger's sums, which the kernel keeps, have it
//! all the same.

use emberscope_model::{LabelSet, Pause};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// Pauses of one process in one window: a hundred a second, where a JVM that collects all the time has some tens.
const OF_PROCESS: usize = 1000;
/// Pauses of one window: those of 20 such processes. 1 MiB.
const OF_WINDOW: usize = 20_000;

/// The pauses of a window.
#[derive(Debug, Default)]
pub(super) struct WindowPauses {
    all: Vec<Pause>,
    /// Of each process the lengths, nanoseconds, and places in the list; the shortest is on top.
    of_process: HashMap<Arc<LabelSet>, BinaryHeap<Reverse<(u64, usize)>>>,
}

impl WindowPauses {
    /// Lists a pause; false: there is no room for one, for this or for a shorter one that was listed before.
    pub(super) fn add(&mut self, pause: Pause) -> bool {
        let own = self.of_process.entry(pause.labels.clone()).or_default();
        if own.len() >= OF_PROCESS || self.all.len() >= OF_WINDOW {
            if let Some(mut shortest) = own.peek_mut()
                && shortest.0.0 < pause.length_ns
                && let Some(listed) = self.all.get_mut(shortest.0.1)
            {
                shortest.0.0 = pause.length_ns;
                *listed = pause;
            }
            return false;
        }
        own.push(Reverse((pause.length_ns, self.all.len())));
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
        assert_eq!(taken, OF_PROCESS);
        let others = (2..40).map(|pid| (0..1000).filter(|n| pauses.add(pause(pid, *n))).count());
        assert_eq!(others.sum::<usize>(), OF_WINDOW - taken);
        let list = pauses.into_list();
        assert!(list.len() == OF_WINDOW && list.is_sorted_by_key(|pause| pause.began));
    }

    #[test]
    fn the_longest_of_a_process_are_listed() {
        let labels = Arc::new(LabelSet::default());
        let pause = |length_ns| Pause {
            labels: Arc::clone(&labels),
            began: WallTime(length_ns),
            length_ns,
            cause: "Cleanup".into(),
        };
        let mut pauses = WindowPauses::default();
        // As they may come: short and long, each length once.
        let lengths = (0..3000).map(|n| n * 7 % 3001);
        assert_eq!(lengths.filter(|length| pauses.add(pause(*length))).count(), OF_PROCESS);
        let list = pauses.into_list();
        assert_eq!(list.len(), OF_PROCESS);
        let mut all: Vec<u64> = (0..3000).map(|n| n * 7 % 3001).collect();
        all.sort_unstable();
        assert!(list.iter().map(|pause| pause.length_ns).eq(all.split_off(2000)));
    }
}
