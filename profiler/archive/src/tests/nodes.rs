//! Nodes that do not send, or whose clock is another.

use super::*;
use crate::copy::heart_of;
use crate::heartbeat::{EVERY, Heartbeat, State};

fn now_ms() -> i64 {
    i64::try_from(WallTime::now().as_millis()).unwrap()
}

/// As a node would put it whose clock says so.
fn put(place: &Place, host: &str, now_ms: i64, waiting: u64, oldest_ms: i64) -> PathBuf {
    let beat = Heartbeat { host: host.into(), now_ms, waiting, oldest_ms, put_ms: 0 };
    let remote = Remote::open(&place.url(), true).unwrap();
    run(remote.put(&beat.name(), b"1".to_vec())).unwrap();
    place.archive().join(beat.name())
}

fn last_minute() -> Query {
    let until = WallTime::now();
    Query { range: TimeRange { from: until.minus(Duration::from_secs(60)), until }, ..query(0, 1, &[], &[]) }
}

/// What an answer about the last minute says of nodes.
fn said(place: &Place) -> Vec<String> {
    let missing = place.reader().merge(&last_minute()).unwrap().quality.missing;
    assert_eq!(missing.count, missing.parts.len() as u64);
    missing.parts.into_iter().map(|part| format!("{} {}", part.name, part.says)).collect()
}

#[test]
fn a_node_has_one_heartbeat_and_takes_it_away() {
    let place = Place::new();
    let _left = put(&place, "a", now_ms() - 500_000, 0, 0);
    let heart = heart_of(&place.config("a")).unwrap();
    let ahead = run(heart.beat()).unwrap();
    assert!(ahead.abs() < 3_000, "{ahead} ms: one clock");
    run(heart.beat()).unwrap();
    assert_eq!(place.count("v1/heartbeats/a/"), 1);
    assert_eq!(said(&place), Vec::<String>::new());
    run(heart.stop());
    assert_eq!(place.count("v1/heartbeats/"), 0);
}

#[test]
fn a_heartbeat_that_is_refused_stops_no_copying() {
    let place = Place::new();
    let store = place.open("a");
    fill(&store, "a", 0, 60);
    // A file stands where the directory would be.
    std::fs::create_dir_all(place.archive().join("v1")).unwrap();
    std::fs::write(place.archive().join("v1/heartbeats"), "").unwrap();
    let archiver = Archiver::start(place.config("a")).unwrap();
    let begun = std::time::Instant::now();
    let usage = loop {
        let usage = archiver.usage();
        if usage.pieces > 0 && usage.heartbeat_failing.is_some() {
            break usage;
        }
        assert!(begun.elapsed() < EVERY, "{usage:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((usage.failing, usage.clock_ahead_ms), (None, None));
    assert_eq!(said(&place), Vec::<String>::new(), "nothing is known of nodes, and nothing fails");
}

#[test]
fn answers_name_the_nodes_that_are_not_well() {
    let place = Place::new();
    put(&place, "n-1", now_ms() + 30_400, 0, 0);
    let dead = put(&place, "n=2d2", now_ms() - 700_000, 0, 0);
    let then = SystemTime::now() - Duration::from_secs(700);
    std::fs::File::options().write(true).open(dead).unwrap().set_modified(then).unwrap();
    put(&place, "n-3", now_ms(), 280, now_ms() - 86_000_000);
    put(&place, "n-4", now_ms(), 1, now_ms() - 60_000);
    let said = said(&place);
    let has = |begin: &str| said.iter().any(|part| part.starts_with(begin));
    assert!(has("node n-1 its clock is 30 s ahead of the archive's"), "{said:?}");
    assert!(has("node n-2 has sent nothing since "), "{said:?}");
    assert!(has("node n-3 280 of its blocks are not here yet, the oldest of "), "{said:?}");
    assert_eq!(said.len(), 3, "{said:?}");
    let usage = place.reader().shelf().reading();
    assert_eq!(usage.nodes, [1; State::ALL.len()]);
    let unwell: Vec<_> = usage.unwell.iter().map(|(node, state, _)| (node.as_str(), state.slug())).collect();
    assert_eq!(unwell, [("n-1", "clock"), ("n-3", "behind"), ("n-2", "silent")]);
}
