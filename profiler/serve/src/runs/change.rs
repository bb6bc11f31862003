//! Where a series of runs changes to another level and stays there.
//!
//! In: one figure of each run, in their order. Out: the places from which on it is another. The test is a permutation test
//! of the largest two-sample t statistic of logarithms over all places to split the series at: how often would the same
//! runs in an order of chance split as well? It assumes that runs without a change come in no order, and nothing of how
//! they are distributed, so one run that stands out alone is no change. At most one series in a hundred that has none
//! is said to have one ([`CHANCE`]; the tests measure it). What is before and after a change is looked at again.
//! Limits: under [`LEAST`] runs no change can be told from chance; of more than [`MOST`] the last are looked at.

/// How often chance alone may be called a change.
pub const CHANCE: f64 = 0.01;
/// The shortest series in which a change can be told: five of ten runs that are the last ones, or the first, are two of 252 ways to
/// choose five.
const LEAST: usize = 10;
/// The longest series.
const MOST: usize = 1000;
/// Orders of chance that are tried.
const ORDERS: usize = 1999;
/// Two series that differ by less are equal: clocks are not that good.
const FINEST: f64 = 1e-9;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Place of the first run of the new level.
    pub at: usize,
    /// Geometric mean of the runs before, back to the change before.
    pub before: f64,
    /// Geometric mean of the runs from the change on, up to the next.
    pub after: f64,
    /// How many of the orders of chance split as well.
    pub chance: f64,
}

/// The changes of a series, in its order.
pub fn changes(series: &[f64]) -> Vec<Change> {
    let skipped = series.len().saturating_sub(MOST);
    let logs: Vec<f64> = series.iter().skip(skipped).map(|figure| figure.max(FINEST).ln()).collect();
    let mut places = Vec::new();
    find(&logs, 0, &mut places);
    places.sort_by_key(|(at, _)| *at);
    let mean = |from: usize, until: usize| {
        let level = logs.get(from..until).unwrap_or_default();
        (level.iter().sum::<f64>() / level.len().max(1) as f64).exp()
    };
    let bounds = |place: Option<&(usize, f64)>, end| place.map_or(end, |(at, _)| *at);
    let change = |(number, (at, chance)): (usize, &(usize, f64))| {
        let from = number.checked_sub(1).map_or(0, |before| bounds(places.get(before), 0));
        let until = bounds(places.get(number + 1), logs.len());
        Change { at: at + skipped, before: mean(from, *at), after: mean(*at, until), chance: *chance }
    };
    places.iter().enumerate().map(change).collect()
}

/// Adds the places of changes of a part that begins at `offset`.
fn find(part: &[f64], offset: usize, places: &mut Vec<(usize, f64)>) {
    let Some((at, chance)) = split(part) else { return };
    places.push((offset + at, chance));
    let (before, after) = part.split_at(at);
    find(before, offset, places);
    find(after, offset + at, places);
}

/// The place that splits a series best, if chance hardly splits as well.
fn split(series: &[f64]) -> Option<(usize, f64)> {
    if series.len() < LEAST {
        return None;
    }
    let (at, found) = best(series)?;
    let mut shuffled = series.to_vec();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let as_good = (0..ORDERS)
        .filter(|_| {
            random.shuffle(&mut shuffled);
            best(&shuffled).is_some_and(|(_, of_chance)| of_chance >= found * (1.0 - FINEST))
        })
        .count();
    // The order that is there is one of them.
    let chance = (as_good + 1) as f64 / (ORDERS + 1) as f64;
    (chance <= CHANCE).then_some((at, chance))
}

/// The place with the largest between-level part of the sum of squares, which orders places as t does; None where all are equal.
fn best(series: &[f64]) -> Option<(usize, f64)> {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, figure) in series.iter().enumerate().take(series.len().saturating_sub(1)) {
        sum += figure - mean;
        let left = (at + 1) as f64;
        let between = sum * sum * n / (left * (n - left));
        if between > FINEST && best.is_none_or(|(_, largest)| between > largest) {
            best = Some((at + 1, between));
        }
    }
    best
}

/// Marsaglia's xorshift64 with 13, 7, 17: the same orders each time, so that the same runs have the same answer.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn shuffle(&mut self, series: &mut [f64]) {
        for end in (1..series.len()).rev() {
            let place = self.next() % (end as u64 + 1);
            series.swap(end, usize::try_from(place).unwrap_or(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series around 100 with a relative spread, near to a normal one, and a step from a place on.
    fn series(random: &mut Random, runs: usize, spread: f64, step: Option<(usize, f64)>) -> Vec<f64> {
        let run = |at: usize| {
            // Twelve even ones sum to a variance of one.
            let even = |random: &mut Random| random.next() as f64 / u64::MAX as f64;
            let noise = (0..12).map(|_| even(random)).sum::<f64>() - 6.0;
            let level = step.filter(|(from, _)| at >= *from).map_or(100.0, |(_, factor)| 100.0 * factor);
            level * (spread * noise).exp()
        };
        (0..runs).map(run).collect()
    }

    #[test]
    fn false_alarms_are_one_in_a_hundred() {
        const LENGTHS: [usize; 4] = [10, 14, 20, 40];
        const EACH: usize = 250;
        // All alike, and with a last run that stands out.
        for last in [1.0, 1.5] {
            let mut random = Random(1);
            let mut alarms = 0;
            for runs in LENGTHS.into_iter().flat_map(|runs| std::iter::repeat_n(runs, EACH)) {
                let mut runs = series(&mut random, runs, 0.05, None);
                if let Some(run) = runs.last_mut() {
                    *run *= last;
                }
                alarms += usize::from(!changes(&runs).is_empty());
            }
            println!(
                "{alarms} of {} series without a change, the last run times {last}",
                LENGTHS.len() * EACH
            );
            // 10 are expected; 20 are three standard deviations more.
            assert!(alarms <= 20, "{alarms}");
        }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut random = Random(2);
        let mut found = 0;
        for _ in 0..100 {
            let runs = series(&mut random, 14, 0.03, Some((10, 1.2)));
            found += usize::from(changes(&runs).iter().any(|change| change.at == 10));
        }
        assert!(found >= 95, "{found} of 100 steps of 20 % at a spread of 3 %");
        let twice =
            [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 121.0, 120.0, 119.0, 120.5, 121.5, 119.8, 80.0, 80.5]
                .into_iter()
                .chain([79.5, 80.2, 79.8, 80.1]);
        let both = changes(&twice.collect::<Vec<_>>());
        assert_eq!(both.iter().map(|change| change.at).collect::<Vec<_>>(), [6, 12]);
        assert!((both[0].before - 100.0).abs() < 0.1 && (both[0].after - 120.3).abs() < 0.1, "{both:?}");
        assert!((both[1].before - 120.3).abs() < 0.1 && both[1].chance <= CHANCE, "{both:?}");
    }

    #[test]
    fn what_cannot_be_told_is_no_change() {
        for none in
            [&[][..], &[1.0], &[1.0, 9.0], &[5.0; 30], &[0.0; 12], &[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]]
        {
            assert_eq!(changes(none), [], "{none:?}");
        }
        let four = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 2.0, 2.1, 1.9, 2.05];
        assert_eq!(changes(&four).iter().map(|change| change.at).collect::<Vec<_>>(), [8]);
        assert_eq!(changes(&four[3..]), [], "nine are too few");
        // One that stands out alone, at the end and in the middle.
        let mut runs = vec![100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.5, 99.5, 101.5, 100.2, 99.7, 300.0];
        assert_eq!(changes(&runs), []);
        runs.swap(5, 11);
        assert_eq!(changes(&runs), []);
        let long: Vec<f64> = (0..MOST + 50).map(|at| if at < MOST { 100.0 } else { 120.0 }).collect();
        assert_eq!(changes(&long).iter().map(|change| change.at).collect::<Vec<_>>(), [MOST]);
    }
}
