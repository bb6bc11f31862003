//! Waits that last: what of them was counted already.
//!
//! In: waits that are not over, each second and at the ends of windows, and waits that ended. Out: the stretch that is to be
//! counted now. So a wait of a minute is in each window in which it passed, and once. What was counted of a wait is kept until
//! its end is told, or until it was missing from two looks: between these the ring was read, so its end was lost. Short waits
//! that are told together go the same way: a thread that waits for work after its task tells the task's last ones when it gets
//! the next, which may be a minute later or never. Of a wait that is counted in part the first part has that it is one.

use super::stacks::StackToken;
use super::worker::Worker;
use emberscope_aggregate::{ClockReading, Counts};
use emberscope_model::{FastMap, FastSet, RawSample, RawWait, Tid};
use profiler_ebpf::{CAUSES, LENGTHS, MAX_WAITERS};

/// Waits that go on are counted when they are as old. Shorter ones are counted when they end.
const SHORTEST_NS: u64 = 20_000_000;

/// What is kept at most: of each thread a wait that goes on, one whose end is still in the ring, and what is owed by cause and length.
const MOST: usize = (2 + CAUSES * LENGTHS) * MAX_WAITERS as usize;

/// A wait that was counted up to a time.
#[derive(Debug)]
struct Counted {
    until_ns: u64,
    /// Nanoseconds that were counted of several.
    weight: u64,
    /// How many waits.
    waits: u32,
    /// At the last look it was not there any more.
    missing: bool,
    /// The wait's stack, which comes up once.
    stack: StackToken,
}

/// A stretch of a wait that is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Begin of the stretch, CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// End of the stretch, CLOCK_MONOTONIC.
    pub until_ns: u64,
    /// Nanoseconds of waiting in the stretch.
    pub weight: u64,
    /// How many waits are counted with it.
    pub waits: u32,
}

impl Stretch {
    /// Whether a wait was for a lock, and so a contention, its stack tells when that has its names.
    fn counts(self, wait: &RawWait) -> Counts {
        let RawWait { sample: RawSample { kind, .. }, walked, .. } = *wait;
        Counts { kind, samples: walked.into(), weight: self.weight, derived: self.waits.into() }
    }
}

/// Waits that are counted in part, by thread and beginning.
#[derive(Debug, Default)]
pub struct OpenWaits(FastMap<(Tid, u64), Counted>);

impl OpenWaits {
    /// A wait that is over: what of it was not counted yet, and its stack where that is known.
    pub fn ended(&mut self, wait: &RawWait) -> (Stretch, Option<StackToken>) {
        let known = self.0.remove(&key(wait));
        (stretch(wait, known.as_ref()), known.map(|known| known.stack))
    }

    /// A wait that goes on: what passed since it was told last.
    pub fn goes_on(&self, wait: &RawWait) -> (Stretch, Option<StackToken>) {
        let known = self.0.get(&key(wait));
        (stretch(wait, known), known.map(|known| known.stack.clone()))
    }

    /// The wait is counted up to now. False: there is no room to keep that, so it must not be; its end has all of it.
    pub fn counted(&mut self, wait: &RawWait, stack: StackToken) -> bool {
        let (key, RawSample { time_ns, weight, detail: waits, .. }) = (key(wait), wait.sample);
        let room = self.0.len() < MOST || self.0.contains_key(&key);
        if room {
            self.0.insert(key, Counted { until_ns: time_ns, weight, waits, missing: false, stack });
        }
        room
    }

    /// Keeps the waits that go on, and those that did at the last look: their end may be in the ring yet.
    pub fn keep(&mut self, open: &[RawWait]) {
        let open: FastSet<(Tid, u64)> = open.iter().map(key).collect();
        self.0.retain(|wait, counted| {
            let was_missing = counted.missing;
            counted.missing = !open.contains(wait);
            !(was_missing && counted.missing)
        });
    }
}

impl Worker {
    /// A wait that is over, or what of it was not counted while it lasted.
    pub(super) fn count_wait(&mut self, wait: &RawWait) {
        let (stretch, stack) = self.waits.ended(wait);
        let Some((labels, token)) = self.whose(&wait.sample) else { return };
        let span = (stretch.from_ns, stretch.until_ns);
        self.windows.add_span(span, &labels, &stack.unwrap_or(token), stretch.counts(wait));
    }

    /// Counts waits that go on, up to now. The ring was read, so that the stacks of all that are as old are known.
    pub(super) fn count_open_waits(&mut self) {
        if !self.capture.has_waits() {
            return;
        }
        let open = self.capture.open_waits(ClockReading::take().monotonic_ns, SHORTEST_NS);
        self.waits.keep(&open);
        for wait in &open {
            let (stretch, stack) = self.waits.goes_on(wait);
            let Some((labels, token)) = self.whose(&wait.sample) else { continue };
            let (span, stack) = ((stretch.from_ns, stretch.until_ns), stack.unwrap_or(token));
            // Zero: what is owed is as it was.
            if stretch.weight != 0 && self.waits.counted(wait, stack.clone()) {
                self.windows.add_span(span, &labels, &stack, stretch.counts(wait));
            }
        }
    }
}

/// What a wait is known by, also several that are told together: no two waits of a thread begin at once.
fn key(wait: &RawWait) -> (Tid, u64) {
    (wait.sample.tid, wait.began_ns)
}

/// What of a wait was not counted yet. The time of several waits is not that between beginning and end.
fn stretch(wait: &RawWait, known: Option<&Counted>) -> Stretch {
    let (ended, whole) = (wait.sample.time_ns, wait.sample.weight);
    let from_ns = known.filter(|_| !wait.several).map_or(wait.began_ns, |known| known.until_ns);
    let until_ns = ended.max(from_ns);
    let weight = match wait.several {
        true => whole.saturating_sub(known.map_or(0, |known| known.weight)),
        false => until_ns - from_ns,
    };
    let waits = wait.sample.detail.saturating_sub(known.map_or(0, |known| known.waits));
    Stretch { from_ns, until_ns, weight, waits }
}

#[cfg(test)]
mod tests {
    use super::super::stacks::Entry;
    use super::*;
    use emberscope_model::{ProcessKey, SampleKind, StackEnd, Tenant};
    use emberscope_symbolize::{PendingStack, Target};
    use std::sync::Arc;

    fn wait(tid: Tid, began_ns: u64, until_ns: u64) -> RawWait {
        let sample = RawSample {
            time_ns: until_ns,
            weight: until_ns - began_ns,
            stack: 1,
            pid: 1,
            tid,
            cpu: 0,
            name_seq: 3,
            kind: SampleKind::OffCpu,
            slot: 0,
            detail: 1,
            kernel_mode: true,
        };
        RawWait { sample, began_ns, several: false, walked: true }
    }

    fn token() -> StackToken {
        let key = ProcessKey { pid: 1, start_ticks: 1 };
        let target = Target { key, uid: 0, gid: 0, nspid: 1, tenant: Tenant::default() };
        let pending = PendingStack { frames: Vec::new().into(), end: StackEnd::Root };
        StackToken(Arc::new(Entry { target: Arc::new(target), pending }))
    }

    fn of((stretch, stack): (Stretch, Option<StackToken>)) -> (u64, u64, u64, Option<StackToken>) {
        (stretch.from_ns, stretch.until_ns, stretch.weight, stack)
    }

    #[test]
    fn a_wait_is_one_in_whatever_pieces_it_is_counted() {
        let (mut open, stack) = (OpenWaits::default(), token());
        let waits = |of: (Stretch, Option<StackToken>)| of.0.waits;
        assert_eq!(waits(open.goes_on(&wait(7, 100, 150))), 1);
        open.counted(&wait(7, 100, 150), stack.clone());
        assert_eq!(waits(open.goes_on(&wait(7, 100, 180))), 0);
        assert_eq!(waits(open.ended(&wait(7, 100, 200))), 0);
        assert_eq!(waits(open.ended(&wait(7, 300, 400))), 1, "none was counted in part");
        let owed = |detail, weight| RawWait {
            several: true,
            walked: false,
            sample: RawSample { weight, detail, ..wait(7, 20, 90).sample },
            began_ns: 20,
        };
        assert_eq!(waits(open.goes_on(&owed(3, 30))), 3);
        open.counted(&owed(3, 30), stack);
        assert_eq!(waits(open.ended(&owed(5, 45))), 2, "two more since then");
    }

    #[test]
    fn a_long_wait_is_counted_once_and_as_it_passes() {
        let (mut open, stack) = (OpenWaits::default(), token());
        assert_eq!(of(open.goes_on(&wait(7, 100, 150))), (100, 150, 50, None));
        open.counted(&wait(7, 100, 150), stack.clone());
        assert_eq!(of(open.goes_on(&wait(7, 100, 180))), (150, 180, 30, Some(stack.clone())));
        open.counted(&wait(7, 100, 180), stack.clone());
        // Short ones that were told together have nothing to do with it.
        let several = RawWait {
            several: true,
            walked: false,
            sample: RawSample { weight: 5, ..wait(7, 20, 90).sample },
            began_ns: 20,
        };
        assert_eq!(of(open.ended(&several)), (20, 90, 5, None));
        assert_eq!(of(open.ended(&wait(7, 100, 181))), (180, 181, 1, Some(stack)));
        assert_eq!(of(open.ended(&wait(7, 100, 181))), (100, 181, 81, None), "it is forgotten");
    }

    /// A thread that waits for its next task tells the last short ones when it gets that.
    #[test]
    fn short_waits_that_are_owed_are_counted_once() {
        let (mut open, stack) = (OpenWaits::default(), token());
        let owed = |until_ns, weight| RawWait {
            several: true,
            walked: false,
            sample: RawSample { weight, ..wait(7, 20, until_ns).sample },
            began_ns: 20,
        };
        assert_eq!(of(open.goes_on(&owed(90, 5))), (20, 90, 5, None));
        assert!(open.counted(&owed(90, 5), stack.clone()));
        // It waited shortly again, and then for long.
        assert_eq!(of(open.goes_on(&owed(300, 8))), (20, 300, 3, Some(stack.clone())));
        assert!(open.counted(&owed(300, 8), stack.clone()));
        open.keep(&[owed(300, 8)]);
        assert_eq!(of(open.ended(&owed(400, 9))), (20, 400, 1, Some(stack)));
        assert_eq!(of(open.ended(&owed(400, 9))), (20, 400, 9, None), "it is forgotten");
    }

    #[test]
    fn another_wait_of_the_thread_is_another() {
        let (mut open, stack) = (OpenWaits::default(), token());
        open.counted(&wait(7, 100, 150), stack.clone());
        open.counted(&wait(8, 100, 150), stack);
        assert_eq!(of(open.goes_on(&wait(7, 160, 170))), (160, 170, 10, None));
        assert_eq!(of(open.ended(&wait(7, 160, 190))), (160, 190, 30, None));
        // An end that was told before what was read of it earlier comes to nothing.
        assert_eq!(open.ended(&wait(8, 100, 140)).0.weight, 0);
    }

    /// It ended after the ring was read and before the map was: the look finds the thread at its next wait, or running.
    #[test]
    fn an_end_that_is_in_the_ring_yet_is_of_what_was_counted() {
        let (mut open, stack) = (OpenWaits::default(), token());
        for tid in [7, 8, 9] {
            open.counted(&wait(tid, 100, 150), stack.clone());
        }
        open.keep(&[wait(7, 170, 180), wait(9, 100, 180)]);
        open.counted(&wait(7, 170, 180), stack.clone());
        assert_eq!(of(open.ended(&wait(7, 100, 165))), (150, 165, 15, Some(stack.clone())));
        assert_eq!(of(open.ended(&wait(8, 100, 160))), (150, 160, 10, Some(stack.clone())));
        assert_eq!(of(open.ended(&wait(7, 170, 181))), (180, 181, 1, Some(stack)));
        // One whose end was lost is not kept for ever.
        open.keep(&[]);
        assert_eq!(open.0.len(), 1);
        open.keep(&[]);
        assert_eq!(open.0.len(), 0);
    }
}
