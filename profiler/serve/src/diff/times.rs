//! What slow tasks' longer wall time went to.
//!
//! In: the tasks of a group. Out: what their own threads' wall time went to, and what that of slow ones has more of than that
//! of usual ones. The times are exact; what differs from task to task anyway is no reason: a part counts where its means
//! differ by more than twice the standard error that the spread within both groups gives.

use super::super::figures::seconds;
use super::super::work::Task;
use emberscope_api as api;
use emberscope_export::SIGNIFICANT;
use std::collections::BTreeMap;

/// Sum of a part over tasks, and of its squares.
#[derive(Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
}

impl Moments {
    fn mean(&self, count: usize) -> f64 {
        self.sum / count.max(1) as f64
    }
    /// None of a single task: one has no spread.
    fn variance(&self, count: usize) -> Option<f64> {
        let n = count as f64;
        (count > 1).then(|| ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0))
    }
}

/// What threads' wall time went to, seconds: names as in `by` of `waited`, with `cpu`, `run_delay`, of which
/// `throttled` is none, and `blocked` for blocked time of which no wait was seen.
#[derive(Default)]
pub struct Times(BTreeMap<&'static str, Moments>);

impl Times {
    /// The times of tasks' own threads, where the ledger knows these.
    pub fn of(tasks: &[Task]) -> Self {
        let mut all = Self::default();
        for (task, sums) in tasks.iter().filter_map(|task| Some((task, task.own.exact?))) {
            let mut blocked = sums.blocked_ns();
            all.add("cpu", sums.accounts.cpu_ns);
            let (queued, throttled) = sums.queued_and_throttled_ns();
            all.add("run_delay", queued);
            all.add("throttled", throttled);
            for (reason, ns) in task.waits.by_reason() {
                all.add(reason.slug(), ns);
                blocked = blocked.saturating_sub(ns);
            }
            all.add("blocked", blocked);
        }
        all
    }
    fn add(&mut self, what: &'static str, ns: u64) {
        let moments = self.0.entry(what).or_default();
        moments.sum += seconds(ns);
        moments.squares += seconds(ns) * seconds(ns);
    }
    fn get(&self, what: &str) -> Moments {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// What a slow task's wall time has more of than a usual one's, the most first: seconds a task, and the part of all that it
/// has more. In: each group's times and how many tasks it has, the usual ones first.
pub fn because((usual, m): (&Times, usize), (slow, n): (&Times, usize)) -> Vec<api::Because> {
    let more = |what: &&'static str| {
        let (usual, slow) = (usual.get(what), slow.get(what));
        let more = slow.mean(n) - usual.mean(m);
        // A single task is taken to spread as those of the other group do.
        let (of_usual, of_slow) = (usual.variance(m), slow.variance(n));
        let [of_usual, of_slow] = [of_usual.or(of_slow), of_slow.or(of_usual)].map(Option::unwrap_or_default);
        let error = (of_usual / m.max(1) as f64 + of_slow / n.max(1) as f64).sqrt();
        (more > 0.0 && more > SIGNIFICANT * error).then_some((*what, more))
    };
    let mut more: Vec<(&str, f64)> = slow.0.keys().filter_map(more).collect();
    more.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = more.iter().map(|(_, seconds)| seconds).sum();
    more.iter()
        .map(|(what, seconds)| api::Because { of: (*what).into(), seconds: *seconds, share: seconds / all })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(of: &[(&'static str, &[u64])]) -> Times {
        let mut all = Times::default();
        for (what, each) in of {
            each.iter().for_each(|ms| all.add(what, ms * 1_000_000));
        }
        all
    }

    #[test]
    fn what_differs_from_task_to_task_anyway_is_no_reason() {
        let usual = times(&[("cpu", &[1000, 1010, 1020, 990]), ("shuffle", &[5, 90, 10, 70])]);
        let slow = times(&[("cpu", &[1001, 1012]), ("shuffle", &[100, 20]), ("lock", &[4000, 4200])]);
        let more = because((&usual, 4), (&slow, 2));
        assert_eq!(more.iter().map(|more| &*more.of).collect::<Vec<_>>(), ["lock"]);
        assert_eq!(more[0].share, 1.0);
        let one = times(&[("cpu", &[1015]), ("lock", &[4000])]);
        let more = because((&usual, 4), (&one, 1));
        assert_eq!(more.iter().map(|more| &*more.of).collect::<Vec<_>>(), ["lock"]);
    }
}
