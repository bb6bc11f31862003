//! Stages and tasks with Spark's own figures, through the router.

use super::super::spark::tests::Fake;
use super::*;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, SparkFact, SparkFactKind,
    SparkSource, Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_store::{MemoryStore, MemoryStoreConfig, Store};
use std::time::Duration;

/// One task of stage 3.1 in the first window.
fn fill(store: &dyn Store) {
    let labels = [
        (LabelKey::App, "app-1"),
        (LabelKey::Role, "executor"),
        (LabelKey::Executor, "1"),
        (LabelKey::Stage, "3"),
        (LabelKey::StageAttempt, "1"),
        (LabelKey::Task, "77"),
        (LabelKey::ThreadClass, "task"),
    ];
    let labels = labels.iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(*key, *value));
    let frames = [Arc::new(Frame::new(FrameKind::JavaCompiled, "Main.run", ""))].into();
    let from = WallTime::from_millis(START * 1000);
    store.append(Window {
        range: TimeRange { from, until: from.plus(10 * SECOND) },
        rows: vec![Row {
            labels: Arc::new(labels.build()),
            stack: Arc::new(Stack { frames, end: StackEnd::Root }),
            kind: SampleKind::Cpu,
            count: 5,
            weight: 50_000_000,
        }],
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
}

fn store() -> FakeStore {
    let store = FakeStore::default();
    fill(&store);
    store
}

async fn answer(store: Arc<MemoryStore>, source: Option<Arc<Fake>>, path: &str) -> Value {
    let spark = source.map(|fake| fake as Arc<dyn SparkSource>);
    let state = ServeState { store, spark, ..state(FakeStore::default()) };
    let app = router(state, Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("{path}?app=app-1&{}", within(0, 10)))).await.json()
}

#[tokio::test]
async fn names_are_the_same_with_the_driver_gone() {
    let fake = Arc::new(Fake::default());
    let told = fake.stages("app-1", Duration::ZERO);
    let stage = told.value().and_then(|told| told.facts().next()).expect("a stage");
    let of = |kind, id: &str| SparkFact { kind, id: id.into(), ..stage.clone() };
    let sql = SparkFact { name: "select 1".into(), ..of(SparkFactKind::Sql, "7") };
    let removed = SparkFact {
        status: "REMOVED".into(),
        description: Some("killed <b>".into()),
        ended: Some(WallTime::from_millis(START * 1000)),
        ..of(SparkFactKind::Executor, "1")
    };
    let store = Arc::new(MemoryStore::new(MemoryStoreConfig::default()));
    fill(&*store);
    store.learn(&[stage, sql, removed]);
    let live = answer(store.clone(), Some(fake), "/api/v1/stages").await;
    let mut kept = answer(store.clone(), None, "/api/v1/stages").await;
    assert_eq!((&live["spark"]["state"], &kept["spark"]["state"]), (&json!("ready"), &json!("kept")));
    assert_eq!(kept["stages"][0]["spark"]["page"], "", "no server has it");
    kept["stages"][0]["spark"]["page"] = live["stages"][0]["spark"]["page"].clone();
    assert_eq!(kept["stages"], live["stages"]);
    assert_eq!(kept["spark"]["source"], live["spark"]["source"]);
    let tasks = answer(store.clone(), None, "/api/v1/tasks").await;
    assert_eq!(tasks["tasks"][0]["spark"], Value::Null, "tasks are not kept");
    assert_eq!(tasks["spark"]["says"], "Spark was not asked.");
    let executors = answer(store, None, "/api/v1/executors").await;
    let told = &executors["executors"][0]["spark"];
    assert_eq!((&told["status"], &told["reason"]), (&json!("REMOVED"), &json!("killed <b>")));
    assert_eq!(told["removed"], "2026-11-21T10:00:00.000Z");
}

async fn ask(path: &str) -> (Got, Vec<String>) {
    let fake = Arc::new(Fake::default());
    let state = ServeState { spark: Some(fake.clone()), ..state(store()) };
    let app = router(state, Access::LocalHostOnly, Router::new());
    let sign = if path.contains('?') { '&' } else { '?' };
    let got = send(app, request("GET", &format!("{path}{sign}{}", within(0, 10)))).await;
    let asked = fake.0.lock().unwrap().clone();
    (got, asked)
}

#[tokio::test]
async fn rows_carry_what_spark_says_beside_our_own() {
    let (got, asked) = ask("/api/v1/stages?app=app-1").await;
    let answer = got.json();
    assert_eq!(asked, ["app-1"]);
    assert_eq!(answer["stages"][0]["spark"]["name"], "collect at <b>");
    assert_eq!(answer["stages"][0]["spark"]["sql_id"], 7);
    assert_eq!(answer["stages"][0]["sampled"]["samples"], 5, "{answer}");
    assert_eq!(answer["spark"]["source"], "http://driver:4040");
    let (got, asked) = ask("/api/v1/tasks?app=app-1&stage=3").await;
    assert_eq!(asked, ["app-1 3 1"]);
    assert_eq!(got.json()["tasks"][0]["spark"]["duration_ms"], 9);
}

#[tokio::test]
async fn spark_is_left_alone_where_nobody_wants_it() {
    for path in ["/api/v1/stages?join=no", "/api/v1/tasks?join=no", "/api/v1/apps", "/api/v1/status"] {
        let (got, asked) = ask(path).await;
        assert!(asked.is_empty(), "{path}");
        if path.contains("join") {
            assert_eq!(got.json()["spark"]["state"], "not-asked");
        }
    }
    let (got, asked) = ask("/api/v1/stages?join=maybe").await;
    got.refused(400, "bad_parameter", Some("join"));
    assert!(asked.is_empty());
}

#[tokio::test]
async fn no_request_names_a_server() {
    for path in
        ["/api/v1/stages?spark_url=http://169.254.169.254", "/api/v1/tasks?spark_url=http://127.0.0.1:1"]
    {
        let (got, asked) = ask(path).await;
        got.refused(400, "unknown_parameter", Some("spark_url"));
        assert!(asked.is_empty());
    }
}
