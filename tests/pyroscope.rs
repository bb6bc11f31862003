//! Pyroscope's query API, asked by the client that Pyroscope's own protos generate
//! (tests/pyroscope-client, Go) and by plain HTTP where the client is too polite.
//!
//! Each call of the Go client is made in protobuf and in JSON, plain and packed: four answers, which
//! must be the same. The store behind holds known rows.

mod comparing;
mod http;
mod pushing;
mod sums;

use anyhow::{Context, Result, ensure};
use emberscope_model::LabelKey::{App, Executor, Role, ServiceName, Stage};
use emberscope_tests::{FakeStore, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";
/// A test's time range: 20 s from second 1,000.
const START: i64 = 1_000_000;
const END: i64 = 1_020_000;

/// A server of a few known rows on a free port; it ends with the process.
fn serve() -> Result<u16> {
    let mut store = FakeStore::default();
    let labels = |executor, stage| {
        [(ServiceName, "etl"), (App, "app-1"), (Role, "executor"), (Executor, executor), (Stage, stage)]
    };
    store.add(1000, &labels("1", "0"), "java;Task.run;sort", 30);
    store.add(1000, &labels("2", "0"), "java;Task.run;sort", 10);
    store.add(1010, &labels("1", "1"), "java;Task.run;hash", 50);
    store.add(1010, &labels("1", "1"), "java;Task.run", 5);
    store.add(1010, &[(ServiceName, "bash"), (Role, "other")], "main", 5);
    store.add(2000, &[(ServiceName, "late"), (Role, "other")], "main", 7);
    Server::of(store)?.start()
}

/// Builds the Go client once. None: it cannot be built here, and the skip is recorded.
fn client(test: &str) -> Result<Option<std::path::PathBuf>> {
    static BUILD: std::sync::OnceLock<Result<std::path::PathBuf, String>> = std::sync::OnceLock::new();
    let built = BUILD.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/pyroscope-client");
        let target = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pyroscope-client");
        let run = Command::new("go").args(["build", "-o"]).arg(&target).arg(".").current_dir(source).output();
        match run {
            Ok(out) if out.status.success() => Ok(target),
            Ok(out) => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
            Err(error) => Err(format!("no go command: {error}")),
        }
    });
    match built {
        Ok(path) => Ok(Some(path.clone())),
        // A compiler that is too old or a module that cannot be had says so; a fault of the source is a
        // failure.
        Err(reason) if reason.contains("main.go:") || reason.contains("receive.go:") => {
            anyhow::bail!("the client does not compile: {reason}")
        }
        Err(reason) => {
            let reason = reason.lines().next().unwrap_or_default();
            emberscope_tests::skip(test, &format!("the Go client cannot be built: {reason}"));
            Ok(None)
        }
    }
}

/// Makes each call in the four ways and hands back the one answer, by name.
fn ask(client: &std::path::Path, url: &str, calls: &[(&str, &str, Value)]) -> Result<Vec<Value>> {
    let mut input = Vec::new();
    for (name, method, request) in calls {
        for (codec, gzip) in [("proto", false), ("proto", true), ("json", false), ("json", true)] {
            input.push(
                json!({"name": name, "method": method, "request": request, "codec": codec, "gzip": gzip}),
            );
        }
    }
    let mut child = Command::new(client)
        .arg(url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("client")?;
    child.stdin.take().context("stdin")?.write_all(serde_json::to_string(&input)?.as_bytes())?;
    let out = child.wait_with_output()?;
    ensure!(out.status.success(), "the client failed: {}", out.status);
    let lines: Vec<Value> =
        String::from_utf8(out.stdout)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(lines.len() == input.len(), "{} answers to {} calls", lines.len(), input.len());
    for four in lines.chunks(4) {
        ensure!(four.iter().all(|a| *a == four[0]), "the codecs differ: {four:#?}");
    }
    Ok(lines.into_iter().step_by(4).collect())
}

fn select(type_id: &str, selector: &str) -> Value {
    json!({"profileTypeID": type_id, "labelSelector": selector, "start": START, "end": END})
}

fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

#[test]
fn labels_and_types_answer_as_pyroscope_does() -> Result<()> {
    let Some(client) = client("pyroscope::labels_and_types")? else { return Ok(()) };
    let url = format!("http://127.0.0.1:{}", serve()?);
    let time = json!({"start": START, "end": END});
    let of_type = format!("{CPU}{{}}");
    let answers = ask(
        &client,
        &url,
        &[
            ("save and test", "ProfileTypes", json!({"start": 1000, "end": 4000})),
            ("types", "ProfileTypes", time.clone()),
            ("names", "LabelNames", with(time.clone(), "matchers", json!([of_type]))),
            (
                "values",
                "LabelValues",
                json!({"name": "executor", "matchers": [of_type], "start": START, "end": END}),
            ),
            ("values, all time", "LabelValues", json!({"name": "service_name"})),
            (
                "values of a type",
                "LabelValues",
                json!({"name": "__profile_type__", "start": START, "end": END}),
            ),
            ("values of no label", "LabelValues", json!({"name": "pod", "start": START, "end": END})),
            (
                "either",
                "LabelValues",
                json!({"name": "service_name", "matchers": ["{stage=\"1\"}", "{role!~\"exec.*\"}"], "start": START, "end": END}),
            ),
            (
                "drilldown",
                "Series",
                json!({"labelNames": ["service_name", "__profile_type__"], "matchers": [], "start": START, "end": END}),
            ),
            ("stats", "GetProfileStats", json!({})),
            ("too much", "LabelNames", with(time.clone(), "matchers", json!(["{container!=\"\"}"]))),
            ("bad selector", "LabelNames", with(time, "matchers", json!(["{executor=1}"]))),
        ],
    )?;
    let by_name = |name: &str| answers.iter().find(|a| a["name"] == name).expect("asked").clone();
    assert_eq!(by_name("save and test")["ok"], json!({}));
    let ids: Vec<_> = by_name("types")["ok"]["profileTypes"].as_array().context("types")?.clone();
    assert_eq!(ids.len(), 2);
    assert_eq!(
        ids[0],
        json!({"ID": CPU, "name": "process_cpu", "sampleType": "cpu", "sampleUnit": "nanoseconds",
               "periodType": "cpu", "periodUnit": "nanoseconds"})
    );
    assert_eq!(ids[1]["ID"], SAMPLES);
    assert_eq!(
        by_name("names")["ok"]["names"],
        json!([
            "__name__",
            "__period_type__",
            "__period_unit__",
            "__profile_type__",
            "__type__",
            "__unit__",
            "app",
            "executor",
            "operator",
            "role",
            "service_name",
            "spark_job",
            "sql",
            "stage"
        ])
    );
    assert_eq!(by_name("values")["ok"]["names"], json!(["1", "2"]));
    assert_eq!(by_name("values, all time")["ok"]["names"], json!(["bash", "etl", "late"]));
    assert_eq!(by_name("values of a type")["ok"]["names"], json!([CPU, SAMPLES]));
    assert_eq!(by_name("values of no label")["ok"], json!({}));
    assert_eq!(by_name("either")["ok"]["names"], json!(["bash", "etl"]));
    let set = |service: &str, id: &str| json!({"labels": [{"name": "__profile_type__", "value": id}, {"name": "service_name", "value": service}]});
    assert_eq!(
        by_name("drilldown")["ok"]["labelsSet"],
        json!([set("bash", CPU), set("etl", CPU), set("bash", SAMPLES), set("etl", SAMPLES)])
    );
    assert_eq!(
        by_name("stats")["ok"],
        json!({"dataIngested": true, "oldestProfileTime": "1000000", "newestProfileTime": "2010000"})
    );
    assert_eq!(by_name("too much")["code"], "resource_exhausted");
    assert_eq!(by_name("bad selector")["code"], "invalid_argument");
    Ok(())
}

#[test]
fn profiles_and_series_answer_as_pyroscope_does() -> Result<()> {
    let Some(client) = client("pyroscope::profiles_and_series")? else { return Ok(()) };
    // Through a prefix, as behind a proxy.
    let url = format!("http://127.0.0.1:{}/behind/a/proxy", serve()?);
    let series = |group: Value| with(with(select(CPU, "{}"), "groupBy", group), "step", json!(10));
    let answers = ask(
        &client,
        &url,
        &[
            ("all", "SelectMergeStacktraces", select(SAMPLES, "{}")),
            (
                "weight",
                "SelectMergeStacktraces",
                select(CPU, r#"{service_name="etl",executor="1",stage=~"0|1"}"#),
            ),
            ("span calls", "SelectMergeSpanProfile", select(SAMPLES, "{}")),
            (
                "a span",
                "SelectMergeSpanProfile",
                with(select(SAMPLES, "{}"), "spanSelector", json!(["9a517183f26a089d"])),
            ),
            ("nobody", "SelectMergeStacktraces", select(CPU, r#"{pod="x"}"#)),
            ("other type", "SelectMergeStacktraces", select("memory:inuse_space:bytes:space:bytes", "{}")),
            ("cut", "SelectMergeStacktraces", with(select(SAMPLES, "{}"), "maxNodes", json!(3))),
            (
                "dot",
                "SelectMergeStacktraces",
                with(select(SAMPLES, "{}"), "format", json!("PROFILE_FORMAT_DOT")),
            ),
            (
                "pprof",
                "SelectMergeStacktraces",
                with(select(SAMPLES, "{}"), "format", json!("PROFILE_FORMAT_PPROF")),
            ),
            ("profile", "SelectMergeProfile", select(SAMPLES, "{}")),
            ("series", "SelectSeries", series(json!(["executor"]))),
            ("top series", "SelectSeries", with(series(json!(["executor", "__type__"])), "limit", json!(1))),
            ("one series", "SelectSeries", with(series(json!([])), "step", json!(3600))),
            ("no step", "SelectSeries", select(CPU, "{}")),
            ("no type", "SelectMergeStacktraces", select("cpu", "{}")),
            ("no time", "SelectMergeStacktraces", json!({"profileTypeID": CPU, "labelSelector": "{}"})),
            ("backwards", "SelectSeries", with(series(json!([])), "end", json!(1))),
            ("heatmap", "SelectHeatmap", select(CPU, "{}")),
            ("diff of nothing", "Diff", json!({})),
            ("analyze", "AnalyzeQuery", json!({"query": "{}"})),
        ],
    )?;
    let by_name = |name: &str| answers.iter().find(|a| a["name"] == name).expect("asked").clone();
    let graph = by_name("all")["ok"]["flamegraph"].clone();
    assert_eq!(graph["names"], json!(["total", "java", "main", "Task.run", "hash", "sort"]));
    assert_eq!(
        graph["levels"],
        json!([{"values": ["0", "100", "0", "0"]},
               {"values": ["0", "95", "0", "1", "0", "5", "5", "2"]},
               {"values": ["0", "95", "5", "3"]},
               {"values": ["5", "50", "50", "4", "0", "40", "40", "5"]}])
    );
    assert_eq!((&graph["total"], &graph["maxSelf"]), (&json!("100"), &json!("50")));
    assert_eq!(by_name("span calls")["ok"]["flamegraph"], graph);
    assert_eq!(by_name("weight")["ok"]["flamegraph"]["total"], "850000000");
    for nothing in ["a span", "nobody", "other type"] {
        assert_eq!(by_name(nothing)["ok"], json!({}), "{nothing}");
    }
    let cut = by_name("cut")["ok"]["flamegraph"].clone();
    assert_eq!(cut["names"], json!(["total", "java", "other", "Task.run"]));
    assert_eq!(cut["total"], "100");
    for profile in [by_name("profile")["ok"].clone(), by_name("pprof")["ok"]["pprof"]["profile"].clone()] {
        let samples = profile["sample"].as_array().context("samples")?.clone();
        let value = |s: &Value| s["value"][0].as_str().and_then(|v| v.parse::<i64>().ok());
        assert_eq!(samples.iter().filter_map(value).sum::<i64>(), 100);
        assert_eq!(
            (profile["timeNanos"].as_str(), profile["durationNanos"].as_str()),
            (Some("1000000000000"), Some("20000000000"))
        );
    }
    let point = |value: i64, time: i64| json!({"value": value, "timestamp": time.to_string()});
    let label = |name: &str, value: &str| json!({"name": name, "value": value});
    assert_eq!(
        by_name("series")["ok"]["series"],
        json!([{"points": [point(50_000_000, 1_010_000)]},
               {"labels": [label("executor", "1")], "points": [point(300_000_000, START), point(550_000_000, 1_010_000)]},
               {"labels": [label("executor", "2")], "points": [point(100_000_000, START)]}])
    );
    assert_eq!(
        by_name("top series")["ok"]["series"],
        json!([{"labels": [label("__type__", "cpu"), label("executor", "1")],
                "points": [point(300_000_000, START), point(550_000_000, 1_010_000)]}])
    );
    // The step began before the range: its point is dated from the range's start.
    assert_eq!(by_name("one series")["ok"]["series"], json!([{"points": [point(1_000_000_000, START)]}]));
    for (name, code) in [
        ("dot", "unimplemented"),
        ("heatmap", "unimplemented"),
        ("diff of nothing", "invalid_argument"),
        ("analyze", "unimplemented"),
        ("no step", "invalid_argument"),
        ("no type", "invalid_argument"),
        ("no time", "invalid_argument"),
        ("backwards", "invalid_argument"),
    ] {
        assert_eq!(by_name(name)["code"], code, "{name}");
    }
    Ok(())
}
