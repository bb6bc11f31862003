//! Every route's answer over three windows whose content is known.

use super::*;
use emberscope_model::{MissingPart, TimeRange, WallTime};
use fake::EVIL;

mod lists;
mod pictures;

fn row<'a>(rows: &'a Value, key: &str, value: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|r| r[key] == value).unwrap_or_else(|| panic!("no {key}={value} in {rows:?}"))
}

#[tokio::test]
async fn health_and_readiness() {
    assert_eq!(get("/healthz").await.text(), "ok\n");
    assert_eq!(get("/readyz").await.text(), "ready\n");
    let mut early = state(three_windows());
    early.ready = Arc::new(|| Err("The BPF programs are being loaded.".into()));
    let app = router(early, Access::LocalHostOnly, Router::new());
    let message = send(app.clone(), request("GET", "/readyz")).await.refused(503, "not_ready", None);
    assert_eq!(message, "The BPF programs are being loaded.");
    let status = send(app, request("GET", "/api/v1/status")).await.json();
    assert_eq!(status["ready"], false);
    assert_eq!(status["waiting_for"], "The BPF programs are being loaded.");
}

#[tokio::test]
async fn every_listed_route_is_there() {
    for path in emberscope_api::route::ROUTES.map(|route| route.path) {
        // A difference wants to know of what.
        let query = match path {
            "/api/v1/diff" => "?left.app=app-1",
            "/api/v1/compare" => "?left.app=app-1&right.app=app-1",
            _ => "",
        };
        assert_eq!(get(&format!("{}{query}", path.replace("{name}", "app"))).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn status_is_ours_and_the_daemons() {
    let status = get("/api/v1/status").await.json();
    assert_eq!(
        (&status["jvms"], &status["version"], &status["node"]),
        (&json!(2), &json!("1.2.3"), &json!("n<1>"))
    );
    assert_eq!(status["store"]["windows"], 3);
    assert_eq!(status["store"]["span"]["from"], "2026-11-21T10:00:00.000Z");
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_code() {
    let app = app();
    for uri in
        ["/healthz", "/api/v1/labels/app/values", "/api/v1/labels/role/values", "/api/v1/apps?x=1", "/a\"b"]
    {
        let uri = uri.replace('"', "%22");
        send(app.clone(), request("GET", &uri)).await;
    }
    let got = send(app, request("GET", "/metrics")).await;
    assert_eq!(got.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for (route, code, count) in [
        ("/healthz", 200, 1),
        ("/api/v1/labels/{name}/values", 200, 2),
        ("/api/v1/apps", 400, 1),
        ("other", 404, 1),
    ] {
        let line = format!("emberscope_http_requests_total{{code=\"{code}\",route=\"{route}\"}} {count}");
        assert!(got.text().lines().any(|l| l == line), "{line}\n{}", got.text());
    }
    assert!(got.text().contains("emberscope_store_dropped_windows_total{reason=\"age\"} 3\n"));
}

#[tokio::test]
async fn what_an_answer_rests_on_is_in_body_and_headers() {
    let got = get_all("/api/v1/flamegraph?format=json").await;
    let body = got.json();
    let want = [("samples", 300), ("lost", 3), ("truncated", 30), ("unnamed_frames", 30), ("frames", 540)];
    for (key, value) in want {
        assert_eq!(body["quality"][key], value, "{key}");
        assert_eq!(got.header(&format!("x-emberscope-{}", key.replace('_', "-"))), value.to_string());
    }
    let error = body["quality"]["sampling_error"].as_f64().unwrap();
    assert!((error - 1.0 / 300f64.sqrt()).abs() < 1e-9, "{error}");
    assert_eq!(got.header("x-emberscope-sampling-error"), "0.0577");
    assert_eq!((&body["windows"], got.header("x-emberscope-windows")), (&json!(3), "3"));
    assert_eq!(
        body["range"],
        json!({ "from": "2026-11-21T10:00:00.000Z", "until": "2026-11-21T10:00:30.000Z" })
    );
    assert_eq!(got.header("x-emberscope-from"), "2026-11-21T10:00:00.000Z");
    assert_eq!(got.header("x-emberscope-until"), "2026-11-21T10:00:30.000Z");
    assert_eq!(body["span"], body["range"]);
    for route in [
        "apps",
        "executors",
        "stages",
        "tasks",
        "ledger",
        "tax",
        "labels",
        "labels/app/values",
        "top",
        "processes",
        "series",
    ] {
        let table = get_all(&format!("/api/v1/{route}")).await.json();
        for key in ["range", "windows", "window_seconds", "span", "quality"] {
            assert_eq!(table[key], body[key], "{route} {key}");
        }
    }
}

#[tokio::test]
async fn every_answer_tells_what_is_missing() {
    let range = TimeRange { from: WallTime(0), until: WallTime(1_000_000_000) };
    let mut store = three_windows();
    store.missing.add(MissingPart::new("block-1", range, "bad"));
    store.missing.add(MissingPart::new("a,b\n\u{e4}", range, "bad"));
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let range = within(0, 30);
    for route in ["flamegraph?format=json&", "top?", "apps?", "stages?", "labels?", "series?"] {
        let got = send(app.clone(), request("GET", &format!("/api/v1/{route}{range}"))).await;
        let quality = &got.json()["quality"];
        assert_eq!(quality["missing"], 2, "{route}");
        assert_eq!(
            quality["missing_parts"][0],
            json!({ "name": "block-1", "from": "1970-01-01T00:00:00.000Z",
                "until": "1970-01-01T00:00:01.000Z", "says": "bad" })
        );
        assert_eq!(got.header("x-emberscope-missing"), "2");
        assert_eq!(got.header("x-emberscope-missing-parts"), "block-1, a?b??");
    }
    let none = format!("/api/v1/flamegraph?format=folded&{}", within(100, 110));
    let none = send(app, request("GET", &none)).await;
    assert_eq!((none.header("x-emberscope-windows"), none.header("x-emberscope-missing")), ("0", "2"));
    assert!(none.header("x-emberscope-note").ends_with("cannot be read: 2 (quality.missing_parts)."));
}

#[tokio::test]
async fn ranges_are_widened_to_windows_and_say_so() {
    let got = get(&format!("/api/v1/flamegraph?format=folded&{}", within(9, 11))).await;
    assert_eq!(got.header("x-emberscope-windows"), "2");
    assert_eq!(got.header("x-emberscope-from"), "2026-11-21T10:00:00.000Z");
    assert_eq!(got.header("x-emberscope-until"), "2026-11-21T10:00:20.000Z");
    let one = get(&format!("/api/v1/flamegraph?{}", within(10, 20))).await;
    assert_eq!(one.header("x-emberscope-windows"), "1");
    let spelled = get("/api/v1/apps?from=2026-11-21T11:00:10+01:00&until=1795255220000").await;
    assert_eq!(spelled.json()["windows"], 1, "an offset whose + arrived as a space");
}

#[tokio::test]
async fn before_the_first_sample_the_answer_is_empty_and_says_what_there_is() {
    for route in [
        "apps",
        "executors",
        "stages",
        "tasks",
        "ledger",
        "tax",
        "labels",
        "top",
        "processes",
        "series",
        "flamegraph?format=json",
    ] {
        let sign = if route.contains('?') { '&' } else { '?' };
        let got = get(&format!("/api/v1/{route}{sign}from=1000&until=2000")).await;
        assert_eq!(got.status, 200, "{route}: {}", got.text());
        let body = got.json();
        assert_eq!((&body["windows"], &body["quality"]["samples"]), (&json!(0), &json!(0)), "{route}");
        assert_eq!(body["quality"]["sampling_error"], Value::Null);
        assert_eq!(body["span"]["from"], "2026-11-21T10:00:00.000Z", "{route}");
        assert!(body["note"].as_str().unwrap().contains("10:00:30.000Z"), "{route}");
    }
    for format in ["svg", "folded"] {
        let got = get(&format!("/api/v1/flamegraph?format={format}&from=1000&until=2000")).await;
        assert_eq!((got.status.as_u16(), got.header("x-emberscope-windows")), (200, "0"));
        assert_eq!(got.header("x-emberscope-span"), "2026-11-21T10:00:00.000Z/2026-11-21T10:00:30.000Z");
    }
    let known = get("/api/v1/flamegraph?app=app-1&format=json&from=1000&until=2000").await;
    assert_eq!(known.json()["windows"], 0, "an app of another time is known: {}", known.text());
    let nothing = router(state(FakeStore::default()), Access::LocalHostOnly, Router::new());
    let body = send(nothing, request("GET", "/api/v1/apps")).await.json();
    assert_eq!((&body["span"], &body["note"]), (&Value::Null, &json!("No window has closed yet.")));
}

#[tokio::test]
async fn top_counts_recursion_once() {
    let body = get_all("/api/v1/top?app=app-1&role=executor").await.json();
    let run = row(&body["top"], "name", "Main.run");
    assert_eq!((&run["self"]["samples"], &run["total"]["samples"]), (&json!(150), &json!(150)));
    assert_eq!((&run["total"]["share"], &run["total"]["share_error"]), (&json!(1.0), &json!(0.0)));
    let sort = row(&body["top"], "name", "Main.sort");
    assert_eq!((&sort["self"]["samples"], &sort["total"]["samples"]), (&json!(0), &json!(120)));
    assert_eq!((&sort["kinds"], &sort["total"]["cpu_seconds"]), (&json!(["java"]), &json!(1.2)));
    let one = get_all("/api/v1/top?limit=1&sort=total").await.json();
    assert_eq!((one["top"].as_array().unwrap().len(), &one["methods"]), (1, &json!(6)));
    assert_eq!(one["top"][0]["name"], "Main.run");
}

#[tokio::test]
async fn processes_busiest_first_with_conditions_on_threads() {
    let body = get_all("/api/v1/processes").await.json();
    let pids: Vec<_> =
        body["processes"].as_array().unwrap().iter().map(|p| p["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids, [11, 21, 12, 31, 41]);
    let first = &body["processes"][0];
    assert_eq!((&first["cpu_seconds"], &first["program"]), (&json!(1.5), &json!("program 11")));
    assert_eq!((&first["labels"]["app"], &first["cores"]), (&json!("app-1"), &json!(4)));
    let stage = get_all("/api/v1/processes?stage=4").await.json();
    assert_eq!(stage["processes"].as_array().unwrap().len(), 1);
    assert_eq!(stage["processes"][0]["samples"], 30);
}

#[tokio::test]
async fn a_reused_pid_has_no_time_of_its_own() {
    let store = three_windows();
    let mut again = store.processes(all(), &emberscope_model::Selection::all()).remove(0).as_ref().clone();
    again.key.start_ticks = 9;
    let range = emberscope_model::TimeRange {
        from: emberscope_model::WallTime::from_millis((START + 30) * 1000),
        until: emberscope_model::WallTime::from_millis((START + 40) * 1000),
    };
    let (rows, lost) = (Vec::new(), Default::default());
    store.append(emberscope_model::Window {
        ledger: Vec::new(),
        pauses: Vec::new(),
        range,
        rows,
        processes: vec![Arc::new(again)],
        lost,
        partial: false,
    });
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let body = send(app, request("GET", &format!("/api/v1/processes?pid=11&{}", within(0, 40)))).await.json();
    assert_eq!(body["processes"].as_array().unwrap().len(), 2);
    for process in body["processes"].as_array().unwrap() {
        assert_eq!(
            (&process["pid"], &process["cpu_seconds"], &process["samples"]),
            (&json!(11), &Value::Null, &Value::Null)
        );
    }
}

fn all() -> emberscope_model::TimeRange {
    emberscope_model::TimeRange {
        from: emberscope_model::WallTime(0),
        until: emberscope_model::WallTime(u64::MAX),
    }
}

#[tokio::test]
async fn series_by_label_in_whole_windows() {
    let body = get_all("/api/v1/series?app=app-1&by=stage&step=20s").await.json();
    assert_eq!(body["step_seconds"], 20.0);
    assert_eq!(body["series"][0]["labels"], json!({ "stage": "3" }));
    let points: Vec<_> = body["series"][0]["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["samples"].as_u64().unwrap())
        .collect();
    assert_eq!(points, [100, 50]);
    assert_eq!(body["series"][0]["points"][0]["time"], "2026-11-21T10:00:00.000Z");
    assert_eq!(get_all("/api/v1/series?step=11s").await.json()["step_seconds"], 20.0);
    assert_eq!(get_all("/api/v1/series?step=1ms").await.json()["step_seconds"], 10.0);
    assert_eq!(get_all("/api/v1/series").await.json()["step_seconds"], 10.0);
}

#[tokio::test]
async fn an_app_is_an_id_else_a_name_and_the_rest_is_the_node() {
    let samples = async |selection: &str| -> u64 {
        let got = get_all(&format!("/api/v1/flamegraph?format=folded{selection}")).await;
        assert_eq!(got.status, 200, "{selection}: {}", got.text());
        got.header("x-emberscope-samples").parse().unwrap()
    };
    assert_eq!(samples("").await, 300);
    assert_eq!(samples("&app=app-1").await, 180);
    assert_eq!(samples("&app=app-1&app=app-2").await, 240);
    let name: String = EVIL.bytes().map(|b| format!("%{b:02x}")).collect();
    assert_eq!(samples(&format!("&app={name}")).await, 30);
    assert_eq!(samples(&format!("&app={name}&app=app-2")).await, 90);
    assert_eq!(samples("&app=").await, 30, "what belongs to no app");
    assert_eq!(samples("&query=process_cpu:cpu{app=~%22app-.*%22}").await, 270);
    assert_eq!(
        samples("&service_name=etl&query={}").await,
        240,
        "two apps of one name, as the label they share"
    );
}
