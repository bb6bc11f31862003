//! The threads of a store.

use super::*;
use std::io;

/// The journal's thread is told to stop, and has ended, where that of the blocks cannot be started.
#[test]
fn no_thread_is_left_of_a_store_that_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let shared = open(dir.path()).shared.clone();
    shared.stopping.store(false, Ordering::Relaxed);
    let mut asked = Vec::new();
    let started = DiskStore::started(shared.clone(), |name, shared, run| {
        asked.push(name);
        match name {
            "journal" => emberscope_supervise::spawn(name, Duration::MAX, move |beat| run(&shared, beat)),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    });
    assert!(matches!(started, Err(DiskStoreError::Thread(_))));
    assert_eq!(asked, ["journal", "blocks"]);
    assert!(shared.stopping.load(Ordering::Relaxed));
    assert_eq!(Arc::strong_count(&shared), 1, "the thread holds it for as long as it runs");
}
