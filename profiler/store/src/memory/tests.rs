//! What the store answers, keeps and counts.

use super::*;
use emberscope_model::{
    Accounts, Detail, DropReason, Frame, FrameKind, LabelSetBuilder, LedgerRow, LedgerSums, LostCounts,
    MatchOp, Matcher, ProcessKey, Row, SampleKind, Stack, StackEnd, Tree, UnknownReason, WallTime,
};
use proptest::prelude::*;

mod changes;
mod ledger;
mod limits;

const S: u64 = 1_000_000_000;
const BASE: u64 = 1_700_000_000 * S;
const WEIGHT: u64 = 10_101_010;

fn at(second: u64) -> WallTime {
    WallTime(BASE + second * S)
}

fn range(from: u64, until: u64) -> TimeRange {
    TimeRange { from: at(from), until: at(until) }
}

fn labels(pairs: &[(LabelKey, &str)]) -> Arc<LabelSet> {
    Arc::new(pairs.iter().fold(LabelSetBuilder::new(), |set, (k, v)| set.set(*k, *v)).build())
}

fn stack(names: &[&str]) -> Arc<Stack> {
    let frame = |name: &&str| Arc::new(Frame::new(FrameKind::JavaCompiled, *name, ""));
    Arc::new(Stack { frames: names.iter().map(frame).collect(), end: StackEnd::Root })
}

fn row(labels: &Arc<LabelSet>, stack: &Arc<Stack>, count: u64) -> Row {
    let (labels, stack) = (labels.clone(), stack.clone());
    Row { labels, stack, kind: SampleKind::Cpu, count, weight: count * WEIGHT }
}

fn window(from: u64, until: u64, rows: Vec<Row>) -> Window {
    let range = range(from, until);
    Window {
        range,
        rows,
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

fn query(from: u64, until: u64) -> Query {
    Query {
        range: range(from, until),
        selection: Selection::all(),
        kind: SampleKind::Cpu,
        group: Vec::new(),
        detail: Detail::default(),
    }
}

fn only(key: LabelKey, value: &str) -> Selection {
    Selection { matchers: vec![Matcher { key, op: MatchOp::In(vec![value.into()]) }] }
}

fn store() -> MemoryStore {
    MemoryStore::new(MemoryStoreConfig::default())
}

/// `depth name self/total`, a line a node.
fn drawn(tree: &Tree) -> Vec<String> {
    let mut depths: Vec<usize> = Vec::new();
    for (i, node) in tree.nodes.iter().enumerate() {
        assert!(i == 0 || (node.parent as usize) < i, "a parent stands before its children");
        depths.push(if i == 0 { 0 } else { depths[node.parent as usize] + 1 });
    }
    let line = |(node, depth): (&emberscope_model::Node, usize)| {
        format!("{depth} {} {}/{}", node.frame.name, node.self_count, node.total_count)
    };
    tree.nodes.iter().zip(depths).map(line).collect()
}

#[test]
fn stacks_merge_by_name_in_an_order_of_names() {
    let store = store();
    let (one, two) = (labels(&[(LabelKey::Stage, "1")]), labels(&[(LabelKey::Stage, "2")]));
    // Equal stacks at different addresses are one.
    let rows = vec![row(&one, &stack(&["a", "c"]), 1), row(&two, &stack(&["a", "b", "d"]), 2)];
    store.append(window(0, 10, rows));
    let rows = vec![row(&one, &stack(&["a", "b"]), 4), row(&labels(&[]), &stack(&["a", "c"]), 8)];
    store.append(window(10, 20, rows));
    let answer = store.merge(&query(0, 20)).unwrap();
    assert_eq!(drawn(&answer.tree), ["0 total 0/15", "1 a 0/15", "2 b 4/6", "3 d 2/2", "2 c 9/9"]);
    assert_eq!(answer.tree.nodes[0].total_weight, 15 * WEIGHT);
    assert_eq!(answer.tree.nodes[0].frame.kind, FrameKind::Label);
    assert_eq!((answer.windows, answer.range), (2, range(0, 20)));

    let grouped = Query { group: vec![LabelKey::Stage], ..query(0, 20) };
    assert_eq!(
        drawn(&store.merge(&grouped).unwrap().tree),
        [
            "0 total 0/15",
            "1 stage=(none) 0/8",
            "2 a 0/8",
            "3 c 8/8",
            "1 stage=1 0/5",
            "2 a 0/5",
            "3 b 4/4",
            "3 c 1/1",
            "1 stage=2 0/2",
            "2 a 0/2",
            "3 b 0/2",
            "4 d 2/2",
        ]
    );
    let selected = Query { selection: only(LabelKey::Stage, "2"), ..query(0, 20) };
    let answer = store.merge(&selected).unwrap();
    assert_eq!((answer.quality.samples, answer.windows), (2, 2));
}

#[test]
fn a_query_holds_the_windows_it_touches_and_says_which() {
    let store = store();
    let (who, s) = (labels(&[]), stack(&["a"]));
    for i in 0..6 {
        store.append(window(i * 10, i * 10 + 10, vec![row(&who, &s, 1 << i)]));
    }
    let ask = |from, until| {
        let answer = store.merge(&query(from, until)).unwrap();
        (answer.quality.samples, answer.range, answer.windows)
    };
    assert_eq!(ask(10, 20), (2, range(10, 20), 1));
    assert_eq!(ask(19, 21), (6, range(10, 30), 2));
    assert_eq!(ask(0, 3_600), (63, range(0, 60), 6));
    // Cut at window borders, the parts sum up to the whole.
    assert_eq!(ask(0, 30).0 + ask(30, 60).0, ask(0, 60).0);
    assert_eq!(ask(65, 71), (0, range(60, 80), 0), "nothing there");
    assert_eq!(ask(20, 20).0, 0);
    assert_eq!(ask(30, 20).0, 0);
    assert_eq!(store.span(), Some(range(0, 60)));
}

#[test]
fn windows_that_share_an_instant_after_a_step_are_both_held() {
    let store = store();
    let (who, s) = (labels(&[]), stack(&["a"]));
    store.append(window(20, 26, vec![row(&who, &s, 1)]));
    store.append(window(24, 30, vec![row(&who, &s, 2)]));
    let answer = store.merge(&query(25, 26)).unwrap();
    assert_eq!((answer.quality.samples, answer.windows, answer.range), (3, 2, range(20, 30)));
}

#[test]
fn a_summary_is_the_answer_without_its_tree() {
    let store = store();
    let (one, two) = (labels(&[(LabelKey::Stage, "1")]), labels(&[(LabelKey::Stage, "2")]));
    let mut unnamed: Vec<_> = stack(&["a"]).frames.to_vec();
    unnamed.push(Arc::new(Frame::unknown(UnknownReason::NoPerfMap, "")));
    let unnamed = Arc::new(Stack { frames: unnamed.into(), end: StackEnd::ALL[1] });
    let again = stack(&["a", "b"]);
    for from in [0, 10] {
        let rows = vec![row(&one, &again, 3), row(&two, &again, 4), row(&one, &unnamed, 2)];
        store.append(window(from, from + 10, rows));
    }
    let selections = [Selection::all(), only(LabelKey::Stage, "1"), only(LabelKey::Stage, "9")];
    for selection in selections {
        for (from, until) in [(0, 20), (5, 10), (40, 50)] {
            let query =
                Query { selection: selection.clone(), group: vec![LabelKey::Stage], ..query(from, until) };
            let Answer { range, windows, quality, .. } = store.merge(&query).unwrap();
            assert_eq!(store.summary(&query).unwrap(), Summary { range, windows, quality });
        }
    }
    assert_eq!(store.summary(&query(0, 20)).unwrap().quality.samples, 18);
}

#[test]
fn quality_counts_by_reason() {
    let store = store();
    let mut frames: Vec<_> = stack(&["a", "b"]).frames.to_vec();
    frames.push(Arc::new(Frame::unknown(UnknownReason::NoPerfMap, "")));
    let cut = Arc::new(Stack { frames: frames.into(), end: StackEnd::NoFramePointer });
    let mut w = window(0, 10, vec![row(&labels(&[]), &cut, 3), row(&labels(&[]), &stack(&["a"]), 2)]);
    w.lost.0[DropReason::RingFullSample as usize] = 7;
    store.append(w.clone());
    store.append(Window { range: range(10, 20), ..w });
    let q = store.merge(&query(0, 20)).unwrap().quality;
    assert_eq!((q.samples, q.truncated, q.frames, q.unnamed_frames), (10, 6, 22, 6));
    assert_eq!(q.ends.get("no_frame_pointer"), Some(&6));
    assert_eq!(q.ends.get("root"), Some(&4));
    assert_eq!(q.unnamed.get("no perf map"), Some(&6));
    assert_eq!(q.lost.samples(), 14);
}

#[test]
fn totals_and_series() {
    let store = store();
    let s = stack(&["a"]);
    let (x, y) = (labels(&[(LabelKey::Executor, "1")]), labels(&[(LabelKey::Executor, "2")]));
    store.append(window(0, 10, vec![row(&x, &s, 1)]));
    store.append(window(10, 20, vec![row(&y, &s, 2), row(&x, &stack(&["b"]), 5)]));
    // No window from 20 to 60.
    let x_again = labels(&[(LabelKey::Executor, "1")]);
    store.append(window(60, 70, vec![row(&x_again, &s, 4)]));
    let totals = store.totals(&query(0, 70)).unwrap();
    let told: Vec<_> = totals.iter().map(|t| (t.labels.get(LabelKey::Executor), t.count, t.seen)).collect();
    assert_eq!(told, [("1", 10, range(0, 70)), ("2", 2, range(10, 20))]);

    let points = |from, until, step| -> Vec<(String, Vec<(u64, u64)>)> {
        let by = [LabelKey::Executor, LabelKey::Stage];
        let series = store.series(&query(from, until), Duration::from_secs(step), &by).unwrap();
        let told = |(labels, points): &LabelledSeries| {
            assert_eq!((labels[1].0, &*labels[1].1), (LabelKey::Stage, ""));
            let points = points.iter().map(|p| (p.time_ms / 1000 - BASE / S, p.count)).collect();
            (labels[0].1.to_string(), points)
        };
        series.iter().map(told).collect()
    };
    let expected =
        [("1".to_owned(), vec![(0, 1), (10, 5), (60, 4)]), ("2".to_owned(), vec![(0, 0), (10, 2), (60, 0)])];
    assert_eq!(points(0, 70, 10), expected);
    assert_eq!(points(0, 70, 0), expected, "a step is at least a window");
    // 1,700,000,000 is a multiple of 20, not of 60 (it is 20 after one).
    assert_eq!(points(0, 70, 20)[0].1, [(0, 6), (60, 4)]);
}

fn process(start_ticks: u64, labels: &Arc<LabelSet>) -> Arc<ProcessRecord> {
    Arc::new(ProcessRecord {
        key: ProcessKey { pid: 7, start_ticks },
        labels: labels.clone(),
        host: String::new(),
        cores: 0,
        program: "java".into(),
        jvm: None,
    })
}

proptest! {
    /// Against a merge done the slow way, whatever the rows, groups and order.
    #[test]
    fn a_merge_is_the_sum_of_its_rows(
        rows in prop::collection::vec(
            (0u64..5, 0usize..3, prop::collection::vec(0usize..4, 0..6), 1u64..100), 0..60),
        from in 0u64..5, length in 0u64..5, grouped: bool,
    ) {
        let sets = ["", "1", "2"].map(|stage| labels(&[(LabelKey::Stage, stage)]));
        let mut expected = std::collections::BTreeMap::<Vec<String>, u64>::new();
        let store = store();
        for slot in 0..5 {
            let mut w = window(slot * 10, slot * 10 + 10, Vec::new());
            for (_, set, path, count) in rows.iter().filter(|r| r.0 == slot) {
                let names: Vec<&str> = path.iter().map(|&i| ["a", "b", "c", "d"][i]).collect();
                w.rows.push(row(&sets[*set], &stack(&names), *count));
                if slot >= from && slot < from + length {
                    let group = grouped.then(|| format!("stage={}", ["(none)", "1", "2"][*set]));
                    let path = group.into_iter().chain(names.iter().map(|n| (*n).to_owned())).collect();
                    *expected.entry(path).or_default() += count;
                }
            }
            store.append(w);
        }
        let group = if grouped { vec![LabelKey::Stage] } else { Vec::new() };
        let ask = Query { group, ..query(from * 10, (from + length) * 10) };
        let answer = store.merge(&ask).unwrap();
        let nodes = &answer.tree.nodes;
        let mut paths: Vec<Vec<String>> = Vec::new();
        let mut got = std::collections::BTreeMap::new();
        for (i, node) in nodes.iter().enumerate() {
            let mut path = if i == 0 { Vec::new() } else { paths[node.parent as usize].clone() };
            if i > 0 {
                path.push(node.frame.name.to_string());
            }
            if node.self_count > 0 {
                prop_assert!(got.insert(path.clone(), node.self_count).is_none(), "a path twice");
            }
            paths.push(path);
            let below: u64 =
                nodes.iter().skip(i + 1).filter(|c| c.parent as usize == i).map(|c| c.total_count).sum();
            prop_assert_eq!(node.total_count, node.self_count + below);
        }
        let total: u64 = expected.values().sum();
        prop_assert_eq!(nodes[0].total_count, total);
        prop_assert_eq!(answer.quality.samples, total);
        prop_assert_eq!(got, expected);
    }
}
