//! The runs of jobs: which applications are one's, what each used, and where that changed.

use super::*;
use crate::Prices;
use emberscope_model::{LabelKey, LabelSet, Row, SampleKind, SparkFact, SparkFactKind, WallTime};
use emberscope_store::{MemoryStore, Store};
use jobs::{RUN, labels, line, row, thread, window};

fn executor(id: &str, name: &str, user: &str) -> LabelSet {
    use LabelKey::{App, AppName, Role, User};
    labels(&[(App, id), (AppName, name), (Role, "executor"), (User, user)])
}

/// Runs of `etl`, a window each, of whose tasks each used so many milliseconds.
fn store(cpu: &[u64]) -> MemoryStore {
    let store = MemoryStore::new(Default::default());
    for (number, ms) in cpu.iter().enumerate() {
        let jvm = executor(&format!("app-{number}"), "etl", "ann");
        let task = |index: &str| thread(&jvm, "task", "1", index, index);
        let gc = thread(&jvm, "gc", "", "", "");
        let rows = vec![row(&task("0"), &[RUN], 40), row(&gc, &[RUN], 10)];
        let from = number as u64 * 10_000;
        let ledger = vec![
            line(&task("0"), *ms, from + 1_000, from + 5_000),
            line(&task("1"), *ms, from + 1_500, from + 6_500),
            line(&gc, 500, from, from + 9_000),
        ];
        store.append(window(number as u64, rows, ledger, Vec::new()));
    }
    store
}

async fn ask(store: MemoryStore, query: &str) -> Got {
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/runs{query}"))).await
}

fn rows(got: &Got) -> Vec<Value> {
    got.json()["runs"].as_array().expect("runs").clone()
}

#[tokio::test]
async fn runs_of_all_that_is_kept_in_their_order() {
    let got = ask(store(&[1000, 2000, 3000]), "?job=etl").await;
    let rows = rows(&got);
    let brief = |row: &Value| {
        let exact = |of: &Value| of["exact"]["cpu_seconds"].clone();
        json!([row["app"], row["run"], exact(row), exact(&row["tasks"]), row["wall_seconds"], row["stages"]])
    };
    let want = [
        json!(["app-0", -3, 2.5, 2.0, 9.0, 1]),
        json!(["app-1", -2, 4.5, 4.0, 9.0, 1]),
        json!(["app-2", -1, 6.5, 6.0, 9.0, 1]),
    ];
    assert_eq!(rows.iter().map(brief).collect::<Vec<_>>(), want);
    let last = &rows[2];
    assert_eq!((&last["sampled"]["samples"], &last["tasks"]["sampled"]["samples"]), (&json!(50), &json!(40)));
    assert_eq!(
        (&last["user"], &last["running"], &last["changed"]),
        (&json!("ann"), &json!(false), &Value::Null)
    );
    let ended = emberscope_model::WallTime::from_millis((START + 29) * 1000).to_string();
    assert_eq!((&last["ended"], &last["waited"]), (&json!(ended), &Value::Null));
    // The last ones where there are too many, and those of a time.
    let got = ask(store(&[1000, 2000, 3000]), "?limit=2").await.json();
    assert_eq!((&got["count"], &got["cut"], &got["runs"][0]["app"]), (&json!(3), &json!(1), &json!("app-1")));
    let got = ask(store(&[1000, 2000, 3000]), &format!("?{}", within(0, 20))).await.json();
    assert_eq!((&got["count"], &got["runs"][1]["run"]), (&json!(2), &json!(-1)));
}

#[tokio::test]
async fn jobs_as_metrics() {
    let app = router(state(store(&[1000, 2000, 3000])), Access::LocalHostOnly, Router::new());
    let got = send(app.clone(), request("GET", "/api/v1/runs/metrics")).await;
    let text = got.text().to_owned();
    let told: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let of =
        |name: &str, value: &str| format!("emberscope_job_{name}{{app_run=\"etl\",user=\"ann\"}} {value}");
    let end = (START + 29).to_string();
    let want = [
        of("last_run_cpu_seconds", "6.5"),
        of("last_run_end_timestamp_seconds", &end),
        of("last_run_wall_seconds", "9"),
        of("runs", "3"),
        of("usual_cpu_seconds", "3.5"),
        of("usual_wall_seconds", "9"),
    ];
    assert_eq!(told, want, "{text}");
    let none = send(app, request("GET", "/api/v1/runs/metrics?job=nobody")).await;
    none.refused(404, "unknown_job", Some("job"));
}

#[tokio::test]
async fn what_executors_reserved_costs_by_the_prices() {
    let store = store(&[1000, 2000]);
    let at = |second| Some(WallTime::from_millis((START + second) * 1000));
    let of_app = |fact: SparkFact| SparkFact { app: "app-1".into(), fetched: at(15).unwrap(), ..fact };
    let executor = SparkFact { count: 4, begun: at(10), ..SparkFact::new(SparkFactKind::Executor, "1") };
    let memory = SparkFact::setting("spark.executor.memory", "2g").unwrap();
    assert!(store.learn(&[of_app(executor), of_app(memory)]));
    let prices = Prices { core_hour: Some(360.0), gib_hour: Some(36.0) };
    let app = router(ServeState { prices, ..state(store) }, Access::LocalHostOnly, Router::new());
    let got = send(app, request("GET", "/api/v1/runs?job=etl")).await;
    let rows = rows(&got);
    assert_eq!((&rows[0]["reserved"], &rows[0]["settings"]), (&Value::Null, &json!({})));
    // It was last seen after 9 s.
    let reserved = &rows[1]["reserved"];
    assert_eq!(reserved["executors"], 1);
    for (figure, want) in [("core_hours", 0.01), ("gib_hours", 0.005), ("cost", 3.78)] {
        let figure = reserved[figure].as_f64().unwrap();
        assert!((figure - want).abs() < 1e-9, "{reserved}");
    }
    assert_eq!(rows[1]["settings"], json!({ "spark.executor.memory": "2g" }));
}

#[tokio::test]
async fn a_job_is_a_name_and_a_user() {
    let store = store(&[1000]);
    let of = |id: &str, name: &str, user: &str| {
        row(&thread(&executor(id, name, user), "task", "1", "0", "0"), &[RUN], 5)
    };
    let waits = |row: Row| Row { kind: SampleKind::OffCpu, ..row };
    let more =
        vec![of("app-1", "etl", "bob"), of("app-2", "report", "ann"), waits(of("app-2", "report", "ann"))];
    store.append(window(1, more, Vec::new(), Vec::new()));
    // A driver that is not known yet is no run.
    let early = of("unknown", "Main", "ann");
    store.append(window(2, vec![of("app-3", "etl", "ann"), early], Vec::new(), Vec::new()));
    let got = ask(store, "").await;
    let brief = |row: &Value| json!([row["app_name"], row["user"], row["app"], row["run"]]);
    let want = [
        json!(["etl", "ann", "app-0", -3]),
        json!(["etl", "ann", "app-3", -1]),
        json!(["etl", "bob", "app-1", -2]),
        json!(["report", "ann", "app-2", -1]),
    ];
    assert_eq!(rows(&got).iter().map(brief).collect::<Vec<_>>(), want);
    let report = &rows(&got)[3];
    let by = &report["waited"]["by"];
    assert_eq!(by.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!((&report["exact"], hundredths(&by["other"])), (&Value::Null, json!(0.05)));
}

#[tokio::test]
async fn runs_of_a_job_may_have_names_of_their_own() {
    let store = store(&[1000]);
    let of = |id: &str, name: &str, run: &str, user: &str| {
        use LabelKey::{App, AppName, AppRun, Role, User};
        let jvm = [(App, id), (AppName, name), (AppRun, run), (Role, "executor"), (User, user)];
        row(&thread(&labels(&jvm), "task", "1", "0", "0"), &[RUN], 5)
    };
    store.append(window(1, vec![of("app-1", "etl-11-25", "etl", "ann")], Vec::new(), Vec::new()));
    // An executor on a node that saw no driver has no name.
    let rows_of = vec![of("app-2", "etl-11-26", "etl", "ann"), of("app-2", "", "", "spark")];
    store.append(window(2, rows_of, Vec::new(), Vec::new()));
    let got = ask(store, "?job=etl").await;
    let brief =
        |row: &Value| json!([row["job"], row["app_name"], row["app"], row["run"], row["sampled"]["samples"]]);
    let want = [
        json!(["etl", "etl", "app-0", -3, 50]),
        json!(["etl", "etl-11-25", "app-1", -2, 5]),
        json!(["etl", "etl-11-26", "app-2", -1, 10]),
    ];
    assert_eq!(rows(&got).iter().map(brief).collect::<Vec<_>>(), want);
}

#[tokio::test]
async fn the_run_from_which_on_more_is_used_is_marked() {
    let before = [1000, 1010, 990, 1005, 995, 1002, 998];
    let after = [1300, 1310, 1290, 1305, 1295, 1302];
    let runs = [&before[..], &after[..]].concat();
    let metrics = ask(store(&runs), "/metrics?job=etl").await;
    let ratio = metrics.text().lines().find_map(|line| line.strip_prefix("emberscope_job_change_ratio{"));
    let ratio = ratio.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).expect("a ratio");
    assert!((ratio - 1.24).abs() < 0.01, "{ratio}");
    let got = ask(store(&runs), "?job=etl").await;
    let marked: Vec<Value> = rows(&got).into_iter().filter(|row| !row["changed"].is_null()).collect();
    assert_eq!(marked.len(), 1, "{marked:?}");
    let change = &marked[0]["changed"];
    assert_eq!(marked[0]["app"], "app-7");
    let near = |key: &str, want: f64| (change[key].as_f64().expect("a figure") - want).abs() < 0.01;
    assert!(near("before_seconds", 2.5) && near("after_seconds", 3.1) && near("chance", 0.005), "{change}");
}

#[tokio::test]
async fn what_is_no_job_is_told() {
    let message = ask(store(&[1000]), "?job=elt").await.refused(404, "unknown_job", Some("job"));
    assert_eq!(message, "There is no run of a job `elt`; there are: etl.");
    ask(store(&[1000]), "?type=off-cpu").await.refused(400, "bad_parameter", Some("type"));
    let nothing = ask(store(&[]), "").await.json();
    assert_eq!((&nothing["runs"], &nothing["note"]), (&json!([]), &json!("No window has closed yet.")));
}
