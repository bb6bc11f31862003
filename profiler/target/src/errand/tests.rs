//! Jobs that do not come back cost who is read, and nobody else.

use super::limits::AHEAD;
use super::state::BANS;
use super::*;
use std::path::Path;
use std::sync::mpsc::Sender;

const LONG: Duration = Duration::from_secs(60);

fn about(pid: u32, uid: u32) -> About {
    let dir = Path::new("/nowhere").join(pid.to_string());
    About { dir: dir.clone(), uid, payer: uid, what: What::Maps, path: None, key: Key::Process(dir) }
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
    for pid in 0..limits.threads as u32 / 2 {
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
    assert_eq!(counts.threads, limits.threads, "each has half of what is left, or one: {counts:?}");
    assert_eq!(turned(errands.run(about(100, 1001), LONG, || 2)), Turned::Busy);
    // The jobs end with what they waited for; no more threads are kept than are of use.
    drop(held);
    while errands.counts().threads > limits.of_key {
        std::thread::yield_now();
    }
    assert_eq!(errands.run(about(99, 1000), LONG, || 1).done(), Some(1));
}

/// Has so many jobs begun that never end, and gives them up; the answer: how many were.
fn stick(errands: &Errands, jobs: impl Iterator<Item = About>, held: &mut Vec<Sender<u32>>) -> usize {
    let before = held.len();
    for about in jobs {
        let (go, job) = hold();
        if matches!(errands.run(about, Duration::ZERO, job), Errand::Late(_)) {
            held.push(go);
        }
    }
    lock(&errands.state).limits.stuck_after = Duration::ZERO;
    assert_eq!(errands.counts().stuck.len(), held.len());
    lock(&errands.state).limits.stuck_after = LONG;
    held.len() - before
}

#[test]
fn users_whose_jobs_are_stuck_leave_threads_to_the_others() {
    let limits = Limits { stuck_after: LONG, ..Limits::IDENTIFYING };
    let (errands, mut held) = (pool(limits), Vec::new());
    let of = |uid: u32| (0..100).map(move |pid| about(1000 * uid + pid, uid));
    let stuck: Vec<usize> = (1..=4).map(|uid| stick(&errands, of(uid), &mut held)).collect();
    assert_eq!(stuck, [4, 2, 1, 1], "half of what is left");
    assert_eq!(turned(errands.run(about(1999, 1), LONG, || 1)), Turned::UserBusy);
    // As many are stuck as are replaced, and nobody who has none notices.
    let (mut more, mut working) = (Vec::new(), Vec::new());
    for uid in 10..14 {
        let (go, job) = hold();
        working.push(errands.run(about(uid, uid), Duration::ZERO, job));
        more.push(go);
    }
    assert!(working.iter().all(|errand| matches!(errand, Errand::Late(_))));
    held.extend(more);
    let last: usize = (100..1100).map(|uid| stick(&errands, of(uid).take(1), &mut held)).sum();
    assert_eq!(
        (last, errands.counts().threads),
        (4, limits.threads + limits.stuck),
        "no more than there may be"
    );
}

#[test]
fn who_made_a_namespace_answers_for_all_users_in_it() {
    let limits = Limits { stuck_after: LONG, ..Limits::IDENTIFYING };
    let (errands, mut held) = (pool(limits), Vec::new());
    let jobs = (100_000..165_536).map(|uid| About { payer: 1000, ..about(uid, uid) });
    assert_eq!(stick(&errands, jobs.take(1000), &mut held), limits.threads / 2);
    assert_eq!(errands.run(about(7, 1001), LONG, || 2).done(), Some(2));
}

#[test]
fn who_is_waited_for_long_is_turned_away() {
    let limits = Limits::BACKGROUND;
    let (mut state, now) = (State::new(limits), Instant::now());
    let (slow, other) = (about(1, 1000), about(2, 1001));
    let wait = |state: &mut State, job: Duration| state.waited(&slow, None, (job, false), now);
    (0..10_000).for_each(|_| wait(&mut state, Duration::from_millis(100)));
    let begin = |state: &mut State, about: &About, now| state.begin(about, Seen::default(), now).err();
    assert_eq!(begin(&mut state, &about(3, 1000), now), None, "what is not slow costs nothing");
    (0..8).for_each(|_| wait(&mut state, Duration::from_millis(7900)));
    assert_eq!(begin(&mut state, &about(4, 1000), now), Some(Turned::Budget));
    assert_eq!(begin(&mut state, &other, now), None);
    assert_eq!(begin(&mut state, &about(4, 1000), now + limits.user_waits_ahead), None, "it is paid");
}

#[test]
fn a_cgroup_leaves_some_of_its_users_budget_to_the_others() {
    let limits = Limits::SAMPLING;
    let (mut state, now) = (State::new(limits), Instant::now());
    let most = limits.user_ahead * 5 / 6;
    state.debts.work(&limits, &about(1, 185), Some(1), most, now);
    assert_eq!(state.matters(&about(2, 185), now), (false, true));
    let mut begin = |pid, group| state.begin(&about(pid, 185), Seen { start: None, group }, now).err();
    assert_eq!(begin(2, Some(1)), Some(Turned::Budget));
    assert_eq!(begin(3, Some(2)), None);
    assert_eq!(begin(4, None), None, "whose cgroup cannot be read");
    state.debts.work(&limits, &about(5, 185), Some(2), most, now);
    let begun = state.begin(&about(6, 185), Seen { start: None, group: Some(3) }, now);
    assert_eq!(begun.err(), Some(Turned::Budget), "there is nothing left");
}

#[test]
fn a_process_and_a_user_whose_reads_take_much_wait() {
    let limits = Limits { user_share: 0.001, process_share: 0.001, waiting: 1.0, ..Limits::SAMPLING };
    let errands = pool(limits);
    let pay = |pid, seconds| {
        let took = Duration::from_secs(seconds);
        lock(&errands.state).debts.work(&limits, &about(pid, 1000), None, took, Instant::now())
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
fn all_waiting_together_is_a_share_of_the_time_and_a_user_has_half_of_what_others_leave() {
    let now = Instant::now();
    let mut state = State::new(Limits::SAMPLING);
    let (slow, other) = (about(1, 1000), about(2, 1001));
    assert_eq!(state.may_wait(&slow, now), AHEAD / 2);
    state.waited(&slow, None, (AHEAD / 4, true), now);
    assert_eq!(state.may_wait(&slow, now), AHEAD / 4);
    assert_eq!(state.may_wait(&other, now), AHEAD * 3 / 8);
    state.waited(&slow, None, (AHEAD, true), now);
    assert_eq!(state.may_wait(&slow, now), Duration::ZERO);
    // Twenty times what was waited, and all is forgotten.
    assert_eq!(state.may_wait(&slow, now + 30 * AHEAD), AHEAD / 2);
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
