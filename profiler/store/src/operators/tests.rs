use super::*;
use crate::plain::row_of;
use crate::{MemoryStore, MemoryStoreConfig};
use emberscope_model::{LabelSetBuilder, LostCounts, MatchOp, Matcher, Pause, Row, SampleKind, WallTime};

const RUN: &str = "org.apache.spark.executor.Executor$TaskRunner.run";
const NEXT: &str =
    "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.processNext";
const SORT: &str = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.sort_addToSorter_0$";
const FETCH: &str = "org.apache.spark.storage.ShuffleBlockFetcherIterator.next";

fn row(stage: &str, names: &[&str], count: u64) -> Row {
    row_of("a", stage, names, count)
}

/// Of ten seconds, so many after the first.
fn window(seconds: u64, rows: Vec<Row>) -> Window {
    let from = WallTime::from_millis(1_700_000_000_000 + 1000 * seconds);
    Window {
        range: TimeRange { from, until: from.plus(Duration::from_secs(10)) },
        rows,
        ledger: Vec::new(),
        pauses: vec![Pause {
            labels: Arc::new(LabelSetBuilder::new().set(LabelKey::App, "a").build()),
            began: from,
            length_ns: 5_000_000,
            cause: "G1CollectForAllocation".into(),
        }],
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

fn store() -> MemoryStore {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    let rows = vec![
        row("1", &[RUN, NEXT, SORT], 4),
        row("1", &[RUN, NEXT, SORT, "memcpy"], 3),
        row("1", &[RUN, NEXT, SORT, FETCH, "memcpy"], 2),
        row("1", &[RUN, NEXT], 5),
        row("2", &[RUN, "?"], 1),
        row("", &[], 7),
    ];
    store.append(window(0, rows));
    store
}

fn query(group: &[LabelKey], operators: &[&str]) -> Query {
    let range = TimeRange { from: WallTime(0), until: WallTime(u64::MAX) };
    let op = MatchOp::In(operators.iter().map(|&name| name.to_owned()).collect());
    let only = Matcher { key: LabelKey::Operator, op };
    let matchers = if operators.is_empty() { Vec::new() } else { vec![only] };
    Query {
        range,
        selection: Selection { matchers },
        kind: SampleKind::Cpu,
        group: group.to_vec(),
        detail: Detail::default(),
    }
}

/// `depth name self/total`, a line a node; classes without their packages.
fn drawn(tree: &Tree) -> Vec<String> {
    let mut depths: Vec<usize> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        assert!(at == 0 || (node.parent as usize) < at, "a parent stands before its children");
        depths.push(if at == 0 { 0 } else { depths[node.parent as usize] + 1 });
    }
    let line = |(node, depth): (&Node, usize)| {
        let name = node.frame.name.rsplit('.').next().unwrap_or_default();
        format!("{depth} {name} {}/{}", node.self_count, node.total_count)
    };
    tree.nodes.iter().zip(depths).map(line).collect()
}

#[test]
fn operators_stand_where_they_are_asked_for() {
    let store = store();
    let store = ByOperator::new(&store);
    let tree = store.merge(&query(&[LabelKey::Operator], &[])).unwrap().tree;
    let want = [
        "0 total 0/22",
        "1 operator=Exchange (read) 0/2",
        "2 run 0/2",
        "3 processNext 0/2",
        "4 sort_addToSorter_0 0/2",
        "5 next 0/2",
        "6 memcpy 2/2",
        "1 operator=Sort 0/7",
        "2 run 0/7",
        "3 processNext 0/7",
        "4 sort_addToSorter_0 4/7",
        "5 memcpy 3/3",
        "1 operator=WholeStageCodegen (1) 0/5",
        "2 run 0/5",
        "3 processNext 5/5",
        "1 operator=unknown 7/8",
        "2 run 0/1",
        "3 [unknown: no symbol] 1/1",
    ];
    assert_eq!(drawn(&tree), want);
    let by_stage = store.merge(&query(&[LabelKey::Stage, LabelKey::Operator], &[])).unwrap().tree;
    let lines = drawn(&by_stage);
    let labels: Vec<&String> = lines.iter().filter(|line| line.contains('=')).collect();
    let want = [
        "1 stage=(none) 0/7",
        "2 operator=unknown 7/7",
        "1 stage=1 0/14",
        "2 operator=Exchange (read) 0/2",
        "2 operator=Sort 0/7",
        "2 operator=WholeStageCodegen (1) 0/5",
        "1 stage=2 0/1",
        "2 operator=unknown 0/1",
    ];
    assert_eq!(labels, want);
    let outermost = store.merge(&query(&[LabelKey::Operator, LabelKey::Stage], &[])).unwrap().tree;
    let lines = drawn(&outermost);
    let place = lines.iter().position(|line| line == "1 operator=Sort 0/7").expect("Sort");
    assert_eq!(lines[place + 1], "2 stage=1 0/7");
    assert_eq!(lines.iter().filter(|line| line.starts_with("2 stage=")).count(), 5);
}

#[test]
fn one_operator_alone() {
    let store = store();
    let store = ByOperator::new(&store);
    let answer = store.merge(&query(&[], &["Sort", "Exchange (read)"])).unwrap();
    let want = [
        "0 total 0/9",
        "1 run 0/9",
        "2 processNext 0/9",
        "3 sort_addToSorter_0 4/9",
        "4 memcpy 3/3",
        "4 next 0/2",
        "5 memcpy 2/2",
    ];
    let mut lines = drawn(&answer.tree);
    lines[4..].sort();
    assert_eq!(lines, want);
    assert_eq!((answer.quality.samples, answer.quality.frames), (9, 4 * 3 + 3 * 4 + 2 * 5));
    let unknown = store.summary(&query(&[LabelKey::Operator], &["unknown"])).unwrap().quality;
    assert_eq!((unknown.samples, unknown.frames, unknown.unnamed_frames), (8, 2, 1));
    let methods = store.methods(&query(&[], &["Sort"])).unwrap().methods;
    let of = |name: &str| {
        methods.iter().find(|sum| &*sum.name == name).map(|sum| (sum.self_count, sum.total_count))
    };
    assert_eq!((of("memcpy"), of(SORT.trim_end_matches('$')), of(FETCH)), (Some((3, 3)), Some((4, 7)), None));
    assert_eq!(store.merge(&query(&[], &["Window"])).unwrap().tree.nodes.len(), 1);
}

#[test]
fn values_are_operators_or_those_of_one() {
    let store = store();
    let store = ByOperator::new(&store);
    let values = |query: &Query, key| -> Vec<(String, u64)> {
        let values = store.values(query, key).unwrap().into_iter();
        values.map(|known| (known.value.to_string(), known.count)).collect()
    };
    let want = [("unknown", 8), ("Sort", 7), ("WholeStageCodegen (1)", 5), ("Exchange (read)", 2)];
    assert_eq!(values(&query(&[], &[]), LabelKey::Operator), want.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(values(&query(&[], &["unknown"]), LabelKey::Stage), [("2".to_owned(), 1)]);
    assert_eq!(values(&query(&[], &[]), LabelKey::Stage), [("1".to_owned(), 14), ("2".to_owned(), 1)]);
}

#[test]
fn what_is_answered_without_stacks_says_so() {
    let store = store();
    let store = ByOperator::new(&store);
    let asked = query(&[], &["Sort"]);
    assert!(matches!(store.totals(&asked), Err(StoreError::WithoutStacks)));
    assert!(matches!(store.ledger(asked.range, &asked.selection, &[]), Err(StoreError::WithoutStacks)));
    assert!(store.totals(&query(&[], &[])).is_ok());
}

/// In each step what trees say of it, and the rest of the selection is the store's.
#[test]
fn series_are_by_operator() {
    let inner = store();
    inner.append(window(60, vec![row("1", &[RUN, NEXT, SORT], 6), row("1", &[FETCH], 1)]));
    let store = ByOperator::new(&inner);
    let told = |query: &Query, by: &[LabelKey]| -> Vec<(String, Vec<u64>)> {
        let line = |(labels, points): LabelledSeries| {
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            (labels.join(","), points.iter().map(|point| point.count).collect())
        };
        let series = store.series(query, Duration::from_secs(10), by).unwrap();
        assert!(series.iter().flat_map(|(_, points)| points).all(|point| point.weight == 10 * point.count));
        series.into_iter().map(line).collect()
    };
    let lines = |lines: &[(&str, [u64; 2])]| -> Vec<(String, Vec<u64>)> {
        lines.iter().map(|(labels, counts)| ((*labels).to_owned(), counts.to_vec())).collect()
    };
    let by = [LabelKey::Operator];
    let want = [
        ("operator=Exchange (read)", [2, 1]),
        ("operator=Sort", [7, 6]),
        ("operator=WholeStageCodegen (1)", [5, 0]),
        ("operator=unknown", [8, 0]),
    ];
    assert_eq!(told(&query(&[], &[]), &by), lines(&want));
    let by = [LabelKey::Stage, LabelKey::Operator];
    let sort = [("stage=1,operator=Sort", [7, 6])];
    assert_eq!(told(&query(&[], &["Sort"]), &by), lines(&sort));
    let selected = [("stage=", [7, 0]), ("stage=2", [1, 0])];
    assert_eq!(told(&query(&[], &["unknown"]), &[LabelKey::Stage]), lines(&selected));
    assert_eq!(told(&query(&[], &["Window"]), &[LabelKey::Stage]), lines(&[]));
}

/// What is not asked by operator is the store's own answer.
#[test]
fn the_rest_is_passed_on() {
    let store = store();
    let asked = query(&[LabelKey::Stage], &[]);
    let of_operators = ByOperator::new(&store);
    let pauses = of_operators.pauses(asked.range, &asked.selection).unwrap();
    assert_eq!(pauses, store.pauses(asked.range, &asked.selection).unwrap());
    assert_eq!(pauses.pauses.len(), 1);
    let (cut, gone) = of_operators.merge_largest(&asked, 3).unwrap();
    let (own, gone_there) = store.merge_largest(&asked, 3).unwrap();
    assert_eq!((cut.tree.nodes, gone), (own.tree.nodes, gone_there));
    let by_operator = query(&[LabelKey::Operator], &[]);
    let (cut, gone) = of_operators.merge_largest(&by_operator, 4).unwrap();
    assert_eq!(gone, of_operators.merge(&by_operator).unwrap().tree.nodes.len() - 4);
    assert_eq!(cut.tree.nodes.first().map(|root| root.total_count), Some(22));
    let refused = of_operators.pauses(asked.range, &query(&[], &["Sort"]).selection);
    assert!(matches!(refused, Err(StoreError::WithoutStacks)));
}

#[test]
fn sums_tell_the_codegen_stage_too() {
    let store = store();
    let tree = store.merge(&query(&[LabelKey::Stage], &[])).unwrap().tree;
    let brief =
        |sum: OperatorSum| (sum.value, sum.operator.name().into_owned(), sum.codegen, sum.count, sum.weight);
    let sums: Vec<_> = operator_sums(&tree, LabelKey::Stage).into_iter().map(brief).collect();
    let sum = |stage: &str, name: &str, codegen, count| {
        (stage.to_owned(), name.to_owned(), codegen, count, 10 * count)
    };
    for want in [
        sum("1", "Sort", Some(1), 7),
        sum("1", "Exchange (read)", Some(1), 2),
        sum("1", "WholeStageCodegen (1)", Some(1), 5),
        sum("2", "unknown", None, 1),
    ] {
        assert!(sums.contains(&want), "{want:?} of {sums:?}");
    }
    assert_eq!(sums.iter().map(|sum| sum.3).sum::<u64>(), 22, "{sums:?}");
}
