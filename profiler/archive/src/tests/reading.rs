//! What is bad, away, or does not fit.

use super::*;

fn two_nodes() -> (Place, DiskStore, DiskStore) {
    let place = Place::new();
    let (a, b) = (place.open("a"), place.open("b"));
    fill(&a, "a", 0, 2 * HOUR + 90);
    fill(&b, "b", 600, 2 * HOUR + 60);
    written(&a, &place.store("a"), 2);
    written(&b, &place.store("b"), 2);
    place.copy("a");
    place.copy("b");
    (place, a, b)
}

fn samples(store: &dyn Store, query: &Query) -> u64 {
    store.merge(query).unwrap().quality.samples
}

#[test]
fn nodes_are_added_up() {
    let (place, a, b) = two_nodes();
    let reader = place.reader();
    let all = query(0, 3 * HOUR, &[], &[]);
    assert_eq!(samples(&reader, &all), samples(&a, &all) + samples(&b, &all));
    // One pid on two nodes is two processes.
    assert_eq!(reader.processes(all.range, &all.selection).len(), 6);
    for (node, store) in [("a", &a), ("b", &b)] {
        let own = query(0, 3 * HOUR, &[(LabelKey::Node, node)], &[]);
        assert_eq!(samples(&reader, &own), samples(store, &own));
        let ledger = |store: &dyn Store| store.ledger(own.range, &own.selection, &[LabelKey::Stage]).unwrap();
        assert_eq!(ledger(&reader), ledger(store));
    }
}

#[test]
fn a_bad_object_is_set_aside_and_the_rest_answers() {
    let (place, a, b) = two_nodes();
    let all = query(0, HOUR, &[], &[]);
    let good = place.objects();
    let bad =
        good.iter().find(|name| name.contains("/b/blocks/20231114T22") && name.ends_with("groups.parquet"));
    let path = place.archive().join(bad.unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let index = good.iter().find(|name| name.starts_with("v1/index/20231114T23/a/")).unwrap();
    std::fs::write(place.archive().join(index), "{}").unwrap();
    let reader = place.reader();
    assert_eq!(samples(&reader, &all), samples(&a, &all));
    let later = query(HOUR, 2 * HOUR, &[], &[]);
    assert_eq!(samples(&reader, &later), samples(&b, &later));
    let usage = reader.shelf().reading();
    assert_eq!(usage.set_aside, 2, "{usage:?}");
    assert!(
        usage.set_aside_names.iter().any(|(name, says)| name.contains("nodes/b/") && says.contains("groups"))
    );
    // It is not asked for again and again.
    assert_eq!(samples(&reader, &all), samples(&a, &all));
    assert_eq!(reader.shelf().reading().set_aside, 2);
}

#[test]
fn a_small_cache_answers_the_same() {
    let (place, _a, _b) = two_nodes();
    let large = place.reader();
    let small = place.reader_with(|config| ReaderConfig { cache_bytes: 30_000, memory_bytes: 1, ..config });
    for _ in 0..2 {
        for question in
            [query(0, HOUR - 60, &[], &[]), query(HOUR + 60, 2 * HOUR - 60, &[], &[LabelKey::Task])]
        {
            assert_eq!(told(&small, &question), told(&large, &question));
        }
    }
    let (large, small) = (large.shelf().reading(), small.shelf().reading());
    assert!(large.evicted == 0 && small.evicted > 0, "{large:?} {small:?}");
    assert!(small.cached_bytes < large.cached_bytes, "{small:?}");
    assert!(small.fetched_bytes > large.fetched_bytes);
}

#[test]
fn an_archive_that_is_away_fails_questions_and_comes_back() {
    let (place, a, _) = two_nodes();
    let own = query(0, HOUR, &[(LabelKey::Node, "a")], &[]);
    let (seen, new) = (place.reader(), place.reader());
    assert_eq!(samples(&seen, &own), samples(&a, &own));
    let elsewhere = place.0.path().join("elsewhere");
    std::fs::rename(place.archive(), &elsewhere).unwrap();
    std::fs::write(place.archive(), "no directory").unwrap();
    // What was seen is answered as it was seen.
    assert_eq!(samples(&seen, &own), samples(&a, &own));
    assert!(seen.shelf().reading().failing.is_some());
    let error = new.merge(&own).unwrap_err();
    assert!(matches!(error, emberscope_store::StoreError::Away { .. }), "{error}");
    std::fs::remove_file(place.archive()).unwrap();
    std::fs::rename(&elsewhere, place.archive()).unwrap();
    assert_eq!(samples(&new, &own), samples(&a, &own));
    assert_eq!(new.shelf().reading().set_aside, 0);
}
