//! Windows under ordinary time, late samples, steps of the clock, and chance.

use super::*;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, SampleKind, Stack, StackEnd, Tenant,
};
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
/// A multiple of ten seconds.
const BASE: u64 = 1_700_000_000 * S;
/// A sample.
const CPU: Counts = Counts { kind: SampleKind::Cpu, samples: 1, weight: 10, derived: 0 };

fn reading(monotonic_ns: u64, wall_ns: u64) -> ClockReading {
    ClockReading { monotonic_ns, wall: WallTime(wall_ns) }
}

fn labels(pid: u32) -> Arc<LabelSet> {
    Arc::new(LabelSetBuilder::new().set(LabelKey::Pid, pid.to_string()).build())
}

fn windows(reading: ClockReading) -> Windows<u64> {
    let config = WindowsConfig {
        length: Duration::from_secs(10),
        grace: Duration::from_secs(1),
        max_rows: 1000,
        overflow_stack: u64::MAX,
        overflow_labels: labels(0),
        tenant: |_| Tenant::default(),
        cost: |_| 1,
    };
    Windows::new(config, reading)
}

fn add(windows: &mut Windows<u64>, time_ns: u64) {
    windows.add(time_ns, &labels(1), 7, CPU);
}

fn count(window: &ClosedWindow<u64>) -> u64 {
    window.rows.iter().map(|r| r.count).sum()
}

fn seconds(window: &ClosedWindow<u64>) -> (f64, f64) {
    let at = |t: WallTime| (t.0 as f64 - BASE as f64) / 1e9;
    (at(window.range.from), at(window.range.until))
}

#[test]
fn windows_are_aligned_and_close_after_the_grace() {
    let mut w = windows(reading(100 * S, BASE + 4 * S));
    add(&mut w, 101 * S);
    add(&mut w, 105 * S);
    add(&mut w, 106 * S);
    assert!(w.advance(reading(106 * S + S / 2, BASE + 10 * S + S / 2)).is_empty(), "the grace");
    // Stamped before the end, come after it: still counted in its window.
    add(&mut w, 105 * S + S / 2);
    let closed = w.advance(reading(107 * S, BASE + 11 * S));
    assert_eq!(closed.len(), 1);
    assert_eq!((seconds(&closed[0]), closed[0].partial, count(&closed[0])), ((4.0, 10.0), true, 3));
    assert_eq!(closed[0].rows.len(), 1);
    assert_eq!(closed[0].rows[0].weight, 30);
    let closed = w.advance(reading(117 * S, BASE + 21 * S));
    assert_eq!((seconds(&closed[0]), closed[0].partial, count(&closed[0])), ((10.0, 20.0), false, 1));
    assert_eq!(w.counters().late, 0);
}

#[test]
fn what_begins_anew_does_not_reach_back() {
    let mut w = windows(reading(100 * S, BASE));
    add(&mut w, 101 * S);
    let before = w.begin_anew(reading(104 * S, BASE + 4 * S));
    assert_eq!((before.len(), count(&before[0]), seconds(&before[0])), (1, 1, (0.0, 4.0)));
    add(&mut w, 105 * S);
    let closed = w.advance(reading(112 * S, BASE + 12 * S));
    assert_eq!((closed.len(), count(&closed[0]), seconds(&closed[0])), (1, 1, (4.0, 10.0)));
}

#[test]
fn a_sample_after_the_grace_goes_to_the_open_window_and_is_counted() {
    let mut w = windows(reading(100 * S, BASE));
    add(&mut w, 101 * S);
    assert_eq!(w.advance(reading(112 * S, BASE + 12 * S)).len(), 1);
    add(&mut w, 102 * S);
    assert_eq!(w.counters().late, 1);
    let rest = w.close_all(reading(115 * S, BASE + 15 * S));
    assert_eq!((rest.len(), count(&rest[0]), seconds(&rest[0])), (1, 1, (10.0, 15.0)));
    assert!(rest[0].partial);
}

#[test]
fn a_step_back_cuts_the_window_and_goes_on_in_the_new_time() {
    let mut w = windows(reading(100 * S, BASE));
    add(&mut w, 103 * S);
    assert!(w.advance(reading(104 * S, BASE + 1004 * S)).is_empty(), "kept for late samples");
    add(&mut w, 103 * S + 1);
    add(&mut w, 104 * S);
    let closed = w.advance(reading(105 * S, BASE + 1005 * S));
    assert_eq!((closed.len(), seconds(&closed[0]), count(&closed[0])), (1, (0.0, 4.0), 2));
    assert!(closed[0].partial);
    // And back again.
    assert!(w.advance(reading(106 * S, BASE + 6 * S)).is_empty());
    let closed = w.advance(reading(108 * S, BASE + 8 * S));
    assert_eq!((closed.len(), seconds(&closed[0]), count(&closed[0])), (1, (1004.0, 1006.0), 1));
    assert_eq!(w.counters().clock_steps, 2);
}

#[test]
fn a_night_asleep_makes_no_window_of_a_night() {
    let mut w = windows(reading(100 * S, BASE));
    add(&mut w, 101 * S);
    w.advance(reading(102 * S, BASE + 28_802 * S));
    add(&mut w, 103 * S);
    let closed = w.close_all(reading(104 * S, BASE + 28_804 * S));
    let spans: Vec<_> = closed.iter().map(seconds).collect();
    assert_eq!(spans, [(0.0, 2.0), (28_802.0, 28_804.0)]);
}

#[test]
fn a_stamp_far_ahead_does_not_open_a_window_there() {
    let mut w = windows(reading(100 * S, BASE));
    add(&mut w, u64::MAX);
    add(&mut w, 0);
    assert_eq!(w.counters().ahead, 1);
    let closed = w.close_all(reading(101 * S, BASE + S));
    assert_eq!((closed.len(), seconds(&closed[0]), count(&closed[0])), (1, (0.0, 1.0), 2));
}

#[test]
fn tokens_with_one_name_become_one_row() {
    let mut w = windows(reading(100 * S, BASE));
    let who = labels(1);
    w.add(101 * S, &who, 1, CPU);
    w.add(102 * S, &who, 2, CPU);
    w.add(103 * S, &who, 3, CPU);
    let closed = w.close_all(reading(104 * S, BASE + 4 * S)).remove(0);
    let stack = |name: &str| {
        let frame = Arc::new(Frame::new(FrameKind::Native, name, ""));
        Arc::new(Stack { frames: [frame].into(), end: StackEnd::Root })
    };
    let (a, b) = (stack("a"), stack("b"));
    let window = closed.into_window(Vec::new(), LostCounts::default(), |row| {
        if row.stack == 3 { b.clone() } else { a.clone() }
    });
    let mut counts: Vec<_> =
        window.rows.iter().map(|r| (r.stack.frames[0].name.to_string(), r.count)).collect();
    counts.sort();
    assert_eq!(counts, [("a".into(), 2), ("b".into(), 1)]);
}

/// One stretch of a machine's life.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, samples come in with this lag; then the clocks are read.
    Pass { ms: u64, samples: u8, lag_ms: u64 },
    /// Somebody sets the clock, by this much.
    Set { ms: i64 },
    /// A stamp that makes no sense.
    Wild { time_ns: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u64..4_000, 0u8..8, 0u64..3_000)
            .prop_map(|(ms, samples, lag_ms)| Event::Pass { ms, samples, lag_ms }),
        1 => (-40_000i64..40_000).prop_map(|ms| Event::Set { ms }),
        1 => (-400i64..400).prop_map(|ms| Event::Set { ms }),
        1 => any::<u64>().prop_map(|time_ns| Event::Wild { time_ns }),
    ]
}

proptest! {
    #[test]
    fn sums_are_conserved_and_windows_well_formed(
        start in 0u64..10_000,
        length_s in 1u64..11,
        max_rows in 1usize..20,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let (mut mono, mut wall) = (1_000 * S, (BASE + start * S / 1000) as i64);
        let config = WindowsConfig {
            length: Duration::from_secs(length_s),
            grace: Duration::from_secs(1),
            max_rows,
            overflow_stack: u64::MAX,
            overflow_labels: labels(0),
            tenant: |_| Tenant::default(),
            cost: |_| 1,
        };
        let mut w = Windows::new(config, reading(mono, wall as u64));
        let (mut added, mut closed) = (0u64, Vec::new());
        for event in events {
            match event {
                Event::Pass { ms, samples, lag_ms } => {
                    mono += ms * 1_000_000;
                    wall += ms as i64 * 1_000_000;
                    for i in 0..u64::from(samples) {
                        let stamp = mono.saturating_sub(i * lag_ms * 500_000);
                        w.add(stamp, &labels(i as u32 % 3), i % 5, CPU);
                        added += 1;
                    }
                    closed.extend(w.advance(reading(mono, wall as u64)));
                }
                Event::Set { ms } => wall += ms * 1_000_000,
                Event::Wild { time_ns } => {
                    w.add(time_ns, &labels(9), 9, CPU);
                    added += 1;
                }
            }
            prop_assert!(w.open.len() <= 62 + 4);
        }
        let counters = w.counters();
        prop_assert_eq!(counters.samples, added);
        closed.extend(w.close_all(reading(mono, wall as u64)));

        let length = length_s * S;
        for window in &closed {
            let (from, until) = (window.range.from.0, window.range.until.0);
            prop_assert!(from < until, "negative or empty: {from} {until}");
            prop_assert_eq!(from / length, (until - 1) / length, "not inside one slot");
            prop_assert_eq!(window.partial, from % length != 0 || until % length != 0);
            prop_assert!(!window.rows.is_empty());
            prop_assert!(window.rows.len() <= max_rows + max_rows / 8 + 1);
        }
        prop_assert_eq!(closed.iter().map(count).sum::<u64>(), added);
        let weight: u64 = closed.iter().flat_map(|w| &w.rows).map(|r| r.weight).sum();
        prop_assert_eq!(weight, added * 10);
        if counters.clock_steps == 0 {
            prop_assert!(closed.windows(2).all(|p| p[0].range.until <= p[1].range.from), "out of order");
        }
    }
}

#[test]
fn a_stretch_is_booked_where_its_middle_is() {
    let mut w = windows(reading(100 * S, BASE));
    let sums = |cpu_ns| LedgerSums {
        accounts: emberscope_model::Accounts { cpu_ns, ..Default::default() },
        ..LedgerSums::default()
    };
    // Asked for shortly after the window's end, for all of it.
    w.book(100 * S + S / 4, 110 * S + S / 4, &labels(1), &sums(4));
    w.book(109 * S, 109 * S + 5, &labels(1), &sums(1));
    // Neither order of its ends nor a stretch before all windows loses anything.
    w.book(112 * S, 111 * S, &labels(2), &sums(2));
    let closed = w.advance(reading(111 * S, BASE + 11 * S));
    assert_eq!((seconds(&closed[0]), closed[0].rows.len(), closed[0].ledger.len()), ((0.0, 10.0), 0, 1));
    let line = &closed[0].ledger[0];
    assert_eq!((line.sums.accounts.cpu_ns, &line.labels), (5, &labels(1)));
    assert_eq!((line.seen.from.0 - BASE, line.seen.until.0 - BASE), (S / 4, 10 * S + S / 4));
    w.book(105 * S, 106 * S, &labels(1), &sums(8));
    assert_eq!(w.counters().late, 1);
    let closed = w.close_all(reading(113 * S, BASE + 13 * S));
    let cpu: u64 = closed.iter().flat_map(|w| &w.ledger).map(|l| l.sums.accounts.cpu_ns).sum();
    assert_eq!((closed.len(), cpu), (1, 10));
}

#[test]
fn a_span_is_in_each_window_that_it_reaches_into() {
    let mut w = windows(reading(100 * S, BASE));
    let who = labels(1);
    // Of 25 s of which 5 are weighed: 6 s in the first window, 10 in the second, 9 in the third.
    let waits = |weight, derived| Counts { kind: SampleKind::OffCpu, samples: 1, weight, derived };
    w.add_span((104 * S, 129 * S), &who, &7, waits(5 * S, 4));
    w.add_span((101 * S, 101 * S), &who, &7, waits(3, 1));
    let closed = w.close_all(reading(129 * S, BASE + 29 * S));
    let of = |window: &ClosedWindow<u64>| {
        let row = &window.rows[0];
        (row.weight, row.count, row.derived)
    };
    assert_eq!(
        closed.iter().map(of).collect::<Vec<_>>(),
        [(6 * S / 5 + 3, 2, 5), (10 * S / 5, 1, 0), (9 * S / 5, 1, 0)]
    );
    // However long it is, no more than so many windows are made, and none of it is lost.
    let mut w = windows(reading(10_000 * S, BASE));
    w.add_span((0, 10_000 * S), &who, &7, waits(77, 1));
    let closed = w.close_all(reading(10_000 * S, BASE));
    assert!(closed.len() <= 16);
    assert_eq!(closed.iter().flat_map(|window| &window.rows).map(|row| row.weight).sum::<u64>(), 77);
}
