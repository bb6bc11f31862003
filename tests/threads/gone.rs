//! Probes that are taken away: nothing is heard of them, and new ones on the same file wait for their end.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn nothing_is_heard_once_the_probe_is_gone() {
    let Some((features, _guard)) = host("unwatch") else { return };
    let mut capture = start(&config(), &features);
    let id = watch(&mut capture, &fixture(), "set_name");
    assert!(!capture.unwatch_names(id).expect("detaches").is_empty());
    assert!(capture.unwatch_names(id).expect("does nothing").is_empty());
    assert_eq!(capture.name_probes(), 0);
    let mut program = Program::start(&["steps"]);
    let mut events = Vec::new();
    program.end(&mut capture, &mut events);
    assert!(threads(&events, program.pid()).is_empty());
    assert!(samples(&events, program.pid()).iter().all(|s| s.name_seq == 0));
}

#[test]
fn a_file_has_no_new_probes_before_its_old_ones_are_gone() {
    let Some((features, _guard)) = host("gone") else { return };
    let mut capture = start(&config(), &features);
    let id = watch(&mut capture, &fixture(), "set_name");
    let going = capture.unwatch_names(id).expect("detaches");
    let gone = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&gone);
    let away = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        seen.store(true, Ordering::SeqCst);
        drop(going);
    });
    assert_eq!(watch(&mut capture, &fixture(), "set_name"), id);
    assert!(gone.load(Ordering::SeqCst), "both were there at once");
    away.join().expect("no panic");
    assert_eq!(capture.name_probes(), 1);
    // Each name is told once.
    let mut program = Program::start(&["steps"]);
    let mut events = Vec::new();
    program.end(&mut capture, &mut events);
    assert_eq!(capture.stats().names, 5);
}
