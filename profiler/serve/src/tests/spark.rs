//! Stages and tasks with Spark's own figures, through the router.

use super::super::spark::tests::Fake;
use super::*;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd, TimeRange,
    WallTime, Window,
};
use emberscope_store::Store;

/// One task of stage 3.1 in the first window.
fn store() -> FakeStore {
    let labels = [
        (LabelKey::App, "app-1"),
        (LabelKey::Role, "executor"),
        (LabelKey::Stage, "3"),
        (LabelKey::StageAttempt, "1"),
        (LabelKey::Task, "77"),
        (LabelKey::ThreadClass, "task"),
    ];
    let labels = labels.iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(*key, *value));
    let frames = [Arc::new(Frame::new(FrameKind::JavaCompiled, "Main.run", ""))].into();
    let from = WallTime::from_millis(START * 1000);
    let store = FakeStore::default();
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
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
    store
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
