//! Monotonic time of samples to wall-clock time of windows.
//!
//! In: readings of both clocks, about one a second, and the CLOCK_MONOTONIC stamps of samples. Out: the
//! wall-clock time of a stamp, and the era it lies in. An era is a stretch of time in which the wall
//! clock was not stepped: inside it wall time never runs backwards. A difference of up to 0.5 s (a
//! correction by adjtimex, the jitter of a reading) is taken up over ten seconds, so by at most 5 % of
//! the rate. A larger one, either way, begins a new era. Suspend is such a step: CLOCK_MONOTONIC stands
//! still while the machine sleeps (clock_gettime(2)).
//!
//! Limits: a step is seen at the next reading; stamps older than a minute are mapped by the oldest
//! segment that is kept.

use emberscope_model::WallTime;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::VecDeque;

/// A difference above this is a step. Nothing that disciplines a clock slews that much in a second:
/// ntpd steps above 128 ms, chronyd where it is told to.
const STEP_NS: i128 = 500_000_000;
/// Over how long a smaller difference is taken up.
const SLEW_OVER_NS: i128 = 10_000_000_000;
/// Differences from the planned course below this are the jitter of reading two clocks.
const JITTER_NS: i128 = 1_000_000;
/// How long a segment is kept after the next one began: far longer than samples take to come up.
const HISTORY_NS: u64 = 60_000_000_000;
/// Most segments kept, whatever their age: a clock that is stepped every second stays inside.
const MAX_SEGMENTS: usize = 128;

/// Both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The instant in nanoseconds of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, nanoseconds since the Unix epoch.
    pub wall: WallTime,
}

impl ClockReading {
    /// Reads both clocks of this machine: the tightest of three tries, so that being interrupted
    /// between the two does not look like a step.
    pub fn take() -> Self {
        let mut best = (u64::MAX, Self { monotonic_ns: 0, wall: WallTime(0) });
        for _ in 0..3 {
            let before = nanoseconds(clock_gettime(ClockId::Monotonic));
            let wall = nanoseconds(clock_gettime(ClockId::Realtime));
            let gap = nanoseconds(clock_gettime(ClockId::Monotonic)).saturating_sub(before);
            if gap < best.0 {
                best = (gap, Self { monotonic_ns: before.saturating_add(gap / 2), wall: WallTime(wall) });
            }
        }
        best.1
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Where an era ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraEnd {
    /// Wall-clock time of the end, by the clock as it was before the step.
    pub wall: WallTime,
    /// The instant in nanoseconds of CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
}

/// A stretch of time without a step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// Counts up from 0 with every step.
    pub number: u64,
    /// The first instant of the era.
    pub start: WallTime,
    /// Where the era ended, at a wall time after `start`; None while it lasts.
    pub end: Option<EraEnd>,
}

/// A stamp's place in wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The era in which the stamp lies.
    pub era: Era,
    /// The wall-clock time of the stamp, inside the era.
    pub wall: WallTime,
}

/// The wall clock was set, or the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Number of the era that ended.
    pub ended_era: u64,
    /// Where that era ended.
    pub end: EraEnd,
    /// Wall-clock time at which the next era begins.
    pub to: WallTime,
}

/// A straight line from monotonic to wall-clock time, with a bend where the slew is done.
#[derive(Clone, Copy, Debug)]
struct Segment {
    era: u64,
    monotonic_ns: u64,
    wall_ns: u64,
    /// Nanoseconds to be added over the first [`SLEW_OVER_NS`]; in magnitude at most [`STEP_NS`].
    slew_ns: i128,
}

impl Segment {
    fn wall_at(&self, monotonic_ns: u64) -> u64 {
        let passed = i128::from(monotonic_ns) - i128::from(self.monotonic_ns);
        let slewed = self.slew_ns * passed.clamp(0, SLEW_OVER_NS) / SLEW_OVER_NS;
        let wall = i128::from(self.wall_ns) + passed + slewed;
        u64::try_from(wall.max(0)).unwrap_or(u64::MAX)
    }
    /// Nanoseconds that are still to be added at a stamp.
    fn slew_left(&self, monotonic_ns: u64) -> i128 {
        let passed = i128::from(monotonic_ns) - i128::from(self.monotonic_ns);
        self.slew_ns - self.slew_ns * passed.clamp(0, SLEW_OVER_NS) / SLEW_OVER_NS
    }
}

/// The map from CLOCK_MONOTONIC to wall-clock time.
#[derive(Debug)]
pub struct ClockMap {
    /// The segments, by time; never empty.
    segments: VecDeque<Segment>,
    /// The eras of the segments; never empty, the last one lasts.
    eras: VecDeque<Era>,
    current: Segment,
    last: ClockReading,
    steps: u64,
}

impl ClockMap {
    /// A map whose first era starts at this reading.
    pub fn new(reading: ClockReading) -> Self {
        let current =
            Segment { era: 0, monotonic_ns: reading.monotonic_ns, wall_ns: reading.wall.0, slew_ns: 0 };
        Self {
            segments: VecDeque::from([current]),
            eras: VecDeque::from([Era { number: 0, start: reading.wall, end: None }]),
            current,
            last: reading,
            steps: 0,
        }
    }

    /// The newest reading that was taken.
    pub fn last_reading(&self) -> ClockReading {
        self.last
    }

    /// How many steps there were since the start.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes a reading; says when it shows a step. A reading older than the last is ignored.
    pub fn observe(&mut self, reading: ClockReading) -> Option<ClockStep> {
        if reading.monotonic_ns < self.last.monotonic_ns {
            return None;
        }
        self.last = reading;
        let expected = self.current.wall_at(reading.monotonic_ns);
        let error = i128::from(reading.wall.0) - i128::from(expected);
        let mut step = None;
        if error.abs() > STEP_NS {
            step = Some(self.begin_era(reading, WallTime(expected)));
        } else if (error - self.current.slew_left(reading.monotonic_ns)).abs() > JITTER_NS {
            self.push(Segment {
                monotonic_ns: reading.monotonic_ns,
                wall_ns: expected,
                slew_ns: error,
                ..self.current
            });
        }
        self.forget(reading.monotonic_ns);
        step
    }

    /// The wall-clock time of a stamp. A stamp from before the first reading counts as that instant.
    pub fn locate(&self, monotonic_ns: u64) -> Located {
        let segment = self
            .segments
            .iter()
            .rev()
            .find(|s| s.monotonic_ns <= monotonic_ns)
            .or_else(|| self.segments.front())
            .unwrap_or(&self.current);
        let lasting = Era { number: segment.era, start: WallTime(0), end: None };
        let era = self.eras.iter().find(|e| e.number == segment.era).copied().unwrap_or(lasting);
        let latest = era.end.map_or(u64::MAX, |end| end.wall.0.saturating_sub(1));
        let wall = segment.wall_at(monotonic_ns).max(era.start.0).min(latest);
        Located { era, wall: WallTime(wall) }
    }

    fn begin_era(&mut self, reading: ClockReading, expected: WallTime) -> ClockStep {
        self.steps += 1;
        let ended_era = self.current.era;
        let mut end = EraEnd { wall: expected, monotonic_ns: reading.monotonic_ns };
        if let Some(era) = self.eras.back_mut() {
            // An era of no length has nowhere to put a sample: it gets a nanosecond.
            end.wall = end.wall.max(WallTime(era.start.0.saturating_add(1)));
            era.end = Some(end);
        }
        self.eras.push_back(Era { number: ended_era + 1, start: reading.wall, end: None });
        self.push(Segment {
            era: ended_era + 1,
            monotonic_ns: reading.monotonic_ns,
            wall_ns: reading.wall.0,
            slew_ns: 0,
        });
        ClockStep { ended_era, end, to: reading.wall }
    }

    fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
        self.current = segment;
    }

    /// Drops segments that no sample on its way can need, and their eras.
    fn forget(&mut self, now_ns: u64) {
        while self.segments.len() > MAX_SEGMENTS
            || self.segments.get(1).is_some_and(|next| next.monotonic_ns.saturating_add(HISTORY_NS) < now_ns)
        {
            self.segments.pop_front();
        }
        let oldest = self.segments.front().map_or(self.current.era, |s| s.era);
        while self.eras.front().is_some_and(|era| era.number < oldest) {
            self.eras.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
