//! What a daemon that came down leaves behind, and what the next makes of it.

use super::list::worth;
use super::*;

fn item(name: &str) -> Item {
    Item::file(&format!("8:1:{name}"), &format!("/opt/{name}"))
}

/// As an abort leaves it: guards never end.
fn comes_down(dir: &Path, reading: &[&str]) {
    let quarantine = Quarantine::open(dir).unwrap();
    for name in reading {
        std::mem::forget(quarantine.enter(item(name)).unwrap());
    }
}

#[test]
fn what_was_read_when_the_daemon_came_down_is_left_alone_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let quarantine = Quarantine::open(dir.path()).unwrap();
    drop(quarantine.enter(item("fine")).unwrap());
    std::mem::forget(quarantine.enter(item("bad")).unwrap());
    drop(quarantine);
    let next = Quarantine::open(dir.path()).unwrap();
    assert_eq!(next.enter(item("bad")).unwrap_err(), Quarantined);
    assert!(next.enter(item("fine")).is_ok());
    let state = next.state();
    assert_eq!((state.entries.len(), state.refused, state.careful), (1, 1, None));
    assert_eq!((state.entries[0].item.shown.as_str(), state.entries[0].strikes), ("/opt/bad", 1));
    assert!(state.entries[0].left <= FIRST);
    // It is not struck again for what the start before found.
    drop(next);
    assert_eq!(Quarantine::open(dir.path()).unwrap().state().entries[0].strikes, 1);
}

#[test]
fn an_end_in_order_accuses_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let quarantine = Quarantine::open(dir.path()).unwrap();
    std::mem::forget(quarantine.enter(item("cut short")).unwrap());
    quarantine.ends_in_order();
    assert_eq!(Quarantine::open(dir.path()).unwrap().state(), State::default());
}

#[test]
fn an_end_by_panic_counts_and_accuses_nobody_who_did_not_panic() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..MANY {
        let quarantine = Quarantine::open(dir.path()).unwrap();
        quarantine.enter(item("beside it")).map(std::mem::forget).ok();
        quarantine.ends_by_panic();
    }
    let state = Quarantine::open(dir.path()).unwrap().state();
    assert!(state.entries.is_empty() && state.careful.is_some(), "{state:?}");
}

#[test]
fn notes_of_another_boot_accuse_nobody() {
    let dir = tempfile::tempdir().unwrap();
    comes_down(dir.path(), &["innocent"]);
    let notes = dir.path().join("notes");
    let mut bytes = std::fs::read(&notes).unwrap();
    // A digit of the boot's id, behind the length and "runs ".
    bytes[9] = if bytes[9] == b'0' { b'1' } else { b'0' };
    std::fs::write(&notes, bytes).unwrap();
    assert_eq!(Quarantine::open(dir.path()).unwrap().state(), State::default());
}

#[test]
fn each_strike_is_worth_more_up_to_a_day() {
    let hours = [0, 1, 2, 4, 8, 16, 24, 24].map(|hours| Duration::from_secs(hours * 3600));
    for (strikes, time) in (1..).zip(hours) {
        assert_eq!(worth(strikes), if strikes == 1 { FIRST } else { time }, "{strikes}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut list = List::read(&dir.path().join("list.json"));
    list.strike(&item("bad"));
    list.strike(&item("bad"));
    list.keep();
    let kept = List::read(&dir.path().join("list.json")).active();
    assert_eq!((kept.len(), kept[0].strikes), (1, 2));
    assert!(kept[0].left <= SECOND && kept[0].left > SECOND - FIRST);
}

#[test]
fn a_panic_under_a_guard_is_a_strike_too() {
    let dir = tempfile::tempdir().unwrap();
    let quarantine = Quarantine::open(dir.path()).unwrap();
    let read = super::super::attempt(|| {
        let _guard = quarantine.enter(item("bad")).unwrap();
        panic!("damaged");
    });
    assert!(read.is_err());
    assert!(quarantine.enter(item("bad")).is_err());
}

#[test]
fn a_daemon_that_keeps_coming_down_reads_nothing_for_a_time() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..MANY {
        comes_down(dir.path(), &[]);
    }
    let careful = Quarantine::open(dir.path()).unwrap();
    assert!(careful.enter(item("anything")).is_err());
    assert!(careful.state().careful.is_some_and(|left| left <= CAREFUL));
}

#[test]
fn the_list_is_bounded_and_a_damaged_file_is_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list.json");
    let mut list = List::read(&path);
    for n in 0..MAX_ENTRIES + 10 {
        list.strike(&item(&n.to_string()));
    }
    list.keep();
    assert_eq!(List::read(&path).active().len(), MAX_ENTRIES);
    std::fs::write(&path, b"{\"entries\": [{\"id\": 7}, 3], \"unclean_ends\": \"x\"").unwrap();
    assert!(List::read(&path).active().is_empty());
    std::fs::write(dir.path().join("notes"), [0xff; 2000]).unwrap();
    assert!(Quarantine::open(dir.path()).is_ok());
}

#[test]
fn long_paths_are_cut_and_more_readers_than_slots_are_let_through() {
    let dir = tempfile::tempdir().unwrap();
    let quarantine = Quarantine::open(dir.path()).unwrap();
    let long = Item::file("1", &"ä".repeat(2000));
    let guards: Vec<_> = (0..100).map(|_| quarantine.enter(long.clone()).unwrap()).collect();
    std::mem::forget(guards);
    drop(quarantine);
    let entries = Quarantine::open(dir.path()).unwrap().state().entries;
    assert_eq!(entries.len(), 1);
    assert!(entries[0].item.shown.len() < 512 && entries[0].item.shown.starts_with('ä'));
}
