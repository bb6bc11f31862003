use super::*;
use crate::plain::row_of;
use crate::{MemoryStore, MemoryStoreConfig};
use emberscope_model::{
    Detail, FrameKind, LabelSetBuilder, LedgerRow, LedgerSums, LostCounts, Node, Row, SampleKind,
    SparkFactKind, Stack, StackEnd, Tree, WallTime,
};

mod said;

fn fact(app: &str, kind: SparkFactKind, id: &str, refs: &[u32], begun: WallTime) -> SparkFact {
    let (begun, fetched) = (Some(begun), begun);
    SparkFact { app: app.into(), refs: refs.into(), begun, fetched, ..SparkFact::new(kind, id) }
}

/// Application a: stages 1 and 2 of query 12 (jobs 3, 4), 5 of a job without a query, 9 that nobody told of. Of b: stage 1 of
/// query 7.
fn store() -> MemoryStore {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    let from = WallTime::from_millis(1_700_000_000_000);
    let range = TimeRange { from, until: from.plus(Duration::from_secs(10)) };
    let rows = vec![
        row_of("a", "1", &["run", "sort"], 4),
        row_of("a", "2", &["run", "sort"], 3),
        row_of("a", "2", &["run"], 2),
        row_of("a", "5", &["run"], 6),
        row_of("a", "9", &["run"], 1),
        row_of("a", "", &["gc"], 8),
        row_of("b", "1", &["run"], 16),
        row_of("", "", &[], 32),
    ];
    let ledger = [("a", "1", 40), ("a", "2", 50), ("a", "9", 10), ("a", "", 80), ("b", "1", 160)].map(
        |(app, stage, cpu_ns)| {
            let labels = LabelSetBuilder::new().set(LabelKey::App, app).set(LabelKey::Stage, stage).build();
            line(labels, cpu_ns, range)
        },
    );
    store.append(Window {
        range,
        rows,
        ledger: ledger.into(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
    let of_a = |kind, id, refs: &[u32]| fact("a", kind, id, refs, from);
    assert!(store.learn(&[
        of_a(SparkFactKind::Stage, "1", &[3]),
        of_a(SparkFactKind::Stage, "2", &[4, 8]),
        of_a(SparkFactKind::Stage, "5", &[6]),
        of_a(SparkFactKind::Sql, "12", &[3, 4, 8]),
        fact("b", SparkFactKind::Stage, "1", &[0], from),
        fact("b", SparkFactKind::Sql, "7", &[0], from),
    ]));
    store
}

fn line(labels: LabelSet, cpu_ns: u64, seen: TimeRange) -> LedgerRow {
    let mut sums = LedgerSums::default();
    sums.accounts.cpu_ns = cpu_ns;
    LedgerRow { labels: Arc::new(labels), sums, seen }
}

fn query(group: &[LabelKey], conditions: &[(LabelKey, MatchOp)]) -> Query {
    let range = TimeRange { from: WallTime(0), until: WallTime(u64::MAX) };
    let matchers = conditions.iter().map(|(key, op)| Matcher { key: *key, op: op.clone() }).collect();
    let (selection, group) = (Selection { matchers }, group.to_vec());
    Query { range, selection, kind: SampleKind::Cpu, group, detail: Detail::default() }
}

fn is(key: LabelKey, values: &[&str]) -> (LabelKey, MatchOp) {
    (key, MatchOp::In(values.iter().map(|value| (*value).to_owned()).collect()))
}

fn is_not(key: LabelKey, value: &str) -> (LabelKey, MatchOp) {
    (key, MatchOp::NotIn(vec![value.to_owned()]))
}

/// `depth name self/total`, a line a node.
fn drawn(tree: &Tree) -> Vec<String> {
    let mut depths: Vec<usize> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        assert!(at == 0 || (node.parent as usize) < at, "a parent stands before its children");
        depths.push(if at == 0 { 0 } else { depths[node.parent as usize] + 1 });
    }
    let line = |(node, depth): (&Node, usize)| {
        format!("{depth} {} {}/{}", node.frame.name, node.self_count, node.total_count)
    };
    tree.nodes.iter().zip(depths).map(line).collect()
}

const A: (LabelKey, &[&str]) = (LabelKey::App, &["a"]);

#[test]
fn samples_stand_under_their_query_and_their_job() {
    let store = store();
    let store = ByJob::new(&store, None);
    let a = is(A.0, A.1);
    let tree = store.merge(&query(&[LabelKey::Sql], std::slice::from_ref(&a))).unwrap().tree;
    let want = [
        "0 total 0/24",
        "1 sql=(none) 0/14",
        "2 gc 8/8",
        "2 run 6/6",
        "1 sql=12 0/9",
        "2 run 2/9",
        "3 sort 7/7",
        "1 sql=unknown 0/1",
        "2 run 1/1",
    ];
    assert_eq!(drawn(&tree), want);
    let tree = store.merge(&query(&[LabelKey::SparkJob, LabelKey::Stage], &[a])).unwrap().tree;
    let labels: Vec<String> = drawn(&tree).into_iter().filter(|line| line.contains('=')).collect();
    let want = [
        "1 spark_job=(none) 0/8",
        "2 stage=(none) 0/8",
        "1 spark_job=3 0/4",
        "2 stage=1 0/4",
        "1 spark_job=4 0/5",
        "2 stage=2 0/5",
        "1 spark_job=6 0/6",
        "2 stage=5 0/6",
        "1 spark_job=unknown 0/1",
        "2 stage=9 0/1",
    ];
    assert_eq!(labels, want);
    // Of the whole node; what has no frame ends at its label.
    let tree = store.merge(&query(&[LabelKey::App, LabelKey::Sql], &[])).unwrap().tree;
    let labels: Vec<String> = drawn(&tree).into_iter().filter(|line| line.contains('=')).collect();
    let want = [
        "1 app=(none) 0/32",
        "2 sql=(none) 32/32",
        "1 app=a 0/24",
        "2 sql=(none) 0/14",
        "2 sql=12 0/9",
        "2 sql=unknown 0/1",
        "1 app=b 0/16",
        "2 sql=7 0/16",
    ];
    assert_eq!(labels, want);
    let (cut, gone) = store.merge_largest(&query(&[LabelKey::Sql], &[is(A.0, A.1)]), 3).unwrap();
    assert_eq!((cut.tree.nodes[0].total_count, gone), (24, 6));
}

#[test]
fn a_condition_is_one_on_stages() {
    let store = store();
    let store = ByJob::new(&store, None);
    let samples = |conditions: &[(LabelKey, MatchOp)]| {
        let summary = store.summary(&query(&[], &[&[is(A.0, A.1)], conditions].concat())).unwrap();
        summary.quality.samples
    };
    let regex = |text: &str| regex::Regex::new(&format!("^(?:{text})$")).unwrap();
    assert_eq!(samples(&[is(LabelKey::Sql, &["12"])]), 9);
    assert_eq!(samples(&[is_not(LabelKey::Sql, "12")]), 15);
    assert_eq!(samples(&[is(LabelKey::Sql, &["", "unknown"])]), 15);
    assert_eq!(samples(&[is(LabelKey::Sql, &["unknown"])]), 1);
    assert_eq!(samples(&[is_not(LabelKey::Sql, "unknown")]), 23);
    assert_eq!(samples(&[(LabelKey::Sql, MatchOp::Regex(regex("1.")))]), 9);
    assert_eq!(samples(&[(LabelKey::Sql, MatchOp::NotRegex(regex("1.|")))]), 1);
    assert_eq!(samples(&[is(LabelKey::SparkJob, &["3", "6"])]), 10);
    assert_eq!(samples(&[is(LabelKey::SparkJob, &["8"])]), 0, "job 4 ran it");
    assert_eq!(samples(&[is(LabelKey::Sql, &["12"]), is(LabelKey::Stage, &["2"])]), 5);
    assert_eq!(samples(&[is(LabelKey::Sql, &["7"])]), 0, "which is another application's");
    let totals = store.totals(&query(&[], &[is(A.0, A.1), is(LabelKey::SparkJob, &["4"])])).unwrap();
    assert_eq!(totals.iter().map(|total| total.count).sum::<u64>(), 5);
}

#[test]
fn a_number_of_several_applications_is_refused() {
    let store = store();
    let store = ByJob::new(&store, None);
    let refused = store.summary(&query(&[], &[is(LabelKey::Sql, &["12"])]));
    let Err(StoreError::OfWhichApp { key: LabelKey::Sql }) = refused else { panic!("{refused:?}") };
    let refused =
        store.ledger(query(&[], &[]).range, &query(&[], &[is_not(LabelKey::Sql, "12")]).selection, &[]);
    assert!(matches!(refused, Err(StoreError::OfWhichApp { .. })));
    // What leaves nothing out is no condition.
    let all = MatchOp::Regex(regex::Regex::new("^(?:.*)$").unwrap());
    assert_eq!(store.summary(&query(&[], &[(LabelKey::Sql, all)])).unwrap().quality.samples, 72);
}

#[test]
fn values_series_and_exact_sums_by_query() {
    let store = store();
    let store = ByJob::new(&store, None);
    let values = |query: &Query, key| -> Vec<(String, u64)> {
        let values = store.values(query, key).unwrap().into_iter();
        values.map(|known| (known.value.to_string(), known.count)).collect()
    };
    let named =
        |values: &[(&str, u64)]| values.iter().map(|(v, n)| ((*v).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(values(&query(&[], &[]), LabelKey::Sql), named(&[("7", 16), ("12", 9), ("unknown", 1)]));
    let of_12 = query(&[], &[is(A.0, A.1), is(LabelKey::Sql, &["12"])]);
    assert_eq!(values(&of_12, LabelKey::SparkJob), named(&[("4", 5), ("3", 4)]));
    assert_eq!(values(&of_12, LabelKey::Stage), named(&[("2", 5), ("1", 4)]));
    let all = query(&[], &[is(A.0, A.1)]);
    let lines = store.ledger(all.range, &all.selection, &[LabelKey::Sql]).unwrap();
    let sums = |line: &LedgerTotal| (line.labels[0].1.to_string(), line.sums.accounts.cpu_ns);
    assert_eq!(lines.iter().map(sums).collect::<Vec<_>>(), named(&[("", 80), ("12", 90), ("unknown", 10)]));
    let series = store.series(&all, Duration::from_secs(10), &[LabelKey::Sql]).unwrap();
    let points = |(labels, points): &LabelledSeries| (labels[0].1.to_string(), points[0].count);
    assert_eq!(series.iter().map(points).collect::<Vec<_>>(), named(&[("", 14), ("12", 9), ("unknown", 1)]));
    assert!(series.iter().all(|(labels, points)| labels.len() == 1 && points.len() == 1));
}

/// What does not name them is the store's own answer.
#[test]
fn the_rest_is_passed_on() {
    let store = store();
    let asked = query(&[LabelKey::Stage], &[is(A.0, A.1)]);
    let of_jobs = ByJob::new(&store, None);
    assert_eq!(drawn(&of_jobs.merge(&asked).unwrap().tree), drawn(&store.merge(&asked).unwrap().tree));
    assert_eq!(of_jobs.totals(&asked).unwrap().len(), store.totals(&asked).unwrap().len());
    assert_eq!(of_jobs.span(), store.span());
}

#[test]
fn an_applications_processes_are_of_its_run_on_nodes_that_know_no_more_than_its_id() {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    // The drivers of a and c say what they are runs of, a's executor is on another node; b's says nothing.
    let row = |app: &str, run: &str, count: u64| {
        let labels = LabelSetBuilder::new().set(LabelKey::App, app).set(LabelKey::AppRun, run).build();
        let frames = [Arc::new(Frame::new(FrameKind::JavaCompiled, "run", ""))].into();
        let stack = Arc::new(Stack { frames, end: StackEnd::Root });
        Row { labels: Arc::new(labels), stack, kind: SampleKind::Cpu, count, weight: 10 * count }
    };
    let from = WallTime::from_millis(1_700_000_000_000);
    let range = TimeRange { from, until: from.plus(Duration::from_secs(10)) };
    let slept = LabelSetBuilder::new().set(LabelKey::App, "c").set(LabelKey::AppRun, "weekly").build();
    store.append(Window {
        range,
        rows: vec![
            row("a", "nightly", 1),
            row("a", "", 4),
            row("b", "", 16),
            row("c", "", 64),
            row("", "", 256),
        ],
        ledger: vec![line(slept, 10, range)],
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
    let store = ByJob::new(&store, None);
    let samples = |condition| store.summary(&query(&[], &[condition])).unwrap().quality.samples;
    assert_eq!(samples(is(LabelKey::AppRun, &["nightly"])), 5);
    assert_eq!(samples(is(LabelKey::AppRun, &["nightly", "weekly"])), 69);
    assert_eq!(samples(is_not(LabelKey::AppRun, "nightly")), 336);
    assert_eq!(samples(is(LabelKey::AppRun, &[""])), 272);
    assert_eq!(samples(is(LabelKey::AppRun, &["monthly"])), 0);
    let labels = |query: Query| -> Vec<String> {
        let tree = store.merge(&query).unwrap().tree;
        drawn(&tree).into_iter().filter(|line| line.contains('=')).collect()
    };
    let want = ["1 app_run=(none) 0/272", "1 app_run=nightly 0/5", "1 app_run=weekly 0/64"];
    assert_eq!(labels(query(&[LabelKey::AppRun], &[])), want);
    let series = store.series(&query(&[], &[]), Duration::from_secs(10), &[LabelKey::AppRun]).unwrap();
    assert_eq!(series.iter().map(|(_, points)| points[0].count).sum::<u64>(), 341);
    let values = store.values(&query(&[], &[]), LabelKey::AppRun).unwrap();
    assert_eq!(values.iter().map(|value| &*value.value).collect::<Vec<_>>(), ["nightly"]);
}
