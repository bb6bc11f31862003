//! Which waits are walked, what is owed, and for how long threads are throttled.

use super::*;

#[test]
fn a_wait_without_an_end_is_what_its_thread_did_not_use() {
    let waiter = Waiter { began_ns: 1000, cpu_ns: 70, run_delay_ns: 20, ..Waiter::default() };
    assert_eq!(waiter.stood_still(1500, 170, 50), 370);
    assert_eq!(waiter.stood_still(1100, 270, 20), 0, "accounts of another clock");
}

#[test]
fn the_chance_follows_how_long_waits_last() {
    let mut cause = Cause::default();
    assert_eq!(cause.chance(LONG_NS), LEAST_CHANCE as u32, "never none");
    cause.lasted(LONG_NS);
    assert_eq!(cause.chance(LONG_NS), 1 << 16, "all of those that are long");
    for _ in 0..200 {
        cause.lasted(1_000_000);
    }
    let tenth = (1 << 16) / 10;
    assert!((tenth..tenth + 10).contains(&cause.chance(LONG_NS)), "{}", cause.chance(LONG_NS));
    for _ in 0..200 {
        cause.lasted(3 * LONG_NS);
    }
    assert!(cause.usual_ns > 3 * LONG_NS - 10);
    assert_eq!(cause.chance(0), 1 << 16);
}

#[test]
fn walks_follow_the_time_that_is_waited() {
    // Nine of ten waits are short; each tenth lasts a hundred times as long.
    let (mut cause, mut waited, mut walks) = (Cause::default(), 0, 0.0);
    for wait in 0..10_000 {
        let ns = if wait % 10 == 9 { LONG_NS / 2 } else { LONG_NS / 200 };
        walks += f64::from(cause.chance(LONG_NS)) / 65536.0;
        cause.lasted(ns);
        waited += ns;
    }
    let asked = waited as f64 / LONG_NS as f64;
    assert!((walks / asked - 1.0).abs() < 0.05, "{walks} walks for {asked} periods");
}

#[test]
fn each_wait_that_is_owed_is_told_once() {
    let mut cause = Cause { stack: 7, ..Cause::default() };
    cause.owe(100, 30);
    cause.owe(200, 5);
    assert_eq!((cause.owed_since_ns, cause.owed_ns, cause.owed), (100, 35, 2));
    assert_eq!(cause.settle(), (35, 2));
    assert_eq!(cause.settle(), (0, 0));
    cause.owe(300, 1);
    assert_eq!((cause.owed_since_ns, cause.settle(), cause.stack), (300, (1, 1), 7));
}

#[test]
fn short_waits_are_told_as_often_as_stacks_are_walked() {
    assert_eq!(together_ns(1), LONG_NS, "none more often for a finer period");
    assert_eq!(together_ns(5 * LONG_NS), 5 * LONG_NS);
}

#[test]
fn a_thread_is_throttled_while_it_wants_to_run() {
    let mut throttled = Throttled::default();
    throttled.leaves(7, 500, 100);
    assert_eq!(throttled.sum_ns, 0, "when it began to wait is not known");
    throttled.wants_to_run(7, 500, 100);
    throttled.leaves(7, 530, 140);
    assert_eq!(throttled.sum_ns, 30, "10 more it waited for a CPU");
    throttled.leaves(7, 590, 200);
    assert_eq!(throttled.sum_ns, 30, "it slept, or ran");
    throttled.wants_to_run(7, 590, 200);
    throttled.leaves(8, 700, 300);
    assert_eq!(throttled.sum_ns, 30, "moved to another CPU: not known");
    throttled.wants_to_run(8, 700, 300);
    throttled.wants_to_run(8, 750, 300);
    throttled.leaves(8, 900, 350);
    assert_eq!(throttled.sum_ns, 80, "never more than its run delay");
}

#[test]
fn walks_of_a_second_are_bounded() {
    let mut waiter = Waiter::default();
    let walked = (0..2_000).filter(|_| waiter.may_walk(5 << 30)).count();
    assert_eq!(walked, MAX_WALKS_A_SECOND as usize);
    assert!(waiter.may_walk(6 << 30), "the next has its own");
}
