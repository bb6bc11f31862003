//! What Grafana gets is what our own JSON says: the same selection asked both ways. And the requests that
//! Pyroscope's command line makes (cmd/profilecli, `query.go` and `query-top.go`: a default time range, the
//! selector `{}`, no node limit), which the test machine cannot build.

use super::http::raw;
use super::{CPU, END, SAMPLES, START, ask, client, select, serve, with};
use anyhow::{Context, Result, ensure};
use emberscope_model::LabelKey::{App, Executor, ServiceName};
use emberscope_tests::{FakeStore, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn own_json(port: u16, path: &str) -> Result<Value> {
    let (head, body) = raw(port, &format!("GET /api/v1/{path}"), "", b"")?;
    ensure!(head.contains(" 200 "), "{path}: {head}{}", String::from_utf8_lossy(&body));
    Ok(serde_json::from_slice(&body)?)
}

/// Sums of a flame graph's bars by name.
fn own_by_name(graph: &Value) -> Result<BTreeMap<String, i64>> {
    let mut sums = BTreeMap::new();
    for level in graph["levels"].as_array().context("levels")? {
        let values: Vec<i64> = level["values"]
            .as_array()
            .context("values")?
            .iter()
            .map(|v| Ok(v.as_str().context("text")?.parse()?))
            .collect::<Result<_>>()?;
        for bar in values.chunks(4) {
            let name = graph["names"][bar[3] as usize].as_str().context("name")?;
            if bar[2] > 0 {
                *sums.entry(name.to_owned()).or_default() += bar[2];
            }
        }
    }
    Ok(sums)
}

#[test]
fn sums_are_those_of_our_own_answers() -> Result<()> {
    let Some(client) = client("pyroscope::sums")? else { return Ok(()) };
    let port = serve()?;
    let url = format!("http://127.0.0.1:{port}");
    for (selector, ours) in [
        ("{}", ""),
        ("{app=\"app-1\"}", "&app=app-1"),
        ("{executor=~\"1|3\",stage!=\"0\"}", "&query={executor=~%221|3%22,stage!=%220%22}"),
        ("process_cpu:samples:count:cpu:nanoseconds{role=\"other\"}", "&role=other"),
    ] {
        let series = with(with(select(SAMPLES, selector), "groupBy", json!(["stage"])), "step", json!(10));
        let answers = ask(
            &client,
            &url,
            &[
                ("graph", "SelectMergeStacktraces", select(SAMPLES, selector)),
                ("series", "SelectSeries", series),
                ("profile", "SelectMergeProfile", select(SAMPLES, selector)),
            ],
        )?;
        let range = format!("from={}&until={}{ours}", START / 1000, END / 1000);
        let top = own_json(port, &format!("top?limit=1000&{range}"))?;
        let mut methods = BTreeMap::new();
        for row in top["top"].as_array().context("top")? {
            let own = row["self"]["samples"].as_i64().or(row["self_samples"].as_i64()).context("self")?;
            if own > 0 {
                methods.insert(row["name"].as_str().context("name")?.to_owned(), own);
            }
        }
        assert_eq!(own_by_name(&answers[0]["ok"]["flamegraph"])?, methods, "{selector}");
        let tree = own_json(port, &format!("flamegraph?format=json&{range}"))?;
        let total = tree["quality"]["samples"].as_i64().context("samples")?;
        assert_eq!(answers[0]["ok"]["flamegraph"]["total"], total.to_string(), "{selector}");
        let samples = answers[2]["ok"]["sample"].as_array().context("samples")?;
        let value = |s: &Value| s["value"][0].as_str().and_then(|v| v.parse::<i64>().ok());
        assert_eq!(samples.iter().filter_map(value).sum::<i64>(), total, "{selector}");

        let sums = |series: &Value, point: &dyn Fn(&Value) -> Option<f64>| -> Vec<f64> {
            let of = |s: &Value| s["points"].as_array().map(|p| p.iter().filter_map(point).sum::<f64>());
            let mut sums: Vec<f64> = series.as_array().into_iter().flatten().filter_map(of).collect();
            sums.sort_by(f64::total_cmp);
            sums
        };
        let ours = own_json(port, &format!("series?step=10s&by=stage&{range}"))?;
        assert_eq!(
            sums(&answers[1]["ok"]["series"], &|p| p["value"].as_f64()),
            sums(&ours["series"], &|p| p["samples"].as_f64()),
            "{selector}"
        );
    }
    Ok(())
}

#[test]
fn the_requests_of_pyroscopes_command_line_are_answered() -> Result<()> {
    let Some(client) = client("pyroscope::command_line")? else { return Ok(()) };
    let url = format!("http://127.0.0.1:{}", serve()?);
    let span = (END - START) as f64 / 1000.0;
    let time = json!({"start": START, "end": END});
    let answers = ask(
        &client,
        &url,
        &[
            ("query profile", "SelectMergeProfile", select(CPU, "{}")),
            (
                "query profile --tree",
                "SelectMergeStacktraces",
                with(select(CPU, "{}"), "format", json!("PROFILE_FORMAT_TREE")),
            ),
            ("query series", "Series", with(time.clone(), "matchers", json!(["{}"]))),
            ("query label-values-cardinality", "LabelNames", with(time.clone(), "matchers", json!(["{}"]))),
            (
                "... for each of them",
                "LabelValues",
                with(with(time, "matchers", json!(["{}"])), "name", json!("service_name")),
            ),
            (
                "query top",
                "SelectSeries",
                with(with(select(CPU, "{}"), "step", json!(span)), "groupBy", json!(["service_name"])),
            ),
            (
                "query profile-ids",
                "SelectSeries",
                with(
                    with(select(CPU, "{}"), "step", json!(span)),
                    "exemplarType",
                    json!("EXEMPLAR_TYPE_INDIVIDUAL"),
                ),
            ),
        ],
    )?;
    for answer in &answers {
        assert!(answer["code"].is_null(), "{answer}");
    }
    let by_name = |name: &str| answers.iter().find(|a| a["name"] == name).expect("asked")["ok"].clone();
    let top: BTreeMap<String, f64> = by_name("query top")["series"]
        .as_array()
        .context("series")?
        .iter()
        .map(|s| {
            let sum = s["points"].as_array().into_iter().flatten().filter_map(|p| p["value"].as_f64()).sum();
            (s["labels"][0]["value"].as_str().unwrap_or_default().to_owned(), sum)
        })
        .collect();
    assert_eq!(top, BTreeMap::from([("bash".into(), 5e7), ("etl".into(), 9.5e8)]));
    assert_eq!(by_name("... for each of them")["names"], json!(["bash", "etl"]));
    assert_eq!(by_name("query series")["labelsSet"].as_array().map(Vec::len), Some(8));
    // Single profiles are not kept: no exemplar.
    assert!(!by_name("query profile-ids").to_string().contains("exemplar"));
    Ok(())
}

/// Names come from programs on the node: they are text in every answer, and nothing but text.
#[test]
fn hostile_names_are_text_in_every_answer() -> Result<()> {
    let Some(client) = client("pyroscope::hostile_names")? else { return Ok(()) };
    const NAME: &str = "</script><img src=x onerror=alert(1)>\"'\\ {}%0a\u{202e}\u{0}";
    let mut store = FakeStore::default();
    store.add(1000, &[(ServiceName, NAME), (App, "app-1"), (Executor, "<b>")], NAME, 5);
    let port = Server::of(store)?.start()?;
    let url = format!("http://127.0.0.1:{port}");
    let selector = format!("{{service_name={}}}", serde_json::to_string(NAME)?.replace("\\u0000", "\\x00"));
    let answers = ask(
        &client,
        &url,
        &[
            ("values", "LabelValues", json!({"name": "service_name"})),
            ("graph", "SelectMergeStacktraces", select(SAMPLES, &selector)),
            ("profile", "SelectMergeProfile", select(SAMPLES, "{}")),
            ("diff", "Diff", json!({"left": select(SAMPLES, "{}"), "right": select(SAMPLES, &selector)})),
            ("no label", "LabelNames", json!({"matchers": ["{<b>=\"1\"}"]})),
        ],
    )?;
    // A stack's text is split at `;`, of which the name has none.
    assert_eq!(answers[0]["ok"]["names"], json!([NAME]));
    assert_eq!(answers[1]["ok"]["flamegraph"]["names"], json!(["total", NAME]));
    let texts = answers[2]["ok"]["stringTable"].as_array().context("texts")?;
    assert!(texts.contains(&json!(NAME)), "{texts:?}");
    assert_eq!(answers[3]["ok"]["flamegraph"]["rightTicks"], "5");
    assert_eq!(answers[4]["code"], "invalid_argument");
    for path in [
        "flamegraph?format=json&",
        "top?",
        "labels/service_name/values?",
        "apps?",
        "flamegraph?format=folded&",
    ] {
        let (head, body) = raw(port, &format!("GET /api/v1/{path}from=1000&until=1010"), "", b"")?;
        // No browser takes it for a page, and no script runs in it.
        ensure!(head.contains("x-content-type-options: nosniff"), "{head}");
        ensure!(head.contains("application/json") || head.contains("text/plain"), "{head}");
        ensure!(head.contains("default-src 'none'"), "{head}");
        if path.contains("folded") {
            let text = String::from_utf8(body)?;
            ensure!(text.lines().count() == 1 && text.ends_with(" 5\n"), "{text:?}");
        } else {
            ensure!(body.windows(NAME.len()).all(|w| w != NAME.as_bytes()), "a quote or NUL is not escaped");
            serde_json::from_slice::<Value>(&body)?;
        }
    }
    Ok(())
}
