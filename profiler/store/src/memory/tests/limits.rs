//! What is refused, and what is held.

use super::*;

#[test]
fn too_large_answers_are_refused_with_the_limit() {
    let answers = AnswerLimits { nodes: 3, label_sets: 1, points: 1, ..AnswerLimits::default() };
    let store = MemoryStore::new(MemoryStoreConfig { answers, ..MemoryStoreConfig::default() });
    let s = stack(&["a", "b"]);
    store.append(window(0, 10, vec![row(&labels(&[(LabelKey::Pid, "1")]), &s, 1)]));
    assert_eq!(store.merge(&query(0, 10)).unwrap().tree.nodes.len(), 3, "at the limit");
    store.append(window(10, 20, vec![row(&labels(&[(LabelKey::Pid, "2")]), &stack(&["c"]), 1)]));
    let error = store.merge(&query(0, 20)).unwrap_err().to_string();
    assert_eq!(
        error,
        "the answer has more than 3 nodes in its call tree (query-nodes): narrow the time range or the selection"
    );
    let methods = store.methods(&query(0, 20)).unwrap().methods;
    let seen: Vec<_> = methods.iter().map(|m| (&*m.name, m.self_count, m.total_count)).collect();
    assert_eq!(seen, [("a", 0, 1), ("b", 1, 1), ("c", 1, 1)], "ways to methods do not count");
    store.append(window(20, 30, vec![row(&labels(&[(LabelKey::Pid, "2")]), &stack(&["d"]), 1)]));
    let error = store.methods(&query(0, 30)).unwrap_err().to_string();
    assert!(error.starts_with("the answer has more than 3 methods (query-nodes): "), "{error}");
    assert!(store.totals(&query(0, 20)).is_err());
    assert!(store.series(&query(0, 20), Duration::from_secs(10), &[]).is_err());
    assert!(store.totals(&query(0, 10)).is_ok());
    assert!(store.series(&query(0, 10), Duration::from_secs(10), &[LabelKey::Pid]).is_ok());
}

#[test]
fn what_windows_share_is_held_once() {
    let stacks: Vec<_> = (0..200).map(|i| stack(&[&format!("method number {i}")])).collect();
    let who = labels(&[]);
    let store = store();
    let mut bytes = Vec::new();
    for from in [0, 10] {
        store.append(window(from, from + 10, stacks.iter().map(|s| row(&who, s, 1)).collect()));
        bytes.push(store.usage().bytes);
    }
    assert!((bytes[1] - bytes[0]) * 3 < bytes[0], "{bytes:?}");
    assert_eq!(store.usage().windows, 2);
}

#[test]
fn a_clock_that_jumps_a_year_and_back_drops_nothing() {
    let store = store();
    let (who, s) = (labels(&[]), stack(&["a"]));
    for from in [0, 31_536_000, 10] {
        store.append(window(from, from + 10, vec![row(&who, &s, 1)]));
    }
    assert_eq!(store.usage().windows, 3);
    assert_eq!(store.merge(&query(0, 20)).unwrap().quality.samples, 2);
}
