//! An application's hour of all nodes as one block.

use super::*;
use LabelKey::{App, Executor, Node, Stage, Task, ThreadClass};

fn config(place: &Place, app: Option<&str>) -> CompactConfig {
    CompactConfig {
        url: place.url(),
        dir: place.0.path().join("compact"),
        dir_bytes: 1 << 30,
        memory_bytes: 1 << 30,
        app: app.map(str::to_owned),
        range: range(0, 5 * HOUR),
    }
}

fn compacted(place: &Place, app: Option<&str>) -> Vec<Compacted> {
    let mut all = Vec::new();
    compact(&config(place, app), |one| all.push(one)).unwrap();
    all
}

/// Like [`told`], but for how many windows it was.
fn of_app(store: &dyn Store, app: &str) -> Vec<String> {
    let questions = [
        query(0, HOUR, &[(App, app)], &[]),
        query(0, HOUR, &[(App, app)], &[Node, Executor, Stage]),
        query(600, 1800, &[(App, app), (Node, "b")], &[ThreadClass]),
        query(0, 2 * HOUR, &[(App, app), (Stage, "3")], &[]),
        query(0, HOUR, &[(App, app), (Stage, "3")], &[Task]),
        query(0, HOUR, &[(App, app), (Task, "12")], &[]),
    ];
    questions.iter().map(|question| told(store, question)).collect()
}

#[test]
fn sums_do_not_change() {
    let place = Place::new();
    for node in ["a", "b", "c"] {
        let store = place.open(node);
        fill(&store, node, 0, HOUR + 60);
        store.settle();
        place.copy(node);
    }
    let (one, two) = (of_app(&place.reader(), "app-1"), of_app(&place.reader(), "app-2"));
    let first = compacted(&place, None);
    let hours: Vec<_> =
        first.iter().map(|c| (c.app.as_str(), c.hour.as_str(), c.blocks, c.unchanged)).collect();
    let whole = [("app-1", "20231114T22", 3, false), ("app-2", "20231114T22", 3, false)];
    let next = [("app-1", "20231114T23", 3, false), ("app-2", "20231114T23", 3, false)];
    assert_eq!(hours, [whole, next].concat());
    let reader = place.reader();
    assert_eq!(of_app(&reader, "app-1"), one);
    assert_eq!(of_app(&reader, "app-2"), two);
    // It is what was read.
    let fresh = place.reader();
    fresh.merge(&query(0, HOUR, &[(App, "app-1")], &[Stage])).unwrap();
    let usage = fresh.shelf().reading();
    assert_eq!((usage.cached_blocks, usage.set_aside), (1, 0), "{usage:?}");
    // Done again nothing changes.
    let objects = place.objects();
    assert!(compacted(&place, None).iter().all(|one| one.unchanged));
    assert!(compacted(&place, Some("app-1")).iter().all(|one| one.unchanged));
    assert_eq!(place.objects(), objects);
}

#[test]
fn what_comes_late_is_read_beside_it_and_then_with_it() {
    let place = two_hours();
    compacted(&place, Some("app-1"));
    let late = place.open("c");
    fill(&late, "c", 0, HOUR);
    late.settle();
    place.copy("c");
    let all = query(0, HOUR, &[(App, "app-1")], &[]);
    let samples = |place: &Place| place.reader().merge(&all).unwrap().quality.samples;
    let before = samples(&place);
    let of_c = query(0, HOUR, &[(App, "app-1"), (Node, "c")], &[]);
    assert!(place.reader().merge(&of_c).unwrap().quality.samples > 0);
    let again = compacted(&place, Some("app-1"));
    assert_eq!((again[0].blocks, again[0].unchanged), (3, false));
    assert_eq!(samples(&place), before);
    // The old one went.
    assert_eq!(place.count("v1/gathered/"), 1);
    let generations: std::collections::BTreeSet<String> = (place.objects().iter())
        .filter(|name| name.starts_with("v1/apps/"))
        .filter_map(|name| name.rsplit_once('/').map(|(dir, _)| dir.to_owned()))
        .collect();
    assert_eq!(generations.len(), 1, "{generations:?}");
    // A reader that still lists the old one asks anew.
    assert_eq!(samples(&place), before);
}

#[test]
fn a_node_that_takes_all_the_memory_is_left_out() {
    // As much memory as the small node takes.
    let alone = Place::new();
    let small = alone.open("a");
    fill(&small, "a", 0, 60);
    small.settle();
    alone.copy("a");
    let of = |place: &Place, memory_bytes| CompactConfig { memory_bytes, ..config(place, None) };
    let enough = (10..30).map(|bits| 1 << bits).find(|bytes| compact(&of(&alone, *bytes), |_| {}).is_ok());

    let place = Place::new();
    std::os::unix::fs::symlink(alone.store("a"), place.store("a")).unwrap();
    place.copy("a");
    let large = place.open("b");
    fill(&large, "b", 0, HOUR);
    large.settle();
    place.copy("b");
    let mut all = Vec::new();
    compact(&of(&place, enough.unwrap()), |one| all.push(one)).unwrap();
    assert!(all.len() == 2 && all.iter().all(|one| one.blocks == 1), "{all:?}");
    // Its own block is read.
    let app = query(0, HOUR, &[(App, "app-1")], &[]);
    let samples = |store: &dyn Store| store.merge(&app).unwrap().quality.samples;
    let reader = place.reader();
    assert_eq!(samples(&reader), samples(&small) + samples(&large));
    assert_eq!(reader.merge(&app).unwrap().quality.missing.count, 0);
    // The next time round there is nothing to do.
    compact(&of(&place, enough.unwrap()), |one| assert!(one.unchanged)).unwrap();
}

#[test]
fn too_much_at_once_is_refused_with_the_mend() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, HOUR);
    store.settle();
    place.copy("a");
    let config = CompactConfig { memory_bytes: 1000, ..config(&place, None) };
    let error = compact(&config, |_| {}).unwrap_err().to_string();
    assert!(error.contains("--app") && error.contains("20231114T22"), "{error}");
}
