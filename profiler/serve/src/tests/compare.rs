//! Two runs compared: the right one has a cached stage first, so that its stages have other numbers, and one method that takes longer.

use super::*;
use emberscope_model::{
    FrameKind, LabelKey, LabelSet, LedgerRow, Row, SparkFact, SparkFactKind, WallTime, Window,
};
use emberscope_store::{MemoryStore, Store};
use jobs::{RUN, labels, line, row, thread, window};

const SLOW: (FrameKind, &str) = (FrameKind::JavaCompiled, "Job.slow");
const FAST: (FrameKind, &str) = (FrameKind::JavaCompiled, "Job.fast");

fn executor(app: &str) -> LabelSet {
    use LabelKey::{App, AppName, Role};
    labels(&[(App, app), (AppName, "etl"), (Role, "executor")])
}

/// Eight tasks of a stage: milliseconds of each, less or more by its index, and samples of the two methods.
fn stage(app: &str, id: &str, ms: u64, samples: [u64; 2], from: u64) -> (Vec<Row>, Vec<LedgerRow>) {
    let jvm = executor(app);
    let (mut rows, mut ledger) = (Vec::new(), Vec::new());
    for index in 0..8_u64 {
        let text = index.to_string();
        let task = thread(&jvm, "task", id, &text, &format!("{id}{text}"));
        // Partitions are not alike; in both runs in the same way.
        ledger.push(line(&task, ms * (index + 1) / 4, from + 1_000, from + 9_000));
        for (method, count) in [FAST, SLOW].into_iter().zip(samples) {
            if count > 0 {
                rows.push(row(&task, &[RUN, method], count));
            }
        }
    }
    (rows, ledger)
}

fn fact(app: &str, kind: SparkFactKind, id: &str, name: &str, refs: &[u32]) -> SparkFact {
    let at = WallTime::from_millis(START * 1000 + 5_000);
    SparkFact {
        app: app.into(),
        kind,
        id: id.into(),
        attempt: 0,
        name: name.into(),
        description: None,
        status: "COMPLETE".into(),
        refs: refs.into(),
        count: 8,
        executor_cpu_ns: 0,
        deserialize_cpu_ns: 0,
        run_time_ms: 0,
        begun: Some(at),
        ended: Some(at),
        source: "http://driver:4040".into(),
        fetched: at,
    }
}

/// `slow` is how long a task of the right run's second stage takes, and its samples in the slow method.
fn store(slow: (u64, u64), told: bool) -> MemoryStore {
    let store = MemoryStore::new(Default::default());
    let of = |parts: Vec<(Vec<Row>, Vec<LedgerRow>)>, number: u64| -> Window {
        let (rows, ledger): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        window(number, rows.concat(), ledger.concat(), Vec::new())
    };
    store.append(of(vec![stage("app-1", "0", 400, [50, 0], 0), stage("app-1", "1", 800, [50, 50], 0)], 0));
    let right = vec![
        stage("app-2", "0", 80, [5, 0], 10_000),
        stage("app-2", "1", 400, [50, 0], 10_000),
        stage("app-2", "2", slow.0, [50, slow.1], 10_000),
    ];
    store.append(of(right, 1));
    if told {
        use SparkFactKind::{Sql, Stage};
        let left = [
            fact("app-1", Stage, "0", "map at Job.scala:10", &[0]),
            fact("app-1", Stage, "1", "save at Job.scala:20", &[1]),
        ];
        let right = [
            fact("app-2", Stage, "0", "cache at Job.scala:9", &[0]),
            // A line was added above.
            fact("app-2", Stage, "1", "map at Job.scala:11", &[1]),
            fact("app-2", Stage, "2", "save at Job.scala:21", &[2]),
            fact("app-2", Sql, "5", "save at Job.scala:21", &[2]),
        ];
        assert!(store.learn(&left) && store.learn(&right));
        assert!(store.learn(&[fact("app-1", Sql, "4", "save at Job.scala:20", &[1])]));
        let setting = |app: &str, name: &str, value: &str| {
            let setting = SparkFact::setting(name, value).expect("it is kept");
            SparkFact { app: app.into(), fetched: WallTime::from_millis(START * 1000 + 5_000), ..setting }
        };
        assert!(store.learn(&[
            setting("app-1", "spark.sql.shuffle.partitions", "200"),
            setting("app-1", "spark.task.cpus", "1"),
            setting("app-2", "spark.sql.shuffle.partitions", "400"),
            setting("app-2", "spark.task.cpus", "1"),
            setting("app-2", "spark.executor.memory", "4g"),
        ]));
    }
    store
}

async fn ask(store: MemoryStore, query: &str) -> Got {
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/compare?{query}"))).await
}

const BOTH: &str = "left.app=etl&left.run=-2&right.app=etl&right.run=-1";

#[tokio::test]
async fn stages_are_put_side_by_side_by_what_they_are() {
    let body = ask(store((960, 80), true), BOTH).await.json();
    let brief = |row: &Value| {
        json!([row["left_stage"], row["right_stage"], row["only"], row["cpu"]["significant"], row["name"]])
    };
    let rows = body["stages"]["rows"].as_array().expect("stages");
    let want = [
        json!(["1", "2", null, true, "save at Job.scala:21"]),
        json!([null, "0", "right", true, "cache at Job.scala:9"]),
        json!(["0", "1", null, false, "map at Job.scala:11"]),
    ];
    assert_eq!(rows.iter().map(brief).collect::<Vec<_>>(), want);
    // 800 ms times 36/4 against 960 times that.
    let cpu = &rows[0]["cpu"];
    assert_eq!(
        (&cpu["left_seconds"], &cpu["right_seconds"], &cpu["source"]),
        (&json!(7.2), &json!(8.64), &json!("ledger"))
    );
    let query = &body["queries"]["rows"][0];
    assert_eq!(
        (&query["left_execution"], &query["right_execution"], &query["only"]),
        (&json!(4), &json!(5), &Value::Null)
    );
    assert_eq!((&query["cpu"]["right_seconds"], &query["plan_changed"]), (&json!(8.64), &Value::Null));
    assert_eq!(body["whole"]["cpu"]["right_seconds"], json!(12.96));
    let method = &body["methods"]["rows"][0];
    assert_eq!(
        (&method["name"], &method["significant"], &body["significant"]),
        (&json!("Job.slow"), &json!(true), &json!(true))
    );
    assert_eq!(
        (&body["left"]["app"], &body["right"]["unnamed_stages"], &body["judged"]),
        (&json!("app-1"), &json!(0), &Value::Null)
    );
    let settings = [
        json!({ "name": "spark.executor.memory", "left": null, "right": "4g" }),
        json!({ "name": "spark.sql.shuffle.partitions", "left": "200", "right": "400" }),
    ];
    assert_eq!(body["settings"], json!(settings));
}

#[tokio::test]
async fn what_grew_by_more_than_it_may_fails() {
    let body = ask(store((1200, 130), true), &format!("{BOTH}&fail_over=10%25")).await.json();
    let failed = |body: &Value| -> Vec<Value> {
        let checked = body["judged"]["checked"].as_array().expect("checked").iter();
        checked.filter(|row| row["failed"] == true).map(|row| row["of"].clone()).collect()
    };
    assert_eq!(failed(&body), ["whole", "query", "stage"]);
    assert_eq!(
        (&body["judged"]["failed"], body["judged"]["checked"].as_array().map(Vec::len)),
        (&json!(3), Some(4))
    );
    let same = ask(store((800, 50), true), &format!("{BOTH}&fail_over=10")).await.json();
    assert_eq!((failed(&same), &same["judged"]["failed"]), (Vec::new(), &json!(0)));
    for bad in ["x", "-1", "", "1e9", "NaN"] {
        ask(store((800, 50), true), &format!("{BOTH}&fail_over={bad}")).await.refused(
            400,
            "bad_parameter",
            Some("fail_over"),
        );
    }
}

#[tokio::test]
async fn without_sparks_words_the_order_holds_and_is_said() {
    let body = ask(store((960, 80), false), BOTH).await.json();
    assert_eq!((&body["left"]["unnamed_stages"], &body["right"]["unnamed_stages"]), (&json!(2), &json!(3)));
    assert_eq!((&body["queries"]["count"], &body["stages"]["count"]), (&json!(0), &json!(3)));
    assert_eq!(body["settings"], json!([]));
    let only = body["stages"]["rows"].as_array().expect("stages").iter().filter(|row| row["only"] == "right");
    assert_eq!(only.count(), 1);
}

#[tokio::test]
async fn a_run_is_one_application() {
    // An id needs no time, however long ago it ran.
    let body = ask(store((960, 80), true), "left.app=app-1&right.app=app-2&limit=1").await.json();
    assert_eq!((&body["stages"]["count"], &body["stages"]["cut"]), (&json!(3), &json!(2)));
    let shares = &body["stages"]["rows"][0]["cpu"];
    assert!((shares["left_share"].as_f64().expect("a share") - 7.2 / 10.8).abs() < 1e-9, "{shares}");
    assert_eq!(body["whole"]["times"], Value::Null, "times stand beside the CPU time");
    let run_delay =
        body["whole"]["run_delay"]["right_seconds"].as_f64().expect("of three stages of eight tasks");
    assert!((run_delay - 2.4).abs() < 1e-9, "{run_delay}");
    ask(store((960, 80), true), "left.app=etl&right.app=app-2").await.refused(
        409,
        "ambiguous_app",
        Some("app"),
    );
    ask(store((960, 80), true), "left.app=app-1").await.refused(400, "bad_parameter", Some("app"));
    ask(store((960, 80), true), &format!("{BOTH}&type=alloc")).await.refused(
        400,
        "bad_parameter",
        Some("type"),
    );
    ask(store((960, 80), true), "left.app=app-1&right.app=app-2&stage=9")
        .await
        .refused(404, "no_tasks", None);
}
