//! Files wait for their turn for a moment, and windows for files.

use super::*;

/// A JVM that starts maps more libraries than there are threads for one file system.
#[test]
fn a_file_whose_turn_has_not_come_is_tried_again_for_a_moment() {
    let (dir, mapping) = (Path::new("/proc/self"), maps().remove(0));
    let wanted = || Wanted::<u32>::of(At { dir, mapping: &mapping }, None);
    let before = |by: Duration| Instant::now().checked_sub(by).unwrap();
    let mut file = wanted();
    let polled = file.poll(|_| panic!("it was tried just now"));
    assert_eq!(polled, Ok(None));
    for why in [Turned::Slow, Turned::UserBusy, Turned::Busy] {
        file.tried = before(AGAIN);
        assert_eq!(file.poll(|_| Errand::Turned(why)), Ok(None));
    }
    file.tried = before(AGAIN);
    assert_eq!(file.poll(|_| Errand::Done(7)), Ok(Some(7)));
    (file.tried, file.since) = (before(AGAIN), before(SOON));
    assert_eq!(file.poll(|_| Errand::Turned(Turned::Slow)), Err(Turned::Slow), "not for ever");
    let mut file = wanted();
    file.tried = before(AGAIN);
    assert_eq!(file.poll(|_| Errand::Turned(Turned::Banned)), Err(Turned::Banned), "nor at all");
}

#[test]
fn a_file_whose_turn_never_came_is_not_unreadable() {
    let mapping = maps().remove(0);
    let came = |outcome| came(&mapping, outcome, &mut Natives::new(0, 0));
    for why in Turned::ALL.into_iter().filter(|why| *why != Turned::Failed) {
        assert_eq!(came(Err(why)), Came::NotNow, "{why:?}");
    }
    assert_eq!(came(Err(Turned::Failed)), Came::Unreadable, "it would fail again");
    assert_eq!(came(Ok(Err(Refusal::Missing))), Came::Unreadable);
}

#[test]
fn a_window_waits_for_files_that_came_up_just_now() {
    let (dir, mapping) = (Path::new("/proc/self"), maps().remove(0));
    let at = At { dir, mapping: &mapping };
    let mut files = Files::default();
    assert!(!files.are_coming());
    files.looks.push(Look { slot: FileSlot::default(), file: Wanted::of(at, None) });
    assert!(files.are_coming());
    files.looks[0].file.since = Instant::now().checked_sub(SOON).unwrap();
    assert!(!files.are_coming(), "one that does not come is not waited for");
}

fn maps() -> Vec<Mapping> {
    open::mappings(Path::new("/proc/self")).unwrap().mappings
}
