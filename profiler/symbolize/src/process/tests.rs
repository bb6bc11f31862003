//! When a process's map is read again, and when it is not.

use super::*;
use std::path::PathBuf;

#[test]
fn failures_make_the_pause_longer_and_success_short_again() {
    let now = Instant::now();
    let mut process = ProcessState::new(now, Runtimes::default());
    let mut pause = |ok| {
        process.schedule(now, Duration::from_secs(10), ok);
        (process.next_job - now).as_secs()
    };
    assert_eq!([pause(true), pause(false), pause(false), pause(false)], [10, 10, 20, 40]);
    for _ in 0..40 {
        assert!(pause(false) <= 600);
    }
    assert_eq!(pause(true), 10);
}

#[test]
fn a_mapping_takes_no_more_than_is_counted() {
    assert!(size_of::<Mapping>() + size_of::<FileState>() <= 88);
}

#[test]
fn two_vain_signals_are_the_last() {
    let mut process = ProcessState::new(Instant::now(), Runtimes::default());
    process.runtime = Some(RuntimeState {
        id: RuntimeId::HOTSPOT,
        library: PathBuf::new(),
        version: None,
        names: NameSource::Waiting(String::new()),
        facts: None,
        unread: false,
        never: false,
        vain_signals: 0,
    });
    let mut never = |vain| {
        process.note_signal(vain);
        process.runtime.as_ref().unwrap().never
    };
    assert_eq!([never(true), never(false), never(true), never(true)], [false, false, false, true]);
}
