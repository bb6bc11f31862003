//! Probes that are taken away: nothing is heard of them, and there are no new ones on the same file before their end.

use super::*;

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
    assert!(capture.has_probes_going(id));
    let probe = |offset| NameProbe::NativeName { offset, by_java: None };
    let refused = try_to_watch(&mut capture, &fixture(), "set_name", probe).expect_err("both at once");
    assert!(matches!(refused, CaptureError::ProbesGoing), "{refused}");
    assert_eq!(capture.name_probes(), 0);
    drop(going);
    assert!(!capture.has_probes_going(id));
    assert_eq!(watch(&mut capture, &fixture(), "set_name"), id);
    assert_eq!(capture.name_probes(), 1);
    // Each name is told once.
    let mut program = Program::start(&["steps"]);
    let mut events = Vec::new();
    program.end(&mut capture, &mut events);
    assert_eq!(capture.stats().names, 5);
}
