//! What is copied, broken off, done twice, changed.

use super::*;

#[test]
fn an_archive_answers_as_its_store_does() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 2 * HOUR + 90);
    written(&store, &place.store("a"), 2);
    let usage = place.copy("a");
    assert_eq!((usage.blocks, usage.pieces, usage.missed), (2, 1, 0));
    assert_eq!((place.count("v1/index/"), place.count("v1/open/")), (2, 1));
    assert!(place.count("v1/nodes/a/blocks/20231114T22") > 10);
    same(&store, &place.reader());
    let span = place.reader().span().unwrap();
    assert_eq!((span.from, span.until), (at(0), at(3 * HOUR)));
}

#[test]
fn what_was_broken_off_anywhere_goes_on() {
    let whole = Place::new();
    let store = whole.open("a");
    fill(&store, "a", 0, HOUR + 30);
    written(&store, &whole.store("a"), 1);
    whole.copy("a");
    let objects = whole.objects();
    let changes = objects.len() as i64;
    let question = query(0, 2 * HOUR, &[], &[LabelKey::Stage]);
    let known = told(&store, &question);
    for after in 0..changes {
        let place = Place::new();
        std::os::unix::fs::symlink(whole.store("a"), place.store("a")).unwrap();
        assert!(place.copy_some("a", after).unwrap_err().contains("broken off"), "{after}");
        // A block of which something is missing is not seen.
        let seen = place.reader().merge(&query(0, HOUR, &[], &[])).unwrap();
        let expected = if place.count("v1/index/") > 0 { 360 } else { 0 };
        assert_eq!(seen.windows, expected, "after {after} of {changes}");
        place.copy("a");
        assert_eq!(place.objects(), objects, "after {after} of {changes}");
        assert_eq!(told(&place.reader(), &question), known);
    }
}

#[test]
fn twice_is_once() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, HOUR + 30);
    written(&store, &place.store("a"), 1);
    place.copy("a");
    let objects = place.objects();
    let again = place.copy("a");
    assert_eq!((again.blocks, again.pieces, again.bytes), (0, 0, 0));
    assert_eq!(place.objects(), objects);
    same(&store, &place.reader());
}

#[test]
fn the_open_part_is_followed_and_gives_way_to_its_block() {
    let place = Place::new();
    let store = place.open("a");
    let reader = place.reader();
    for minute in 0..40 {
        fill(&store, "a", minute * 60, minute * 60 + 60);
        place.copy("a");
        if minute % 7 == 0 {
            same(&store, &reader);
        }
    }
    let pieces = place.count("v1/open/");
    assert!((1..16).contains(&pieces), "pieces are joined: {pieces}");
    same(&store, &reader);
    same(&store, &place.reader());
    store.settle();
    let usage = place.copy("a");
    assert_eq!((usage.blocks, place.count("v1/open/"), place.count("v1/index/")), (1, 0, 1));
    same(&store, &reader);
}

#[test]
fn a_journal_that_goes_on_otherwise_is_sent_anew() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 100);
    place.copy("a");
    fill(&store, "a", 100, 200);
    place.copy("a");
    drop(store);
    // A power cut took the last seconds, which the archive has.
    let (_, journal) = emberscope_store::journals_of(&place.store("a")).unwrap().pop().unwrap();
    let length = std::fs::metadata(&journal).unwrap().len();
    std::fs::File::options().write(true).open(&journal).unwrap().set_len(length - 10).unwrap();
    let reader = place.reader();
    assert_eq!(reader.merge(&query(0, 300, &[], &[])).unwrap().windows, 20);
    let store = place.open("a");
    fill(&store, "a", 210, 250);
    place.copy("a");
    same(&store, &place.reader());
}

#[test]
fn labels_that_became_known_late_follow() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 100);
    store.settle();
    place.copy("a");
    let reader = place.reader();
    same(&store, &reader);
    let other = LabelSetBuilder::from_set(&executor("a", 0)).set(LabelKey::App, "app-9").build();
    // The file's time tells that it was changed.
    std::thread::sleep(Duration::from_millis(20));
    store.relabel(&executor("a", 0), &Arc::new(other));
    store.settle();
    let usage = place.copy("a");
    assert_eq!((usage.blocks, place.count("v1/index/")), (1, 1));
    assert_eq!(place.objects().iter().filter(|name| name.contains("label_sets")).count(), 1);
    same(&store, &reader);
    same(&store, &place.reader());
    let apps = reader.values(&query(0, 100, &[], &[]), LabelKey::App).unwrap();
    assert!(apps.iter().any(|app| &*app.value == "app-9"), "{apps:?}");
}

#[test]
fn what_was_copied_stays_as_fine_as_it_was() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 10 * 60);
    store.settle();
    place.copy("a");
    let (objects, known) = (place.objects(), told(&place.reader(), &query(0, 95, &[], &[LabelKey::Stage])));
    drop(store);
    let roll_ups = vec![RollUp { after: Duration::ZERO, window: Duration::from_secs(60) }];
    let config = DiskStoreConfig { roll_ups, fsync: Fsync::Never, ..DiskStoreConfig::new(place.store("a")) };
    let rolled = DiskStore::open(DiskStoreConfig { retention_age: Duration::MAX, ..config }).unwrap();
    (0..3).for_each(|_| rolled.settle());
    assert!(std::fs::read_to_string(first_manifest(&place)).unwrap().contains("window_ns"));
    place.copy("a");
    assert_eq!(place.objects(), objects);
    assert_eq!(told(&place.reader(), &query(0, 95, &[], &[LabelKey::Stage])), known);
}

/// The manifest of a node's only block.
fn first_manifest(place: &Place) -> PathBuf {
    blocks_of(&place.store("a")).unwrap().swap_remove(0).join(MANIFEST)
}

#[test]
fn a_thread_copies_and_tells() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 100);
    store.settle();
    let config = ArchiverConfig { every: Duration::from_millis(10), ..place.config("a") };
    let archiver = Archiver::start(config).unwrap();
    let begun = std::time::Instant::now();
    while archiver.usage().blocks == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((archiver.usage().blocks, archiver.usage().failing), (1, None));
    drop(archiver);
    same(&store, &place.reader());
}

#[test]
fn an_odd_url_is_refused_with_the_mend() {
    for (url, says) in [
        ("/tmp/x", "no URL"),
        ("ftp://x/y", "not known"),
        ("s3:///x", "no bucket"),
        ("file://tmp/x", "three slashes"),
        ("file:///proc/none/x", "No such file"),
    ] {
        let error = Remote::open(url, true).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("file:///DIRECTORY"), "{error}");
    }
}
