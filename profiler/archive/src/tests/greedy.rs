//! What one node may write by its key, below its own names, to take the others' answers.

use super::*;
use emberscope_store::Shelf;

/// More names than a node may have in a list.
const MANY: usize = 1001;

fn put(place: &Place, name: &str) {
    let path = place.archive().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "x").unwrap();
}

fn samples(store: &dyn Store) -> u64 {
    store.merge(&query(0, HOUR, &[], &[])).unwrap().quality.samples
}

/// What an answer over the hour lacks.
fn missing(reader: &ShelfStore<Reader>) -> Vec<String> {
    let missing = reader.merge(&query(0, HOUR, &[], &[])).unwrap().quality.missing;
    missing.parts.into_iter().map(|part| part.name).collect()
}

#[test]
fn names_that_are_no_hours_are_ignored_and_named() {
    let place = two_hours();
    let whole = samples(&place.reader());
    put(&place, "v1/index/20231114T22x0001/b/a");
    put(&place, "v1/index/zzzz/b/a");
    put(&place, "v1/index/20231114T22/b/20231114T220000Z-000000000099.0000ABCD");
    put(&place, "v1/open/b/zzz/000000000000-000000000009-0000abcd");
    let reader = place.reader();
    let span = reader.span().unwrap();
    assert_eq!((span.from, span.until), (at(0), at(HOUR)));
    assert_eq!((samples(&reader), missing(&reader)), (whole, Vec::new()));
    let usage = reader.shelf().reading();
    assert_eq!((usage.hours, usage.set_aside), (1, 3), "{usage:?}");
    for (list, example) in [("v1/index", "zzzz"), ("v1/index/20231114T22", "0000ABCD"), ("v1/open", "zzz")] {
        let told = usage.set_aside_names.iter().find(|(name, _)| name == list);
        // Of two the first is the example.
        let example = if list == "v1/index" { "2 names" } else { example };
        assert!(told.is_some_and(|(_, says)| says.contains(example)), "{list}: {usage:?}");
    }
    // They went.
    std::fs::remove_dir_all(place.archive().join("v1/index/zzzz")).unwrap();
    std::fs::remove_dir_all(place.archive().join("v1/index/20231114T22x0001")).unwrap();
    assert_eq!(samples(&reader), whole);
    assert!(reader.shelf().reading().set_aside_names.iter().all(|(name, _)| name != "v1/index"));
}

#[test]
fn a_node_with_too_many_blocks_in_an_hour_loses_its_own() {
    let place = two_hours();
    let of_a = samples(&place.open("a"));
    for number in 0..MANY {
        put(&place, &format!("v1/index/20231114T22/b/20231114T220000Z-{number:012}.{number:08x}"));
    }
    let reader = place.reader();
    assert_eq!((samples(&reader), missing(&reader)), (of_a, vec!["v1/index/20231114T22/b".to_owned()]));
    let other = reader.merge(&query(HOUR, 2 * HOUR, &[], &[])).unwrap().quality.missing;
    assert_eq!(other.count, 0);
}

#[test]
fn a_piece_that_is_too_large_is_set_aside() {
    let place = Place::new();
    let a = place.open("a");
    fill(&a, "a", 0, 60);
    place.copy("a");
    let length = 17 << 20;
    let name = format!("v1/open/b/20231114T220000Z-000000000001/{:012}-{length:012}-00000000", 0);
    put(&place, &name);
    let file = std::fs::File::options().write(true).open(place.archive().join(name)).unwrap();
    file.set_len(length).unwrap();
    let (reader, part) = (place.reader(), "open/b/20231114T220000Z-000000000001");
    assert_eq!((samples(&reader), missing(&reader)), (samples(&a), vec![part.to_owned()]));
}

#[test]
fn a_node_with_too_many_pieces_or_heartbeats_loses_its_own() {
    let place = Place::new();
    let a = place.open("a");
    fill(&a, "a", 0, 60);
    place.copy("a");
    for number in 0..MANY {
        put(&place, &format!("v1/open/b/20231114T220000Z-{number:012}/000000000000-000000000009-00000000"));
        put(&place, &format!("v1/heartbeats/b/{number}-0-0"));
    }
    let reader = place.reader();
    assert_eq!((samples(&reader), missing(&reader)), (samples(&a), vec!["v1/open/b".to_owned()]));
    assert!(reader.shelf().span().is_some());
    let usage = reader.shelf().reading();
    assert!(usage.set_aside_names.iter().any(|(name, _)| name == "v1/heartbeats/b"), "{usage:?}");
}
