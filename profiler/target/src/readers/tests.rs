//! Who waits for whom, and what is turned away.

use super::*;

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
    assert_eq!(taken, MAX_WAITING - 1);
    drop(go);
    assert_eq!(door.done.iter().take(MAX_WAITING).count(), MAX_WAITING);
}
