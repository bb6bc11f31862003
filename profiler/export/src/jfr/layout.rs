//! How samples become events: one each, as tools count events; over a limit one for several.
//!
//! An answer says how often a stack was sampled, and not when: its events lie evenly over the answer's span, those of the
//! next stack shifted against them. Samples of a time that was waited weigh what the wait lasted: there an event stands for a
//! length of time, as those of a wall-clock profiler do.

use emberscope_model::{Pace, SampleKind};

/// Most events, about: of some 60 bytes each they stay below [`super::super::MAX_BYTES`]. A stack has one at least.
pub const MAX_EVENTS: u64 = 500_000;

/// Nanoseconds of waiting for which there is an event: as often as CPU time is sampled, so that tools that count events see both
/// alike.
const WAITED_NS: u64 = 10_000_000;

/// What an event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// So many samples, of any kind but waits.
    Samples(u64),
    /// So much weight: nanoseconds of waiting.
    Weight(u64),
}

impl Each {
    /// What an event of a kind stands for, of so many samples of this weight in all.
    pub fn of(kind: SampleKind, count: u64, weight: u64) -> Self {
        match kind.facts().pace {
            Pace::Every(_) if kind.holds(SampleKind::OffCpu) => {
                Self::Weight(WAITED_NS.max(weight.div_ceil(MAX_EVENTS)))
            }
            _ => Self::Samples(count.div_ceil(MAX_EVENTS).max(1)),
        }
    }
    /// Events for samples of a stack.
    const fn events(self, count: u64, weight: u64) -> u64 {
        let events = match self {
            Self::Samples(each) => count.div_ceil(each),
            Self::Weight(each) => (weight / each) + (weight % each > each / 2) as u64,
        };
        if events == 0 { 1 } else { events }
    }
}

/// The samples of a stack, on their way into events.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Place of the stack's labels in the list of sets.
    pub set: u32,
    /// The stack's number in the pool; 0: without frames.
    pub trace: u64,
    count: u64,
    weight: u64,
    events: u64,
    done: u64,
    by_weight: bool,
}

impl Run {
    /// The samples of one stack, none written yet.
    pub const fn new((set, trace): (u32, u64), each: Each, count: u64, weight: u64) -> Self {
        let events = each.events(count, weight);
        Self { set, trace, count, weight, events, done: 0, by_weight: matches!(each, Each::Weight(_)) }
    }

    /// When the stack's events are, nanoseconds after the beginning of a span; `place` tells the stack from the
    /// others.
    pub fn times(&self, place: usize, span: u64) -> impl Iterator<Item = u64> + use<> {
        // Multiples of the golden ratio fill the unit evenly whatever their number: 2^64 / phi.
        let shift = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (events, span) = (u128::from(self.events), u128::from(span));
        (0..events).map(move |at| (((at << 32 | u128::from(shift)) * span / events) >> 32) as u64)
    }

    /// The samples and the weight of the stack's next event. The sums are those of the stack; an event of weight is
    /// one sample.
    pub fn next(&mut self) -> (u64, u64) {
        let part =
            |whole: u64, done: u64| (u128::from(whole) * u128::from(done) / u128::from(self.events)) as u64;
        let of = |whole| part(whole, self.done + 1).saturating_sub(part(whole, self.done));
        let next = (if self.by_weight { 1 } else { of(self.count) }, of(self.weight));
        self.done += 1;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_event_a_sample_up_to_a_limit() {
        assert_eq!(Each::of(SampleKind::Cpu, MAX_EVENTS, 7), Each::Samples(1));
        assert_eq!(Each::of(SampleKind::Cpu, MAX_EVENTS + 1, 7), Each::Samples(2));
        assert_eq!(Each::of(SampleKind::Cpu, 0, 0), Each::Samples(1));
        assert_eq!(Each::of(SampleKind::OffCpu, 3, 1_000_000_000), Each::Weight(10_000_000));
        assert_eq!(Each::of(SampleKind::OffCpu, 3, 20_000_000 * MAX_EVENTS), Each::Weight(20_000_000));
        let mut long = Run::new((0, 1), Each::Weight(10_000_000), 1, 104_000_000);
        assert_eq!((long.events, long.next()), (10, (1, 10_400_000)));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_in_the_span(count in 1..10_000_u64, weight in any::<u64>(), each in 1..50_u64, place in any::<usize>(), span in 1..u64::MAX) {
            let mut run = Run::new((0, 1), Each::Samples(each), count, weight);
            let times: Vec<u64> = run.times(place, span).collect();
            prop_assert!(times.is_sorted() && times.iter().all(|time| *time < span));
            let all: Vec<(u64, u64)> = times.iter().map(|_| run.next()).collect();
            prop_assert_eq!(all.len() as u64, count.div_ceil(each));
            prop_assert_eq!(all.iter().map(|(count, _)| count).sum::<u64>(), count);
            prop_assert_eq!(all.iter().map(|(_, weight)| u128::from(*weight)).sum::<u128>(), u128::from(weight));
            prop_assert!(all.iter().all(|(count, _)| (1..=each).contains(count)));
        }
    }
}
