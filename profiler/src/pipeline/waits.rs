//! Waits that last: what of them was counted already.
//!
//! In: waits that are not over, each second and at the ends of windows, and waits that ended. Out: the stretch that is to be
//! counted now. So a wait of a minute is in each window in which it passed, and once. One entry a waiting thread.

use super::stacks::StackToken;
use crate::model::{FastMap, RawWait, Tid};
use profiler_ebpf::MAX_WAITERS;

/// A wait that was counted up to a time.
#[derive(Debug)]
struct Counted {
    began_ns: u64,
    until_ns: u64,
    /// Its stack, which comes up once.
    stack: StackToken,
}

/// What is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// Likewise.
    pub until_ns: u64,
    /// Nanoseconds of waiting in it.
    pub weight: u64,
}

/// All that are counted in part.
#[derive(Debug, Default)]
pub struct OpenWaits(FastMap<Tid, Counted>);

impl OpenWaits {
    /// A wait that is over.
    pub fn ended(&mut self, wait: &RawWait) -> (Stretch, Option<StackToken>) {
        let known = match wait.several {
            false => self.0.remove(&wait.sample.tid).filter(|known| known.began_ns == wait.began_ns),
            true => None,
        };
        let from = known.as_ref().map_or(wait.began_ns, |known| known.until_ns);
        (stretch(wait, from), known.map(|known| known.stack))
    }

    /// A wait that goes on: what passed since it was told last.
    pub fn goes_on(&self, wait: &RawWait) -> (Stretch, Option<StackToken>) {
        let known = self.0.get(&wait.sample.tid).filter(|known| known.began_ns == wait.began_ns);
        let from = known.map_or(wait.began_ns, |known| known.until_ns);
        (stretch(wait, from), known.map(|known| known.stack.clone()))
    }

    /// It is counted up to now.
    pub fn counted(&mut self, wait: &RawWait, stack: StackToken) {
        let (began_ns, until_ns) = (wait.began_ns, wait.sample.time_ns);
        if self.0.len() < MAX_WAITERS as usize || self.0.contains_key(&wait.sample.tid) {
            self.0.insert(wait.sample.tid, Counted { began_ns, until_ns, stack });
        }
    }

    /// Keeps those that go on.
    pub fn keep(&mut self, open: &[RawWait]) {
        let goes_on =
            |tid: Tid, began_ns| open.iter().any(|wait| (wait.sample.tid, wait.began_ns) == (tid, began_ns));
        self.0.retain(|tid, counted| goes_on(*tid, counted.began_ns));
    }
}

/// From a time on; of several the whole, as their time is not that between beginning and end.
fn stretch(wait: &RawWait, from_ns: u64) -> Stretch {
    let until_ns = wait.sample.time_ns.max(from_ns);
    let weight = if wait.several { wait.sample.weight } else { until_ns - from_ns };
    Stretch { from_ns, until_ns, weight }
}
