//! The time between two tasks, in the ledger.
//!
//! Up to Spark 4.1 a thread of the pool keeps the last task's name, and its wall time runs on, while it waits for the next
//! task. Where waits are sampled that time is known, and exact: it is the waits whose stack says that the task is over
//! ([`crate::idle`]).
//!
//! In: those waits of a window, by the labels with the task and without, and the window's ledger. Out: the ledger, with that
//! wall time in the line of no task; sums stay as they are. A task is seen until that time begins, as it is the last of its
//! thread's under this name. A thread's accounts are read at the end of a window, and its waits told when they end or each second:
//! what a line has no blocked time for is taken from the next window's, and what that has not either stays with the task. At most
//! as many are kept as a window has rows.

use emberscope_model::{FastMap, LabelSet, LedgerRow, LedgerSums, TimeRange};
use std::sync::Arc;
use std::time::Duration;

/// A time between two tasks that is in the line of the one before.
#[derive(Debug)]
struct Owed {
    without_task: Arc<LabelSet>,
    ns: u64,
    /// It is of the window before.
    old: bool,
}

/// Times between two tasks, by the labels of the one before.
#[derive(Debug, Default)]
pub struct Between(FastMap<Arc<LabelSet>, Owed>);

impl Between {
    /// A thread with these labels waited so many nanoseconds for its next task.
    pub fn waited(&mut self, labels: Arc<LabelSet>, without_task: &Arc<LabelSet>, ns: u64) {
        let new = || Owed { without_task: without_task.clone(), ns: 0, old: false };
        let owed = self.0.entry(labels).or_insert_with(new);
        owed.ns = owed.ns.saturating_add(ns);
    }

    /// Moves what was waited to the lines without a task.
    pub fn settle(&mut self, ledger: &mut Vec<LedgerRow>) {
        if self.0.is_empty() {
            return;
        }
        let lines = ledger.iter().enumerate();
        let mut places: FastMap<Arc<LabelSet>, usize> =
            lines.map(|(at, line)| (line.labels.clone(), at)).collect();
        self.0.retain(|labels, owed| {
            let line = places.get(labels).and_then(|at| ledger.get_mut(*at));
            if let Some(LedgerRow { sums, seen, .. }) = line {
                let ns = owed.ns.min(sums.blocked_ns());
                sums.wall_ns -= ns;
                // Of the pauses of its JVM it is not known which fell into that time.
                sums.accounts.paused_ns = sums.accounts.paused_ns.min(sums.wall_ns);
                owed.ns -= ns;
                let end = seen.until;
                seen.until = end.minus(Duration::from_nanos(ns)).max(seen.from);
                let seen = TimeRange { from: seen.until, until: end };
                let moved = LedgerSums { wall_ns: ns, ..LedgerSums::default() };
                let at = *places.entry(owed.without_task.clone()).or_insert(ledger.len());
                match ledger.get_mut(at) {
                    Some(line) => {
                        line.sums.add(&moved);
                        line.seen.cover(&seen);
                    }
                    None => ledger.push(LedgerRow { labels: owed.without_task.clone(), sums: moved, seen }),
                }
            }
            !std::mem::replace(&mut owed.old, true) && owed.ns > 0
        });
        // In all of the window its task was over.
        ledger.retain(|line| line.sums != LedgerSums::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{Accounts, LabelKey, LabelSetBuilder, WallTime};

    fn labels(task: &str) -> Arc<LabelSet> {
        let set = LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::ThreadClass, "task");
        Arc::new(set.set(LabelKey::Task, task).build())
    }

    fn line(task: &str, cpu_ns: u64, wall_ns: u64) -> LedgerRow {
        let accounts = Accounts { cpu_ns, paused_ns: 5.min(wall_ns), ..Accounts::default() };
        let seen = TimeRange { from: WallTime(0), until: WallTime(1_000) };
        LedgerRow { labels: labels(task), sums: LedgerSums { accounts, wall_ns, begun: 1 }, seen }
    }

    fn walls(ledger: &[LedgerRow]) -> Vec<(&str, u64, u64)> {
        let of = |line: &LedgerRow| (line.sums.wall_ns, line.sums.blocked_ns());
        let mut all: Vec<_> =
            ledger.iter().map(|line| (line.labels.get(LabelKey::Task), of(line).0, of(line).1)).collect();
        all.sort();
        all
    }

    #[test]
    fn what_a_thread_waits_for_its_next_task_is_no_tasks() {
        let mut between = Between::default();
        between.waited(labels("7"), &labels(""), 60);
        between.waited(labels("7"), &labels(""), 10);
        between.waited(labels("8"), &labels(""), 3);
        let mut ledger = vec![line("7", 20, 100), line("8", 1, 9), line("9", 0, 50)];
        between.settle(&mut ledger);
        assert_eq!(walls(&ledger), [("", 73, 73), ("7", 30, 10), ("8", 6, 5), ("9", 50, 50)]);
        let seen: Vec<_> = ledger.iter().map(|line| (line.seen.from.0, line.seen.until.0)).collect();
        assert_eq!(
            seen,
            [(0, 930), (0, 997), (0, 1_000), (930, 1_000)],
            "a task until its thread waits for the next"
        );
        let mut again = vec![line("7", 20, 100), line("", 0, 4)];
        between.settle(&mut again);
        assert_eq!(walls(&again), [("", 4, 4), ("7", 100, 80)], "it was taken once");
    }

    #[test]
    fn what_comes_before_its_accounts_is_taken_from_the_next_window_and_no_later() {
        let mut between = Between::default();
        between.waited(labels("7"), &labels(""), 100);
        let mut first = vec![line("7", 20, 60), line("", 0, 1)];
        between.settle(&mut first);
        assert_eq!(walls(&first), [("", 41, 41), ("7", 20, 0)], "no more than it was blocked");
        let mut second = vec![line("7", 0, 30)];
        between.settle(&mut second);
        assert_eq!(walls(&second), [("", 30, 30), ("7", 0, 0)]);
        assert_eq!(second[0].sums.accounts.paused_ns, 0);
        let mut third = vec![line("7", 0, 30)];
        between.settle(&mut third);
        assert_eq!(walls(&third), [("7", 30, 30)], "30 ns were never found");
        between.waited(labels("7"), &labels(""), 5);
        let mut over = vec![line("7", 0, 5)];
        (over[0].sums.begun, over[0].sums.accounts.paused_ns) = (0, 0);
        between.settle(&mut over);
        assert_eq!(walls(&over), [("", 5, 5)], "the task was over all the time");
        between.waited(labels("7"), &labels(""), 5);
        between.settle(&mut Vec::new());
        between.settle(&mut Vec::new());
        assert!(between.0.is_empty());
    }
}
