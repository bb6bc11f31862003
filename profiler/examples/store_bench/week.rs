//! A week of a node's store, for the page: `bench page --week` looks for yesterday's longest query in it.
//!
//! Every hour but the last two an application of twenty minutes: 12 queries, one behind the other, each a stage of four tasks
//! on four cores at 99 Hz, whose stacks end in the generated code of its plan's operators, with Spark's names and plans beside
//! them. The same each time, but for the clock: it ends now. Out: a data directory. Windows become coarser with age as by default.

use super::hour::Random;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, LostCounts, PlanNode, Row, SampleKind, SparkFact,
    SparkFactKind, SparkPlan, Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_store::{DiskStore, DiskStoreConfig, RollUp, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Days after which windows become so many seconds long: `rollup-1m-age`, `rollup-10m-age`.
const ROLL_UPS: [(u32, u64); 2] = [(2, 60), (7, 600)];
const HOURS: u64 = 7 * 24;
/// Without an application, at the end.
const QUIET_HOURS: u64 = 2;
const WINDOW: Duration = Duration::from_secs(10);
/// Windows of a query; the third of each application takes twice as many.
const QUERY_WINDOWS: u64 = 9;
const QUERIES: u32 = 12;
const CORES: u64 = 4;
const STACKS: u64 = 300;
const PERIOD: u64 = 10_101_010;
/// Samples of a core in a window.
const TICKS: u64 = 990;
/// The operators' methods, and how many of ten stacks end below each.
const METHODS: [(&str, u64); 4] = [
    ("1.scan_nextBatch_0", 2),
    ("1.hashAgg_doAggregateWithKeys_0", 3),
    ("2.sort_addToSorter_0", 3),
    ("2.smj_findNextJoinRows_0", 2),
];

/// The stacks of a query.
fn stacks(random: &mut Random) -> Vec<Arc<Stack>> {
    let frame = |name: String| Arc::new(Frame::new(FrameKind::JavaCompiled, name, ""));
    let generated = |method: &str| {
        let (class, method) = method.split_once('.').unwrap_or_default();
        let package =
            "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage";
        frame(format!("{package}{class}.{method}"))
    };
    let task: Vec<_> =
        (0..25).map(|depth| frame(format!("org.apache.spark.executor.Part{depth}.run"))).collect();
    let methods: Vec<_> =
        METHODS.iter().flat_map(|(name, parts)| (0..*parts).map(|_| generated(name))).collect();
    let stack = |random: &mut Random| {
        let method = methods.get(random.below(10) as usize).cloned();
        let below = (0..5 + random.below(30)).map(|_| {
            let of = random.below(2_000);
            frame(format!("org.apache.spark.sql.part{}.Class{of}.method{}", of % 40, of % 7))
        });
        let frames = task.iter().cloned().chain(method).chain(below).collect();
        Arc::new(Stack { frames, end: StackEnd::Root })
    };
    (0..STACKS).map(|_| stack(random)).collect()
}

fn labels(app: &str, stage: u32, task: u64) -> Arc<LabelSet> {
    let words = [
        (LabelKey::App, app.to_owned()),
        (LabelKey::AppName, "hourly sales".to_owned()),
        (LabelKey::Role, "executor".to_owned()),
        (LabelKey::Executor, "1".to_owned()),
        (LabelKey::Node, "node-1".to_owned()),
        (LabelKey::Process, "java".to_owned()),
        (LabelKey::Stage, stage.to_string()),
        (LabelKey::StageAttempt, "0".to_owned()),
        (LabelKey::Task, task.to_string()),
        (LabelKey::TaskIndex, (task % CORES).to_string()),
        (LabelKey::TaskAttempt, "0".to_owned()),
        (LabelKey::ThreadClass, "task".to_owned()),
    ];
    Arc::new(words.into_iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(key, value)).build())
}

fn plan() -> Result<SparkPlan, String> {
    let nodes = "7 1 Scan parquet sales\n6 1 HashAggregate\n5 - Exchange\n4 2 Sort\n3 2 SortMergeJoin\n1 - AdaptiveSparkPlan\n0 - Execute";
    let node = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let id = words.next()?.parse().ok()?;
        Some(PlanNode { id, codegen: words.next()?.parse().ok(), name: words.next()?.into() })
    };
    let edges = vec![(1, 0), (3, 1), (4, 3), (5, 4), (6, 5), (7, 6)];
    SparkPlan::new(nodes.lines().filter_map(node).collect(), edges).map_err(|error| error.to_string())
}

/// What Spark said of a query that is one job and one stage.
fn facts(app: &str, query: u32, range: TimeRange) -> Result<[SparkFact; 3], String> {
    let fact = |kind, name: String| SparkFact {
        app: app.into(),
        name: name.into(),
        status: "COMPLETE".into(),
        refs: [query].into(),
        count: CORES,
        begun: Some(range.from),
        ended: Some(range.until),
        source: "http://driver:4040".into(),
        fetched: range.until,
        ..SparkFact::new(kind, query.to_string())
    };
    let sql = fact(SparkFactKind::Sql, format!("sales of part {query}"));
    let stage = fact(SparkFactKind::Stage, format!("count at Sales.scala:{query}"));
    Ok([SparkPlan::fact(Ok(&plan()?), &sql), stage, sql])
}

fn window(random: &mut Random, range: TimeRange, labels: &[Arc<LabelSet>], stacks: &[Arc<Stack>]) -> Window {
    let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for at in 0..labels.len() {
        for _ in 0..TICKS {
            // Small numbers oftener than large ones.
            let drawn = random.below(STACKS) * random.below(STACKS) / STACKS;
            *counts.entry((at, drawn as usize)).or_default() += 1;
        }
    }
    let row = |((at, stack), count): ((usize, usize), u64)| {
        let (labels, stack) = (labels.get(at)?.clone(), stacks.get(stack)?.clone());
        Some(Row { labels, stack, kind: SampleKind::Cpu, count, weight: count * PERIOD })
    };
    Window {
        range,
        rows: counts.into_iter().filter_map(row).collect(),
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

/// Writes the week.
pub fn write(dir: &Path) -> Result<(), String> {
    let day = Duration::from_secs(86_400);
    let roll_ups =
        ROLL_UPS.map(|(after, window)| RollUp { after: day * after, window: Duration::from_secs(window) });
    let config = DiskStoreConfig { roll_ups: roll_ups.into(), ..DiskStoreConfig::new(dir.join("store")) };
    let store = DiskStore::open(config).map_err(|error| error.to_string())?;
    let mut random = Random(7);
    let all: Vec<Vec<Arc<Stack>>> = (0..QUERIES).map(|_| stacks(&mut random)).collect();
    let first = WallTime::now().minus(day * 7).floor(Duration::from_secs(3600));
    for hour in 0..HOURS - QUIET_HOURS {
        let app = format!("app-{hour:06}");
        let mut at = first.plus(Duration::from_secs(3600) * hour as u32);
        for (query, stacks) in (0..QUERIES).zip(&all) {
            let (begun, windows) = (at, if query == 2 { 2 * QUERY_WINDOWS } else { QUERY_WINDOWS });
            let tasks = (0..CORES).map(|core| labels(&app, query, u64::from(query) * CORES + core));
            let tasks: Vec<_> = tasks.collect();
            for _ in 0..windows {
                let range = TimeRange { from: at, until: at.plus(WINDOW) };
                store.append(window(&mut random, range, &tasks, stacks));
                at = range.until;
            }
            if !store.learn(&facts(&app, query, TimeRange { from: begun, until: at })?) {
                return Err("what Spark said is not taken".to_owned());
            }
        }
    }
    store.settle();
    let disk = store.disk().unwrap_or_default();
    println!("the week: {} blocks, {} bytes", disk.blocks, disk.bytes);
    Ok(())
}
