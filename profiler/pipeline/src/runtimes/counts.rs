//! What processes of runtimes count of themselves: HotSpot how often it compiled, say.
//!
//! In: the counts of each process whose stacks are walked, every [`EVERY`]. Out: the last ones of each, for the status; and by
//! how much those of all went up while they were watched, for the metrics. What a process had counted when it was first looked
//! at, and what it counts after the last look, is in no sum; of a count that went back nothing is added that once.

use super::reader::Job;
use super::{Processes, Walking};
use emberscope_model::ProcessKey;
use emberscope_runtime::Runtimes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two looks at a process.
const EVERY: Duration = Duration::from_secs(10);
/// By how much a count goes up between two looks at most, a million a second: what goes up by more lies, and adds nothing.
const MOST: u64 = 10_000_000;

/// The counts of one process.
#[derive(Debug, Default)]
pub(super) struct Counts {
    asked: Option<Instant>,
    last: Vec<(&'static str, u64)>,
}

impl Counts {
    fn get(&self, name: &str) -> Option<u64> {
        self.last.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
    }
}

/// Nothing of each count of these runtimes.
pub(super) fn none_yet(runtimes: &Runtimes) -> BTreeMap<&'static str, u64> {
    runtimes.iter().flat_map(|runtime| runtime.words().counts).map(|name| (*name, 0)).collect()
}

impl Processes {
    /// A count of a process, at most [`EVERY`] old; None: it does not tell, or was not asked yet.
    pub fn count(&self, key: ProcessKey, name: &str) -> Option<u64> {
        self.known.get(&key).and_then(|process| process.counts.get(name))
    }

    /// By how much the counts of all processes went up since the daemon began, by name.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counted.iter().map(|(name, count)| (*name, *count))
    }

    /// Asks the processes whose turn has come. One that cannot be read now is asked as late as any other.
    pub(super) fn ask_counts(&mut self) {
        let now = Instant::now();
        let runtimes = self.reader.readers().runtimes();
        for (key, process) in &mut self.known {
            let due = process.counts.asked.is_none_or(|asked| now.duration_since(asked) >= EVERY);
            let counts =
                || runtimes.get(process.runtime).is_some_and(|runtime| !runtime.words().counts.is_empty());
            let asks = due && process.walking == Walking::CodeTables && counts();
            if asks && self.reader.submit((process.runtime, *key), Job::Counts) {
                process.counts.asked = Some(now);
            }
        }
    }

    /// Takes in what a process has counted.
    pub(super) fn take_counts(&mut self, key: ProcessKey, counts: Vec<(&'static str, u64)>) {
        let Some(process) = self.known.get_mut(&key) else { return };
        if counts.is_empty() {
            return;
        }
        for (name, count) in &counts {
            let more = process.counts.get(name).map_or(0, |before| count.saturating_sub(before));
            if more <= MOST {
                let sum = self.counted.entry(name).or_default();
                *sum = sum.saturating_add(more);
            }
        }
        process.counts.last = counts;
    }
}
