//! Jobs that do not come back cost who is read, and nobody else.

use super::state::BANS;
use super::*;
use std::path::Path;
use std::sync::mpsc::Sender;

const LONG: Duration = Duration::from_secs(60);

fn about(pid: u32, uid: u32) -> About {
    let dir = Path::new("/nowhere").join(pid.to_string());
    About { dir: dir.clone(), uid, what: What::Maps, path: None, key: Key::Process(dir) }
}

fn on(device: u32, pid: u32, uid: u32) -> About {
    About { what: What::File, key: Key::Device(0, device), ..about(pid, uid) }
}

fn pool(limits: Limits) -> Errands {
    Errands::new(Limits { least: Duration::ZERO, ..limits })
}

/// A job that comes back when it is let go.
fn hold() -> (Sender<u32>, impl FnOnce() -> Option<u32> + Send + 'static) {
    let (go, wait) = channel();
    (go, move || wait.recv().ok())
}

fn turned<T: std::fmt::Debug>(errand: Errand<T>) -> Turned {
    match errand {
        Errand::Turned(turned) => turned,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_quick_is_done_at_once_and_by_few_threads() {
    let errands = pool(Limits { waiting: 1.0, ..Limits::SAMPLING });
    for nth in 0..100 {
        // Waiting is bounded, but by far more than this takes.
        assert_eq!(errands.run(about(nth, 1000), LONG, move || nth * 2).done(), Some(nth * 2));
    }
    let counts = errands.counts();
    assert_eq!((counts.begun, counts.late, counts.stuck.len()), (100, 0, 0), "{counts:?}");
    assert!(counts.threads <= 2, "{counts:?}");
}

#[test]
fn a_stuck_job_is_given_up_and_its_process_left_alone() {
    let errands = pool(Limits { stuck_after: Duration::ZERO, ..Limits::BACKGROUND });
    let (go, job) = hold();
    let Errand::Late(ticket) = errands.run(about(7, 1000), Duration::ZERO, job) else { panic!("done") };
    assert_eq!(ticket.poll(), Ok(None));
    let counts = errands.counts();
    assert_eq!((counts.given_up.get("maps"), counts.stuck.len()), (Some(&1), 1), "{counts:?}");
    assert_eq!((counts.alone[0].about.pid(), counts.alone[0].about.uid), (7, 1000));
    assert_eq!(turned(errands.run(about(7, 1000), LONG, || 1)), Turned::Banned);
    // Others have what they ask for, of the same user too.
    assert_eq!(errands.run(about(8, 1000), LONG, || 2).done(), Some(2));
    // It comes back after all: the thread is there again, and what it brought too.
    go.send(3).unwrap();
    let came = loop {
        if let Some(came) = ticket.poll().unwrap() {
            break came;
        }
    };
    assert_eq!((came, errands.counts().stuck.len()), (Some(3), 0));
    // Its process waits for the end of the ban, and then for longer.
    assert_eq!(turned(errands.run(about(7, 1000), LONG, || 4)), Turned::Banned);
    let key = about(7, 1000).key;
    assert_eq!(lock(&errands.state).end_ban(&key), BANS.0);
    let (_go, job) = hold();
    assert!(matches!(errands.run(about(7, 1000), Duration::ZERO, job), Errand::Late(_)));
    assert_eq!(errands.counts().given_up.get("maps"), Some(&2));
    assert_eq!(lock(&errands.state).end_ban(&key), 2 * BANS.0);
}

#[test]
fn a_dead_file_system_stops_no_process_and_is_asked_again_when_it_answers() {
    let limits = Limits { slow_after: LONG, ..Limits::BACKGROUND };
    let errands = pool(limits);
    let mut held = Vec::new();
    for pid in 0..limits.of_key as u32 {
        let (go, job) = hold();
        held.push((go, errands.run(on(52, pid, 1000), Duration::ZERO, job)));
    }
    assert_eq!(turned(errands.run(on(52, 99, 1001), LONG, || 1)), Turned::Slow, "another user's, too");
    assert_eq!(errands.run(on(53, 1, 1000), LONG, || 2).done(), Some(2));
    assert_eq!(errands.run(about(1, 1000), LONG, || 3).done(), Some(3), "the same process's other files");
    lock(&errands.state).limits.stuck_after = Duration::ZERO;
    assert_eq!(turned(errands.run(on(52, 99, 1001), LONG, || 1)), Turned::Banned);
    let counts = errands.counts();
    assert_eq!((counts.given_up.get("file"), counts.alone.len()), (Some(&4), 1), "{counts:?}");
    drop(held);
    while !errands.counts().stuck.is_empty() {
        std::thread::yield_now();
    }
    lock(&errands.state).limits.stuck_after = LONG;
    assert_eq!(errands.run(on(52, 99, 1001), LONG, || 1).done(), Some(1));
}

#[test]
fn neither_a_user_nor_all_users_have_more_threads_than_there_may_be() {
    let limits = Limits::BACKGROUND;
    let errands = pool(limits);
    let mut held = Vec::new();
    for pid in 0..limits.of_user as u32 {
        let (go, job) = hold();
        held.push((go, errands.run(about(pid, 1000), Duration::ZERO, job)));
    }
    assert_eq!(turned(errands.run(about(99, 1000), LONG, || 1)), Turned::UserBusy);
    assert_eq!(errands.run(about(100, 1001), LONG, || 2).done(), Some(2));
    for uid in 0..1000 {
        let (go, job) = hold();
        held.push((go, errands.run(about(1000 + uid, 2000 + uid), Duration::ZERO, job)));
    }
    let counts = errands.counts();
    assert_eq!(counts.threads, limits.threads, "{counts:?}");
    assert_eq!(turned(errands.run(about(100, 1001), LONG, || 2)), Turned::Busy);
    // The jobs end with what they waited for; no more threads are kept than are of use.
    drop(held);
    while errands.counts().threads > limits.of_key {
        std::thread::yield_now();
    }
    assert_eq!(errands.run(about(99, 1000), LONG, || 1).done(), Some(1));
}

#[test]
fn a_process_and_a_user_whose_reads_take_much_wait() {
    let limits = Limits { user_share: 0.001, process_share: 0.001, waiting: 1.0, ..Limits::SAMPLING };
    let errands = pool(limits);
    let pay = |pid, seconds| {
        lock(&errands.state).pay(&about(pid, 1000), Duration::from_secs(seconds), Instant::now())
    };
    pay(1, 3);
    assert_eq!(turned(errands.run(about(1, 1000), LONG, || 1)), Turned::Budget);
    assert_eq!(errands.run(about(2, 1000), LONG, || 2).done(), Some(2), "the user has some left");
    pay(3, 2);
    assert_eq!(turned(errands.run(about(2, 1000), LONG, || 2)), Turned::Budget);
    assert_eq!(errands.run(about(2, 1001), LONG, || 3).done(), Some(3));
    assert_eq!(errands.counts().turned.get("budget"), Some(&2));
}

#[test]
fn all_waiting_together_is_a_share_of_the_time() {
    let now = Instant::now();
    let mut state = State::new(Limits::SAMPLING);
    assert_eq!(state.may_wait(now), AHEAD);
    state.late(AHEAD / 2, now);
    assert_eq!(state.may_wait(now), AHEAD / 2);
    state.late(AHEAD, now);
    assert_eq!(state.may_wait(now), Duration::ZERO);
    // Twenty times what was waited, and all is forgotten.
    assert_eq!(state.may_wait(now + 30 * AHEAD), AHEAD);
}

#[test]
fn a_job_that_panics_costs_its_answer() {
    let errands = pool(Limits::BACKGROUND);
    let failed = errands.run(about(1, 1000), LONG, || -> u32 { panic!("an injected panic") });
    assert_eq!(turned(failed), Turned::Failed);
    assert_eq!(errands.run(about(1, 1000), LONG, || 1).done(), Some(1));
}

#[test]
fn a_file_is_closed_by_another_thread() {
    let (reader, writer) = std::io::pipe().unwrap();
    let held = Held::new(std::fs::File::from(std::os::fd::OwnedFd::from(writer)), Path::new("/proc/self"));
    assert!(held.fd().is_some());
    drop(held);
    // It ends when nobody has the other end.
    assert_eq!(std::io::Read::read(&mut { reader }, &mut [0]).unwrap(), 0);
}
