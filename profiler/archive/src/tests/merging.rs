//! Blocks that were merged on the node's disk, before they were copied, after, or in between.

use super::*;

/// The store of node `a`, which merges the blocks of an hour or does not.
fn opened(place: &Place, merges: bool) -> DiskStore {
    let merge_after = if merges { Duration::ZERO } else { Duration::MAX };
    let (memory_bytes, retention_age) = (usize::MAX, Duration::MAX);
    let config = DiskStoreConfig { fsync: Fsync::Never, ..DiskStoreConfig::new(place.store("a")) };
    DiskStore::open(DiskStoreConfig { memory_bytes, retention_age, merge_after, ..config }).unwrap()
}

/// Writes blocks of some minutes each, numbered from the hour's beginning.
fn blocks(store: &DiskStore, numbers: std::ops::Range<u64>) {
    for number in numbers {
        fill(store, "a", number * 120, number * 120 + 120);
        store.settle();
    }
}

fn merge(place: &Place) -> DiskStore {
    let store = opened(place, true);
    (0..3).for_each(|_| store.settle());
    assert_eq!(store.disk().unwrap().blocks, 1);
    store
}

#[test]
fn what_was_copied_is_not_copied_again() {
    let place = Place::new();
    let store = opened(&place, false);
    blocks(&store, 0..4);
    place.copy("a");
    drop(store);
    let objects = place.objects();
    let store = merge(&place);
    let usage = place.copy("a");
    assert_eq!((usage.blocks, usage.waiting, usage.missed), (0, 0, 0));
    assert_eq!(place.objects(), objects);
    same(&store, &place.reader());
    // Labels that became known since are in the merged block alone: it takes the others' place.
    let other = LabelSetBuilder::from_set(&executor("a", 0)).set(LabelKey::App, "app-9").build();
    std::thread::sleep(Duration::from_millis(20));
    store.relabel(&executor("a", 0), &Arc::new(other));
    store.settle();
    assert_eq!(place.copy("a").blocks, 1);
    assert_eq!((place.count("v1/index/"), place.count("v1/nodes/")), (1, 15));
    same(&store, &place.reader());
    assert_eq!(place.copy("a").blocks, 0);
}

#[test]
fn one_thread_follows_a_store_that_merges() {
    let place = Place::new();
    let store = opened(&place, false);
    blocks(&store, 0..4);
    let config = ArchiverConfig { every: Duration::from_millis(10), ..place.config("a") };
    let archiver = Archiver::start(config).unwrap();
    let until = |done: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !done() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    until(&|| archiver.usage().blocks == 4);
    drop(store);
    let store = merge(&place);
    until(&|| archiver.usage().waiting == 0);
    let usage = archiver.usage();
    assert_eq!((usage.blocks, usage.missed, usage.failing), (4, 0, None));
    assert_eq!(place.count("v1/index/"), 4);
    same(&store, &place.reader());
}

#[test]
fn what_was_never_copied_is_copied_merged() {
    let place = Place::new();
    let store = opened(&place, false);
    blocks(&store, 0..3);
    // Its pieces are there, its block is not.
    fill(&store, "a", 360, 480);
    std::fs::create_dir_all(place.store("b").join("blocks")).unwrap();
    std::os::unix::fs::symlink(place.store("a").join("journal"), place.store("b").join("journal")).unwrap();
    let only_journals = ArchiverConfig { store: place.store("b"), ..place.config("a") };
    run(once(only_journals)).unwrap();
    assert_eq!((place.count("v1/open/"), place.count("v1/index/")), (1, 0));
    blocks(&store, 4..5);
    drop(store);
    let store = merge(&place);
    let usage = place.copy("a");
    assert_eq!((usage.blocks, place.count("v1/index/"), place.count("v1/open/")), (1, 1, 0));
    same(&store, &place.reader());
}

#[test]
fn what_was_copied_in_part_gives_way_wherever_that_is_broken_off() {
    let made = Place::new();
    let store = opened(&made, false);
    blocks(&store, 0..2);
    made.copy("a");
    compact(
        &CompactConfig {
            url: made.url(),
            dir: made.0.path().join("compact"),
            dir_bytes: 1 << 30,
            memory_bytes: 1 << 30,
            app: None,
            range: range(0, HOUR),
        },
        |_| (),
    )
    .unwrap();
    assert!(made.count("v1/gathered/") > 0);
    blocks(&store, 2..4);
    drop(store);
    let store = merge(&made);
    let app = query(0, HOUR, &[(LabelKey::App, "app-1")], &[LabelKey::Stage]);
    let (whole, known) = (store.merge(&app).unwrap().quality.samples, told(&store, &app));
    let copied = |place: &Place| {
        assert_eq!((place.count("v1/index/"), place.count("v1/nodes/")), (1, 15));
        assert_eq!(place.count("v1/gathered/"), 0);
        same(&store, &place.reader());
        assert_eq!(told(&place.reader(), &app), known);
    };
    for after in 0.. {
        let place = Place::new();
        std::os::unix::fs::symlink(made.store("a"), place.store("a")).unwrap();
        std::fs::remove_dir(place.archive()).unwrap();
        let command =
            std::process::Command::new("cp").arg("-r").arg(made.archive()).arg(place.archive()).status();
        assert!(command.unwrap().success());
        let done = place.copy_some("a", after).is_ok();
        assert!(place.reader().merge(&app).unwrap().quality.samples <= whole, "twice, after {after}");
        place.copy("a");
        copied(&place);
        if done {
            assert!(after > 20 && place.count("v1/apps/") == 0, "{after}");
            // A node that may delete only what is its own leaves what was brought together: nothing is counted twice.
            for below in ["v1/gathered", "v1/apps"] {
                let (from, to) = (made.archive().join(below), place.archive().join("v1"));
                assert!(
                    std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success()
                );
            }
            assert!(place.count("v1/gathered/") > 0);
            assert_eq!(told(&place.reader(), &app), known);
            return;
        }
    }
}

#[test]
fn old_blocks_that_are_still_there_are_not_copied() {
    let place = Place::new();
    let store = opened(&place, false);
    blocks(&store, 0..3);
    drop(store);
    let old = blocks_of(&place.store("a")).unwrap();
    let aside = place.0.path().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let copy = |from: &Path, to: &Path| {
        assert!(std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
    };
    old.iter().for_each(|dir| copy(dir, &aside));
    let store = merge(&place);
    let left = old[1].file_name().unwrap();
    copy(&aside.join(left), &old[1]);
    let usage = place.copy("a");
    assert_eq!((usage.blocks, place.count("v1/index/")), (1, 1));
    same(&store, &place.reader());
}
