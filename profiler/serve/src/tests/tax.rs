//! The tax: its parts sum, come from where they say, and are of the time that was asked for.

use super::*;

async fn ask(with_ledger: bool, query: &str) -> Got {
    let app = router(state(jobs::store(with_ledger)), Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/tax?{query}&{}", within(0, 30)))).await
}

fn near(value: &Value, want: f64) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((got - want).abs() < 1e-9, "{got} instead of {want}");
}

fn sum(rows: &Value, key: &str) -> f64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_f64().unwrap()).sum()
}

fn class<'a>(rows: &'a Value, name: &str) -> &'a Value {
    rows.as_array().unwrap().iter().find(|row| row["thread_class"] == name).unwrap()
}

#[tokio::test]
async fn its_parts_sum_to_the_total() {
    for (with_ledger, app) in [(true, "app-1"), (false, "app-1"), (true, "app-2")] {
        let body = ask(with_ledger, &format!("app={app}")).await.json();
        let total = &body["total"];
        for key in ["cpu_seconds", "user_seconds", "system_seconds", "sampled_cpu_seconds"] {
            near(&total[key], sum(&body["classes"], key));
            let of_processes: f64 =
                body["processes"].as_array().unwrap().iter().map(|p| p["total"][key].as_f64().unwrap()).sum();
            near(&total[key], of_processes);
            for process in body["processes"].as_array().unwrap() {
                near(&process["total"][key], sum(&process["classes"], key));
            }
        }
        near(&json!(sum(&body["classes"], "share")), 1.0);
        let user = total["user_seconds"].as_f64().unwrap();
        near(&total["cpu_seconds"], user + total["system_seconds"].as_f64().unwrap());
    }
}

#[tokio::test]
async fn by_the_ledger_it_is_exact() {
    let body = ask(true, "app=app-1").await.json();
    assert_eq!((&body["source"], &body["stage"]), (&json!("ledger"), &Value::Null));
    let cpu = 24.166 + 0.25 + 0.5 + 4.05 + 0.1 + 0.7;
    near(&body["total"]["cpu_seconds"], cpu);
    assert_eq!(body["total"]["cpu_error"], Value::Null);
    // All twelve, and what carried no class.
    let classes = body["classes"].as_array().unwrap();
    assert_eq!((classes.len(), &classes[12]["thread_class"]), (13, &Value::Null));
    assert_eq!((&classes[12]["samples"], &classes[12]["cpu_seconds"]), (&json!(3), &json!(0.0)));
    let gc = class(&body["classes"], "gc");
    near(&gc["cpu_seconds"], 4.05);
    near(&gc["system_seconds"], 4.05 / 4.0);
    near(&gc["share"], 4.05 / cpu);
    assert_eq!(
        (&gc["share_error"], &gc["user_error"], &gc["samples"]),
        (&Value::Null, &Value::Null, &json!(404))
    );
    near(&gc["sampling_error"], 1.0 / 404f64.sqrt());
    let rpc = class(&body["classes"], "rpc");
    assert_eq!((&rpc["cpu_seconds"], &rpc["share"], &rpc["samples"]), (&json!(0.0), &json!(0.0), &json!(0)));
    // Two JVMs; Python beside them.
    let pids: Vec<_> = body["processes"].as_array().unwrap().iter().map(|p| p["pid"].clone()).collect();
    assert_eq!(pids, [11, 13]);
    assert_eq!(body["processes"][0]["executor"], "1");
    assert_eq!(
        body["beside"],
        json!([{ "app": "app-1", "app_name": "etl", "cpu_seconds": 0.25, "executor": "1", "node": "n1", "pid": 12,
                 "process": "python3", "role": "python", "source": "samples", "samples": 25, "sampling_error": 0.2 }])
    );
    let one = ask(true, "app=app-1&executor=2").await.json();
    near(&one["total"]["cpu_seconds"], 0.7);
}

#[tokio::test]
async fn without_the_ledger_it_is_of_samples_with_their_error() {
    let body = ask(true, "app=app-2").await.json();
    assert_eq!(body["source"], "samples");
    near(&body["total"]["cpu_seconds"], 1.0);
    near(&body["total"]["cpu_error"], 0.1);
    let task = class(&body["classes"], "task");
    near(&task["cpu_seconds"], 0.8);
    near(&task["user_seconds"], 0.6);
    near(&task["system_seconds"], 0.2);
    near(&task["system_error"], 1.0 / 20f64.sqrt());
    near(&task["share"], 0.8);
    near(&task["share_error"], (0.8f64 * 0.2 / 100.0).sqrt());
    assert_eq!(task["source"], "samples");
    let node = ask(true, "").await.json();
    assert_eq!(node["source"], "mixed", "the node has JVMs of both kinds");
    assert!(node["total"]["cpu_error"].as_f64().unwrap() < 0.01);
}

#[tokio::test]
async fn a_stages_tax_is_that_of_its_time_and_its_executors() {
    let body = ask(true, "app=app-1&stage=3").await.json();
    // The window before, where the same JVM collected garbage, is not in it; nor is the other executor.
    assert_eq!(body["range"]["from"], "2026-11-21T10:00:10.000Z");
    assert_eq!(body["windows"], 1);
    near(&body["total"]["cpu_seconds"], 24.166 + 0.25 + 0.5 + 4.0 + 0.1);
    assert_eq!(body["processes"].as_array().unwrap().len(), 1);
    let stage = &body["stage"];
    assert_eq!((&stage["tasks"], &stage["executors"]), (&json!(20), &json!(["1"])));
    assert_eq!((&stage["source"], &stage["sampling_error"]), (&json!("ledger"), &Value::Null));
    assert_eq!(stage["first_seen"], "2026-11-21T10:00:11.000Z");
    near(&stage["cpu_seconds"], 24.666);
    near(&class(&body["classes"], "task")["cpu_seconds"], 24.416);
    let sampled = &ask(false, "app=app-1&stage=3").await.json()["stage"];
    assert_eq!(sampled["source"], "samples");
    near(&sampled["sampling_error"], 1.0 / 2_450f64.sqrt());
}

#[tokio::test]
async fn bad_input_is_named() {
    let got = ask(true, "app=app-2&stage=3").await;
    let message = got.refused(404, "unknown_stage", Some("stage"));
    assert!(message.contains("those of these stages were: 0."), "another app's stage: {message}");
    assert_eq!(got.json()["error"]["choices"], json!(["0"]));
    for query in ["app=app-1&thread_class=gc", "query={thread_class=%22gc%22}"] {
        ask(true, query).await.refused(400, "bad_parameter", Some("thread_class"));
    }
    let message =
        get_all("/api/v1/tax?app=app-3&stage=77").await.refused(404, "unknown_stage", Some("stage"));
    assert!(message.contains("no stage's tasks were"), "{message}");
    ask(true, "by=stage").await.refused(400, "unknown_parameter", Some("by"));
}
