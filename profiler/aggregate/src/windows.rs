//! Windows: samples in, closed windows of ten seconds out, aligned to the wall clock.
//!
//! In: samples with their CLOCK_MONOTONIC stamp, labels and a stack token (whatever the caller names
//! stacks by until the window closes), and readings of both clocks. Out: closed windows, oldest first.
//! A window stays open for a grace (1 s) after its end, for samples still on their way; a sample later
//! than that is counted in the oldest window still open, and as late. A step of the wall clock ends
//! the window at the step (`partial`); a window of the new time goes on. A window without a sample is
//! not made, unless a stretch of the ledger was booked in it. Every sample and stretch added is in exactly
//! one closed window.
//!
//! Limits: rows of a window (rows.rs); open windows, by how far ahead of the last reading of
//! the clocks a stamp is believed.

mod config;

pub use config::{WindowCounters, WindowsConfig};

use super::clock::{ClockMap, ClockReading, ClockStep, Located};
use super::closed::{ClosedWindow, CountedRow};
use super::lines::Lines;
use super::pauses::WindowPauses;
use super::rows::{Counts, Kept, Overflow, Rows, Sum};
use emberscope_model::{LabelSet, LedgerSums, Pause, Refusals, TimeRange, WallTime};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A stamp further ahead of the last reading than this is taken for that reading. Far more than a
/// pipeline that reads its clocks every second falls behind, and it bounds the open windows.
const AHEAD_NS: u64 = 60_000_000_000;

/// Windows that a span is spread over, at most; what is left is in the last. Who tells spans does so every second.
const MAX_PIECES: usize = 16;

/// Era, then the slot's number since the Unix epoch.
type Key = (u64, u64);

#[derive(Debug)]
struct Open<S> {
    from: u64,
    until: u64,
    /// The aligned slot in which the window lies.
    slot: (u64, u64),
    /// The latest sample in the window.
    last: u64,
    /// CLOCK_MONOTONIC when the window's era ended.
    era_ended_ns: Option<u64>,
    rows: Rows<S>,
    ledger: Lines,
    pauses: WindowPauses,
}

impl<S> Open<S> {
    /// The window has a sample at this time.
    fn reaches(&mut self, at: WallTime) {
        self.last = self.last.max(at.0.clamp(self.from, self.until.saturating_sub(1)));
    }

    /// Ends the window early, but after its last sample.
    fn cut(&mut self, at: WallTime) {
        self.until = self.until.min(at.0).max(self.last.saturating_add(1)).max(self.from.saturating_add(1));
    }
}

/// The open windows, and what closes them.
#[derive(Debug)]
pub struct Windows<S> {
    length_ns: u64,
    grace_ns: u64,
    overflow: Overflow<S>,
    clock: ClockMap,
    open: BTreeMap<Key, Open<S>>,
    closed: Option<Key>,
    counters: WindowCounters,
    refusals: Refusals,
}

impl<S: Clone + Eq + Hash> Windows<S> {
    /// No window yet; the first starts at `reading`.
    pub fn new(config: WindowsConfig<S>, reading: ClockReading) -> Self {
        Self {
            length_ns: nanoseconds(config.length.max(Duration::from_secs(1))),
            grace_ns: nanoseconds(config.grace),
            overflow: Overflow {
                max_rows: config.max_rows.max(1),
                stack: config.overflow_stack,
                labels: config.overflow_labels,
                tenant: config.tenant,
                cost: config.cost,
            },
            clock: ClockMap::new(reading),
            open: BTreeMap::new(),
            closed: None,
            counters: WindowCounters::default(),
            refusals: Refusals::default(),
        }
    }

    /// Counts a sample. `time_ns` is CLOCK_MONOTONIC.
    pub fn add(&mut self, time_ns: u64, labels: &Arc<LabelSet>, stack: S, counts: Counts) {
        self.counters.samples += 1;
        let (slot, at) = self.slot(time_ns);
        let key = (labels.clone(), stack, counts.kind);
        let Some(window) = self.open.get_mut(&slot) else { return };
        window.reaches(at);
        let (counters, refusals) = (&mut self.counters, &mut self.refusals);
        window.rows.add(key, Sum::of(counts), &self.overflow, |tenant, kept, samples| {
            match kept {
                Kept::Labels => counters.folded_stacks += samples,
                Kept::Nothing => counters.folded_labels += samples,
            }
            refusals.add(tenant);
        });
    }

    /// Counts what lasted from one stamp to another: in each window that it reaches into, once and with its part of
    /// the weight; in the first of them what is derived.
    pub fn add_span(
        &mut self,
        (from_ns, until_ns): (u64, u64),
        labels: &Arc<LabelSet>,
        stack: &S,
        counts: Counts,
    ) {
        let whole = until_ns.saturating_sub(from_ns).max(1);
        let (mut at, mut rest) = (from_ns, counts);
        for piece in 1..=MAX_PIECES {
            let wall = self.clock.locate(at).wall.0;
            let end = at.saturating_add(self.length_ns - wall % self.length_ns);
            if end >= until_ns || piece == MAX_PIECES {
                break;
            }
            let part = u128::from(counts.weight) * u128::from(end - at) / u128::from(whole);
            let part = u64::try_from(part).unwrap_or(u64::MAX).min(rest.weight);
            self.add(at, labels, stack.clone(), Counts { weight: part, ..rest });
            (at, rest) = (end, Counts { weight: rest.weight - part, derived: 0, ..rest });
        }
        self.add(at.max(from_ns), labels, stack.clone(), rest);
    }

    /// Books what a thread used in a stretch of CLOCK_MONOTONIC, in the window that has the stretch's
    /// middle: a stretch is at most a window long where threads are asked at each window's end.
    pub fn book(&mut self, from_ns: u64, until_ns: u64, labels: &Arc<LabelSet>, sums: &LedgerSums) {
        let from_ns = from_ns.min(until_ns);
        let slot = self.slot(from_ns + (until_ns - from_ns) / 2).0;
        let wall = |ns| self.clock.locate(ns).wall;
        let seen = TimeRange { from: wall(from_ns), until: wall(until_ns) };
        let Some(window) = self.open.get_mut(&slot) else { return };
        if !window.ledger.add(labels, sums, seen, &self.overflow) {
            self.counters.folded_ledger += 1;
        }
    }

    /// Lists a pause of a JVM between two stamps of CLOCK_MONOTONIC, in the window in which it began.
    pub fn pause(&mut self, (from_ns, until_ns): (u64, u64), labels: &Arc<LabelSet>, cause: Arc<str>) {
        let (slot, began) = self.slot(from_ns);
        let (labels, length_ns) = (labels.clone(), until_ns.saturating_sub(from_ns));
        let Some(window) = self.open.get_mut(&slot) else { return };
        if !window.pauses.add(Pause { labels, began, length_ns, cause }) {
            self.counters.unlisted_pauses += 1;
        }
    }

    /// The open window of a stamp, made if need be, and the stamp's wall time.
    fn slot(&mut self, time_ns: u64) -> (Key, WallTime) {
        let now_ns = self.clock.last_reading().monotonic_ns;
        let mut at = self.clock.locate(time_ns);
        if time_ns > now_ns.saturating_add(AHEAD_NS) {
            self.counters.ahead += 1;
            at = self.clock.locate(now_ns);
        }
        let mut key = self.key(&at);
        if self.closed.is_some_and(|closed| key <= closed) {
            self.counters.late += 1;
            at = self.clock.locate(now_ns);
            key = self.open.keys().next().copied().unwrap_or_else(|| self.key(&at));
        }
        let length = self.length_ns;
        self.open.entry(key).or_insert_with(|| open(&at, length));
        (key, at.wall)
    }

    /// Takes a reading of the clocks, about once a second, and closes the windows that are over.
    pub fn advance(&mut self, reading: ClockReading) -> Vec<ClosedWindow<S>> {
        if let Some(step) = self.clock.observe(reading) {
            self.end_era(step);
        }
        let now = self.clock.locate(self.clock.last_reading().monotonic_ns);
        let now_ns = self.clock.last_reading().monotonic_ns;
        let grace = self.grace_ns;
        let over = |window: &Open<S>| match window.era_ended_ns {
            Some(ended) => now_ns >= ended.saturating_add(grace),
            None => now.wall.0 >= window.until.saturating_add(grace),
        };
        // Those before one that is over are over too: windows leave in order.
        let Some(newest) = self.open.iter().rev().find(|(_, window)| over(window)).map(|(key, _)| *key)
        else {
            return Vec::new();
        };
        let mut closed = Vec::new();
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() <= newest) {
            closed.push(close(entry.remove()));
        }
        self.closed = self.closed.max(Some(newest));
        closed
    }

    /// Closes all windows, at the end.
    pub fn close_all(&mut self, reading: ClockReading) -> Vec<ClosedWindow<S>> {
        if let Some(step) = self.clock.observe(reading) {
            self.end_era(step);
        }
        let now = self.clock.locate(self.clock.last_reading().monotonic_ns).wall;
        std::mem::take(&mut self.open)
            .into_values()
            .map(|mut window| {
                if window.era_ended_ns.is_none() {
                    window.cut(now);
                }
                close(window)
            })
            .collect()
    }

    /// Closes all windows, and begins as at the start: the next window does not reach back before this reading.
    pub fn begin_anew(&mut self, reading: ClockReading) -> Vec<ClosedWindow<S>> {
        let closed = self.close_all(reading);
        self.clock = ClockMap::new(reading);
        closed
    }

    /// Whose rows were folded for want of room.
    pub fn refusals(&self) -> (&'static str, &Refusals) {
        ("rows", &self.refusals)
    }

    /// Counters since start.
    pub fn counters(&self) -> WindowCounters {
        WindowCounters { clock_steps: self.clock.steps(), ..self.counters }
    }

    fn key(&self, at: &Located) -> Key {
        (at.era.number, at.wall.0 / self.length_ns)
    }

    fn end_era(&mut self, step: ClockStep) {
        for (_, window) in self.open.iter_mut().filter(|(key, _)| key.0 == step.ended_era) {
            window.era_ended_ns = Some(step.end.monotonic_ns);
            window.cut(step.end.wall);
        }
    }
}

fn open<S: Clone + Eq + Hash>(at: &Located, length_ns: u64) -> Open<S> {
    let slot_start = at.wall.0 - at.wall.0 % length_ns;
    let slot_end = slot_start.saturating_add(length_ns);
    Open {
        from: slot_start.max(at.era.start.0),
        until: at.era.end.map_or(slot_end, |end| end.wall.0.min(slot_end)),
        slot: (slot_start, slot_end),
        last: 0,
        era_ended_ns: at.era.end.map(|end| end.monotonic_ns),
        rows: Rows::new(),
        ledger: Lines::default(),
        pauses: WindowPauses::default(),
    }
}

fn close<S: Clone + Eq + Hash>(window: Open<S>) -> ClosedWindow<S> {
    let row = |((labels, stack, kind), sum): (_, Sum)| CountedRow {
        labels,
        stack,
        kind,
        count: sum.count,
        weight: sum.weight,
        derived: sum.derived,
    };
    ClosedWindow {
        range: TimeRange { from: WallTime(window.from), until: WallTime(window.until) },
        rows: window.rows.into_iter().map(row).collect(),
        ledger: window.ledger.into_rows(),
        pauses: window.pauses.into_list(),
        partial: (window.from, window.until) != window.slot,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
