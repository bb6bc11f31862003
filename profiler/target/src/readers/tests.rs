//! Who waits for whom, and what is turned away.

use super::queue::{ASKING, MAX_WAITING};
use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn of(pid: u32) -> Of {
    Of { key: ProcessKey { pid, start_ticks: 1 }, dir: "/proc/self".into() }
}

#[test]
fn jobs_of_a_process_are_done_in_order_and_one_at_a_time() {
    let door = Readers::default().door();
    let running = Arc::new(AtomicUsize::new(0));
    for n in 0..50 {
        let running = Arc::clone(&running);
        let job = move || {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "alone");
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(n)
        };
        assert!(door.submit(Class::Memory, of(1), job, Err));
    }
    let done: Vec<_> = door.done.iter().take(50).collect();
    assert_eq!(done, (0..50).map(Ok).collect::<Vec<_>>());
    assert!(door.has_room());
}

#[test]
fn who_asks_for_long_leaves_readers_to_the_others() {
    let door = Readers::default().door();
    let (go, wait) = channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    for pid in 1..=2 * ASKING as u32 {
        let wait = Arc::clone(&wait);
        let job = move || {
            let _ = wait.lock().unwrap().recv();
            Ok(pid)
        };
        assert!(door.submit(Class::Asking, of(pid), job, Err));
    }
    assert!(door.submit(Class::Memory, of(9), || Ok(9), Err));
    assert_eq!(door.done.iter().next(), Some(Ok(9)), "it came last");
    drop(go);
    assert_eq!(door.done.iter().take(2 * ASKING).filter(Result::is_ok).count(), 2 * ASKING);
}

#[test]
fn a_job_that_fails_says_so_and_too_many_are_turned_away() {
    let door: Door<Result<u32, Unread>> = Readers::default().door();
    assert!(door.submit(Class::Memory, of(1), || panic!("a hostile file"), Err));
    assert_eq!(door.done.iter().next(), Some(Err(Unread::Quarantined)));
    let (go, wait) = channel::<()>();
    let first = move || {
        let _ = wait.recv();
        Ok(0)
    };
    assert!(door.submit(Class::Memory, of(1), first, Err));
    let taken = (0..2 * MAX_WAITING).filter(|_| door.submit(Class::Memory, of(1), || Ok(1), Err)).count();
    assert_eq!(taken, MAX_WAITING / 2 - 1);
    assert!(door.has_room(), "for others");
    drop(go);
    assert_eq!(door.done.iter().take(MAX_WAITING / 2).count(), MAX_WAITING / 2);
}

fn job(pid: u32, user: u32, class: Class) -> Job {
    Job { key: of(pid).key, user, class, work: Box::new(|_| ()) }
}

fn next(state: &mut State) -> Option<(u32, u32)> {
    state.next().map(|job| (job.user, job.key.pid))
}

#[test]
fn next_is_who_kept_readers_least_and_nobody_has_them_all() {
    let mut state = State::default();
    (0..100).for_each(|pid| state.add(job(pid, 1000, Class::Memory)));
    assert_eq!((next(&mut state), next(&mut state)), (Some((1000, 0)), Some((1000, 1))));
    assert_eq!(next(&mut state), None, "others have the other half");
    state.add(job(200, 1001, Class::Memory));
    state.add(job(201, 1001, Class::Memory));
    assert_eq!(next(&mut state), Some((1001, 200)), "it came last");
    assert_eq!(next(&mut state), None);
    state.done(of(0).key, Duration::from_millis(7900));
    assert_eq!(next(&mut state), Some((1001, 201)), "who had nothing yet");
    state.done(of(200).key, Duration::from_millis(100));
    state.done(of(201).key, Duration::from_millis(100));
    state.add(job(202, 1001, Class::Memory));
    assert_eq!(next(&mut state), Some((1001, 202)));
    assert_eq!(next(&mut state), Some((1000, 2)), "there is a reader yet");
}

#[test]
fn nobody_has_all_readers_that_ask() {
    let mut state = State::default();
    for (pid, user) in [(1, 1000), (2, 1000), (3, 1001)] {
        state.add(job(pid, user, Class::Asking));
    }
    assert_eq!((next(&mut state), next(&mut state)), (Some((1000, 1)), Some((1001, 3))));
    assert_eq!(next(&mut state), None);
    state.done(of(3).key, Duration::ZERO);
    assert_eq!(next(&mut state), None);
    state.done(of(1).key, Duration::from_secs(30));
    assert_eq!(next(&mut state), Some((1000, 2)));
}

#[test]
fn nobody_has_all_places_of_a_door() {
    let waiting = Waiting::default();
    let take = |user| (0..2 * MAX_WAITING).filter(|_| waiting.take(user)).count();
    assert_eq!([take(1), take(2), take(3)], [MAX_WAITING / 2, MAX_WAITING / 4, MAX_WAITING / 8]);
    assert!(waiting.have_room());
    let others: usize = (4..1000).map(take).sum();
    assert_eq!(others, MAX_WAITING / 8, "and no more than there are");
    assert!(!waiting.have_room());
    waiting.give_back(1);
    assert_eq!((take(1), take(1000)), (0, 1));
}
