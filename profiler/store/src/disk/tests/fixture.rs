//! A store that an earlier version wrote must open: tests/fixtures/store-1 is of format 1, a block and a journal.
//!
//! The windows that are in it are [`some`]`(6)`: who changes that writes no new fixture, but keeps the old windows
//! for this test.

use super::same::assert_same;
use super::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/store-1")
}

/// How it was written.
fn write_to(store: &dyn Store, settle: impl Fn()) {
    for (number, window) in some(6).into_iter().enumerate() {
        if number == 4 {
            store.relabel(&process(0), &process(1));
            settle();
        }
        store.append(window);
    }
}

#[test]
#[ignore = "no test of its own: it writes the fixture of a new format"]
fn write_the_fixture() {
    let dir = fixture();
    assert!(!dir.exists(), "a fixture stays as it was written");
    let store = open(&dir);
    write_to(&store, || store.settle());
}

#[test]
fn what_the_first_version_wrote_opens() {
    let copy = tempfile::tempdir().unwrap();
    let dir = copy.path().join("store");
    let copied = std::process::Command::new("cp").arg("-r").arg(fixture()).arg(&dir).status().unwrap();
    assert!(copied.success());
    let plain = PlainStore::default();
    write_to(&plain, || ());
    let store = open(&dir);
    let disk = store.disk().unwrap();
    assert_eq!((disk.blocks, disk.recovered_windows, disk.set_aside, disk.cut_bytes), (1, 2, 0, 0));
    assert_same(&plain, &store, "the fixture");
    store.settle();
    assert_same(&plain, &store, "the fixture, its journal made a block");
}
