//! Drift, steps, suspend, and chance.

use super::*;
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
const BASE: u64 = 1_700_000_000 * S;

fn reading(monotonic_ns: u64, wall_ns: u64) -> ClockReading {
    ClockReading { monotonic_ns, wall: WallTime(wall_ns) }
}

#[test]
fn small_drift_is_taken_up_without_a_step() {
    let mut map = ClockMap::new(reading(100 * S, BASE));
    assert_eq!(map.observe(reading(101 * S, BASE + S + S / 5)), None);
    // Continuous at the reading, right after the slew.
    assert_eq!(map.locate(101 * S).wall.0, BASE + S);
    assert_eq!(map.locate(111 * S).wall.0, BASE + 11 * S + S / 5);
    // On course: later readings add nothing.
    for second in 102..140 {
        assert_eq!(map.observe(reading(second * S, BASE + (second - 100) * S + S / 5)), None);
    }
    assert_eq!(map.segments.len(), 2);
    assert_eq!(map.steps(), 0);
}

#[test]
fn a_step_ends_the_era_and_old_stamps_stay_in_it() {
    let mut map = ClockMap::new(reading(100 * S, BASE));
    let step = map.observe(reading(105 * S, BASE - 3_600 * S)).expect("a step");
    assert_eq!(step.ended_era, 0);
    assert_eq!(step.end, EraEnd { wall: WallTime(BASE + 5 * S), monotonic_ns: 105 * S });
    assert_eq!(step.to, WallTime(BASE - 3_600 * S));
    let before = map.locate(104 * S);
    assert_eq!((before.era.number, before.wall.0), (0, BASE + 4 * S));
    let after = map.locate(106 * S);
    assert_eq!((after.era.number, after.wall.0), (1, BASE - 3_599 * S));
}

#[test]
fn a_suspend_is_a_step_forward() {
    let mut map = ClockMap::new(reading(100 * S, BASE));
    assert!(map.observe(reading(101 * S, BASE + 8 * 3_600 * S)).is_some());
    assert_eq!(map.locate(102 * S).wall.0, BASE + 8 * 3_600 * S + S);
}

#[test]
fn a_reading_of_this_machine_is_plausible() {
    let a = ClockReading::take();
    let b = ClockReading::take();
    assert!(b.monotonic_ns >= a.monotonic_ns && a.monotonic_ns > 0);
    assert!(a.wall.0 > BASE);
    let mut map = ClockMap::new(a);
    assert_eq!(map.observe(b), None, "two readings in a row are no step");
}

proptest! {
    #[test]
    fn wall_time_never_runs_backwards_inside_an_era(
        moves in prop::collection::vec((1u64..5_000, -2_000i64..2_000), 1..60),
    ) {
        let mut map = ClockMap::new(reading(S, BASE));
        let (mut mono, mut offset) = (S as i128, BASE as i128 - S as i128);
        let mut last: Option<Located> = None;
        for (ms, shift_ms) in moves {
            // Stamps up to the reading, then the reading.
            for part in 0..5u64 {
                let at = map.locate(mono as u64 + part * ms * 200_000);
                prop_assert!(at.wall >= at.era.start);
                if let Some(last) = last && last.era.number == at.era.number {
                    prop_assert!(at.wall >= last.wall);
                }
                last = Some(at);
            }
            mono += i128::from(ms) * 1_000_000;
            offset += i128::from(shift_ms) * 1_000_000;
            map.observe(reading(mono as u64, (mono + offset) as u64));
            prop_assert!(map.segments.len() <= MAX_SEGMENTS + 1);
            prop_assert!(map.eras.len() <= map.segments.len());
        }
    }
}
