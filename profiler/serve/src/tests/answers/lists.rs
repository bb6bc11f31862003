//! Applications, executors, labels.

use super::*;

#[tokio::test]
async fn apps() {
    let body = get_all("/api/v1/apps").await.json();
    assert_eq!(body["apps"].as_array().unwrap().len(), 3);
    let app = row(&body["apps"], "id", "app-1");
    assert_eq!(
        (&app["name"], &app["user"], &app["deploy"]),
        (&json!("etl"), &json!("ann"), &json!("standalone"))
    );
    assert_eq!((&app["samples"], &app["cpu_seconds"]), (&json!(180), &json!(1.8)));
    assert_eq!((&app["executors"], &app["drivers"]), (&json!(1), &json!([])));
    assert_eq!(app["first_seen"], "2026-11-21T10:00:00.000Z");
    assert_eq!(app["last_seen"], "2026-11-21T10:00:30.000Z");
    let driver = row(&body["apps"], "id", "app-3");
    assert_eq!(
        (&driver["executors"], &driver["drivers"], &driver["name"]),
        (&json!(0), &json!([31]), &json!(EVIL))
    );
}

#[tokio::test]
async fn executors() {
    let body = get_all("/api/v1/executors?app=app-1&stage=3").await.json();
    assert_eq!(body["executors"].as_array().unwrap().len(), 2);
    let jvm = row(&body["executors"], "role", "executor");
    assert_eq!((&jvm["app"], &jvm["executor"], &jvm["host"]), (&json!("app-1"), &json!("1"), &json!("h1")));
    assert_eq!((&jvm["pids"], &jvm["cores"], &jvm["samples"]), (&json!([11]), &json!(4), &json!(120)));
    assert_eq!((&jvm["jvm"]["version"], &jvm["jvm"]["names"]), (&json!("17.0.15"), &json!("asked")));
    let python = row(&body["executors"], "role", "python");
    assert_eq!(
        (&python["pids"], &python["jvm"], &python["cores"]),
        (&json!([12]), &Value::Null, &Value::Null)
    );
    let twin = get_all("/api/v1/executors?app=app-2").await.json();
    assert_eq!(twin["executors"][0]["jvm"]["names_detail"], "JDK 8");
}

#[tokio::test]
async fn labels_and_values() {
    let names = get_all("/api/v1/labels?app=app-3").await.json();
    let names = names["labels"].as_array().unwrap();
    assert!(names.contains(&json!("role")) && !names.contains(&json!("stage")), "{names:?}");
    let body = get_all("/api/v1/labels/role/values").await.json();
    let got: Vec<_> = body["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["value"].as_str().unwrap(), v["samples"].as_u64().unwrap()))
        .collect();
    assert_eq!(got, [("executor", 210), ("driver", 30), ("other", 30), ("python", 30)]);
    let two = get_all("/api/v1/labels/role/values?limit=3&query={role!=%22executor%22}").await.json();
    assert_eq!((two["values"].as_array().unwrap().len(), &two["cut"]), (3, &json!(0)));
    let cut = get_all("/api/v1/labels/role/values?limit=1").await.json();
    assert_eq!((cut["values"].as_array().unwrap().len(), &cut["cut"]), (1, &json!(3)));
}
