//! Differences: of two selections, and of a stage's slow tasks against its usual ones.

use super::*;
use fake::EVIL;

async fn ask(with_ledger: bool, query: &str) -> Got {
    let app = router(state(jobs::store(with_ledger)), Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/diff?{query}&{}", within(0, 30)))).await
}

fn near(value: &Value, want: f64) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((got - want).abs() < 1e-9, "{got} instead of {want}");
}

fn method<'a>(body: &'a Value, name: &str) -> &'a Value {
    let rows = body["diff"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn what_makes_slow_tasks_slow_comes_first() {
    for with_ledger in [true, false] {
        let body = ask(with_ledger, "app=app-1&stage=3&slow=1&format=json").await.json();
        assert_eq!(body["cause"]["name"], "Job.slow", "its own time is less than that of what it calls");
        assert_eq!(body["diff"][0]["name"], "Job.slow");
        assert_eq!((&body["scale"], &body["methods"], &body["cut"]), (&json!("task"), &json!(6), &json!(0)));
        let slow = &body["slow"];
        let source = if with_ledger { "ledger" } else { "samples" };
        assert_eq!((&slow["tasks"], &slow["source"]), (&json!(20), &json!(source)));
        let (left, right) = (&body["left"], &body["right"]);
        assert_eq!((&left["name"], &right["name"]), (&json!("median"), &json!("slow")));
        assert_eq!((&left["task_count"], &right["task_count"]), (&json!(4), &json!(2)));
        let tids: Vec<_> = right["tasks"].as_array().unwrap().iter().map(|t| t["task"].clone()).collect();
        assert_eq!(tids, ["107", "117"]);
        assert_eq!((&right["samples"], &right["quality"]["samples"]), (&json!(600), &json!(600)));
        near(&right["factor"], 0.5);
        near(&body["total"]["left_seconds"], 1.0);
        near(&body["total"]["right_seconds"], 3.0);
        near(&body["total"]["difference"], 2.0);
        near(&body["total"]["difference_error"], (1.0f64 / 400.0 + 9.0 / 600.0).sqrt());
        let row = &body["diff"][0];
        near(&row["self"]["right_seconds"], 0.4);
        near(&row["total"]["difference"], 2.0);
        near(&row["total"]["difference_error"], 2.0 / 400f64.sqrt());
        assert_eq!((&row["total"]["left_samples"], &row["total"]["right_samples"]), (&json!(0), &json!(400)));
        near(&method(&body, "Job.fast")["self"]["difference"], 0.0);
    }
    let body = ask(true, "app=app-1&stage=3&slow=1&format=json").await.json();
    near(&body["slow"]["p90_cpu_seconds"], 1.504);
    // Each task waited as long as every other one.
    assert_eq!(body["slow"]["because"].as_array().unwrap().len(), 1);
    let more = &body["slow"]["because"][0];
    assert_eq!((&more["of"], &more["share"]), (&json!("cpu"), &json!(1.0)));
    near(&more["seconds"], 3.0 - 1.0115);
    let wall = ask(true, "app=app-1&stage=3&slow=1&format=json&type=wall").await.json();
    assert_eq!((&wall["slow"]["by"], &wall["right"]["type"]), (&json!("wall"), &json!("wall")));
    near(&wall["slow"]["p90_wall_seconds"], 1.019 + 0.15);
    near(&wall["right"]["wall_seconds"], 6.0);
    near(&body["right"]["task_cpu_seconds"], 6.0);
    // Places 8 to 11 in the order of CPU: 104 with its helper is the 17th, just below the slow ones.
    let tids: Vec<_> = body["left"]["tasks"].as_array().unwrap().iter().map(|t| t["task"].clone()).collect();
    assert_eq!(tids, ["110", "111", "112", "113"]);
    let total = ask(true, "app=app-1&stage=3&slow=1&format=json&sort=total&limit=2").await.json();
    assert_eq!((&total["diff"][0]["name"], &total["cut"]), (&json!("Job.slow"), &json!(4)));
    let equal = ask(true, "app=app-1&stage=3&slow=1&format=json&scale=equal").await.json();
    near(&equal["total"]["difference"], 0.0);
}

#[tokio::test]
async fn groups_have_tasks_from_four_on_and_a_limit() {
    let process = jobs::labels(&[(emberscope_model::LabelKey::App, "a")]);
    for (n, usual, slow) in [(4, 2, 1), (5, 1, 1), (9, 3, 1), (10, 2, 1), (11, 3, 2), (12_000, 1000, 1000)] {
        let task = |i: u64| jobs::thread(&process, "task", "1", &i.to_string(), &i.to_string());
        let ledger = (0..n).map(|i| jobs::line(&task(i), i, 0, 1)).collect();
        let store = emberscope_store::MemoryStore::new(Default::default());
        // So that the app is known.
        let row = jobs::row(&task(0), &[jobs::RUN], 1);
        store.append(jobs::window(0, vec![row], ledger, Vec::new()));
        let app = router(state(store), Access::LocalHostOnly, Router::new());
        let query = format!("/api/v1/diff?slow=1&app=a&stage=1&format=json&{}", within(0, 10));
        let body = send(app, request("GET", &query)).await.json();
        let count = |side: &str| body[side]["task_count"].as_u64().unwrap();
        assert_eq!((count("left"), count("right")), (usual, slow), "{n}");
        assert_eq!(body["slow"]["tasks"], n);
        let listed = body["right"]["tasks"].as_array().unwrap();
        assert_eq!(listed.len() as u64, slow.min(100));
        let first = listed[0]["cpu_seconds"].as_f64().unwrap();
        assert!((first - (n - slow) as f64 / 1e3).abs() < 1e-9, "{n}: {first}");
    }
}

#[tokio::test]
async fn two_selections_by_share_or_as_they_are() {
    let body =
        ask(true, "left.app=app-2&right.app=app-1&role=executor&thread_class=task&format=json").await.json();
    assert_eq!(
        (&body["scale"], &body["slow"], &body["cause"]),
        (&json!("equal"), &Value::Null, &Value::Null)
    );
    assert_eq!((&body["left"]["samples"], &body["right"]["samples"]), (&json!(80), &json!(2_400)));
    near(&body["left"]["factor"], 30.0);
    near(&body["total"]["left_seconds"], 24.0);
    near(&body["total"]["difference"], 0.0);
    assert_eq!(body["total"]["difference_error"], Value::Null);
    let other = method(&body, "Other.run");
    near(&other["self"]["left_seconds"], 18.0);
    near(&other["self"]["difference"], -18.0);
    near(&other["self"]["difference_error"], 24.0 * (0.75f64 * 0.25 / 80.0).sqrt());
    // The most of it first, whichever way.
    let own: Vec<f64> = body["diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["self"]["difference"].as_f64().unwrap().abs())
        .collect();
    assert!(own.is_sorted_by(|a, b| a >= b), "{own:?}");
    let body = ask(true, "left.app=app-2&app=app-1&thread_class=task&format=json&scale=absolute&nodes=1")
        .await
        .json();
    near(&body["left"]["factor"], 1.0);
    near(&body["total"]["difference"], 24.0 - 0.8);
    assert_eq!(body["cause"]["name"], "Job.fast", "18 of the 23 seconds");
    let nodes = body["nodes"].as_array().unwrap();
    assert_eq!(
        (&nodes[0]["parent"], &nodes[1]["parent"], &nodes[1]["name"]),
        (&Value::Null, &json!(0), &json!("java.lang.Thread.run"))
    );
    near(&nodes[0]["total"][0], 0.8);
    near(&nodes[0]["total"][1], 24.0);
    assert_eq!(body["left"]["range"], body["right"]["range"]);
}

#[tokio::test]
async fn formats_and_headers() {
    let folded = ask(
        true,
        "left.app=app-2&right.app=app-1&thread_class=task&format=folded&group=stage&scale=absolute",
    )
    .await;
    assert_eq!(folded.header("content-type"), "text/plain; charset=utf-8");
    let lines: Vec<&str> = folded.text().lines().collect();
    assert!(lines.contains(&"stage=0;java.lang.Thread.run;Other.run 600000000 0"), "{lines:?}");
    assert!(lines.contains(&"stage=3;java.lang.Thread.run;Job.work;Job.fast 0 18000000000"), "{lines:?}");
    assert_eq!(folded.header("x-emberscope-samples"), "2400");
    assert_eq!(folded.header("x-emberscope-sampling-error"), "0.0204");
    assert_eq!(folded.header("x-emberscope-left-samples"), "80");
    assert_eq!(folded.header("x-emberscope-left-sampling-error"), "0.1118");
    let svg = ask(true, "app=app-1&stage=3&slow=1").await;
    assert_eq!(svg.header("content-type"), "image/svg+xml");
    assert!(svg.header("content-security-policy").contains("sandbox"));
    assert!(
        svg.text().contains("2 slow tasks against 4 usual ones") && svg.text().contains("time for each task")
    );
    assert!(svg.text().contains("<title>Job.slow (2,000,000 us, 66.67%; +13.33%)"), "{}", svg.text());
    let evil: String = EVIL.bytes().map(|b| format!("%{b:02x}")).collect();
    let svg = ask(true, &format!("left.app=app-1&right.app={evil}&group=stage")).await;
    assert!(svg.text().contains("alert(") && !svg.text().contains("<script>alert"));
    let lines = ask(true, &format!("left.app=app-2&right.app={evil}&group=app,task&format=folded")).await;
    assert!(lines.text().lines().all(|line| line.split(' ').rev().take(2).all(|n| n.parse::<u64>().is_ok())));
    let nothing = ask(true, "left.app=app-1&right.app=app-1&right.stage=77").await;
    assert!(nothing.text().contains("the right side has no samples"));
}

#[tokio::test]
async fn bad_input_is_named() {
    for (query, code, parameter) in [
        ("left.exeuctor=1", "unknown_parameter", Some("left.exeuctor")),
        ("left.type=cpu", "unknown_parameter", Some("left.type")),
        ("middle.app=app-1", "unknown_parameter", Some("middle.app")),
        ("app=app-1", "bad_parameter", None),
        ("left.from=soon", "bad_parameter", Some("left.from")),
        ("right.query={", "bad_parameter", Some("right.query")),
        ("left.app=app-1&scale=task", "bad_parameter", Some("scale")),
        ("left.app=app-1&sort=name", "bad_parameter", Some("sort")),
        ("left.app=app-1&limit=0", "bad_parameter", Some("limit")),
        ("left.app=app-1&format=pprof", "bad_parameter", Some("format")),
        ("left.app=app-1&group=colour", "bad_parameter", Some("group")),
        ("slow=1", "bad_parameter", Some("app")),
        ("slow=1&app=app-1", "bad_parameter", Some("stage")),
        ("slow=1&app=app-1&stage=3&stage=10", "bad_parameter", Some("stage")),
        ("slow=1&app=app-1&stage=3&left.task=1", "bad_parameter", Some("left.task")),
        ("slow=perhaps", "bad_parameter", Some("slow")),
    ] {
        let got = ask(true, query).await;
        assert_eq!(got.status, 400, "{query}: {}", got.text());
        got.refused(400, code, parameter);
    }
    let few = ask(true, "slow=1&app=app-1&stage=10").await.refused(422, "too_few_tasks", Some("stage"));
    assert!(few.starts_with("1 tasks of the stage were seen"), "{few}");
    let other = ask(true, "slow=1&app=app-2&stage=3").await.refused(404, "unknown_stage", Some("stage"));
    assert!(other.contains("were: 0."), "{other}");
    ask(true, "left.app=nope&right.app=app-1").await.refused(404, "unknown_app", Some("app"));
}
