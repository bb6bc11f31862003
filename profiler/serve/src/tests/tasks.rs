//! Stages, tasks and the ledger: exact and sampled figures, order, limits, bad input.

use super::*;
use emberscope_model::LabelKey;
use emberscope_store::{AnswerLimits, MemoryStore, MemoryStoreConfig};
use fake::EVIL;

async fn ask(with_ledger: bool, path: &str) -> Got {
    let app = router(state(jobs::store(with_ledger)), Access::LocalHostOnly, Router::new());
    let sign = if path.contains('?') { '&' } else { '?' };
    send(app, request("GET", &format!("/api/v1/{path}{sign}{}", within(0, 30)))).await
}

fn near(value: &Value, want: f64) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((got - want).abs() < 1e-9, "{got} instead of {want}");
}

#[tokio::test]
async fn a_stage_has_exact_and_sampled_figures_side_by_side() {
    let body = ask(true, "stages?app=app-1").await.json();
    let stages = body["stages"].as_array().unwrap();
    let ids: Vec<_> = stages.iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!((ids, &body["count"]), (vec!["3", "10"], &json!(2)), "as numbers");
    let stage = &stages[0];
    assert_eq!(
        (&stage["app"], &stage["app_name"], &stage["stage_attempt"]),
        (&json!("app-1"), &json!("etl"), &json!("0"))
    );
    assert_eq!((&stage["tasks"], &stage["begun"], &stage["executors"]), (&json!(20), &json!(20), &json!(1)));
    assert_eq!(stage["first_seen"], "2026-11-21T10:00:11.000Z");
    assert_eq!(stage["last_seen"], "2026-11-21T10:00:15.019Z");
    // 18 tasks of 1,000 ms and their index (0..20 less 7 and 17), two of 3,000.
    let cpu = 18.0 + 0.166 + 6.0;
    let exact = &stage["exact"];
    near(&exact["cpu_seconds"], cpu);
    near(&exact["system_seconds"], cpu / 4.0);
    near(&exact["user_seconds"], cpu * 3.0 / 4.0);
    near(&exact["run_delay_seconds"], 2.0);
    near(&exact["blocked_seconds"], 1.0);
    near(&exact["wall_seconds"], cpu + 3.0);
    for (key, value) in [
        ("voluntary_switches", 100),
        ("involuntary_switches", 140),
        ("minor_faults", 220),
        ("major_faults", 20),
        ("read_bytes", 81_920),
        ("written_bytes", 10_240),
        ("begun", 20),
    ] {
        assert_eq!(exact[key], value, "{key}");
    }
    assert_eq!(stage["sampled"]["samples"], 2_400);
    near(&stage["sampled"]["cpu_seconds"], 24.0);
    near(&stage["sampled"]["sampling_error"], 1.0 / 2_400f64.sqrt());
    near(&stage["helpers"]["exact"]["cpu_seconds"], 0.5);
    assert_eq!(stage["helpers"]["sampled"]["samples"], 50);
    let classes: Vec<_> = stage["classes"].as_array().unwrap().iter().map(|c| &c["thread_class"]).collect();
    assert_eq!(classes, ["task", "python"]);
    assert_eq!(stage["classes"][0]["exact"], *exact);
    // Too short to be sampled, and there all the same.
    let short = &stages[1];
    near(&short["exact"]["cpu_seconds"], 0.25);
    assert_eq!(short["sampled"], json!({ "samples": 0, "cpu_seconds": 0.0, "sampling_error": null }));
    assert_eq!(short["helpers"]["exact"], Value::Null);
}

#[tokio::test]
async fn without_a_ledger_there_are_samples() {
    let stage = &ask(false, "stages?app=app-1").await.json()["stages"][0];
    assert_eq!((&stage["exact"], &stage["begun"], &stage["tasks"]), (&Value::Null, &Value::Null, &json!(20)));
    assert_eq!(stage["sampled"]["samples"], 2_400);
    assert_eq!(stage["first_seen"], "2026-11-21T10:00:10.000Z");
    let tasks = ask(false, "tasks?app=app-1&stage=3&limit=3").await.json();
    let tids: Vec<_> =
        tasks["tasks"].as_array().unwrap().iter().map(|t| t["task"].as_str().unwrap()).collect();
    assert_eq!(tids, ["107", "117", "104"], "the slow ones, then the one with a helper");
    let ledger = ask(false, "ledger?by=stage").await.json();
    assert_eq!((&ledger["count"], &ledger["ledger"]), (&json!(0), &json!([])));
    assert!(ledger["note"].as_str().unwrap().contains("only samples"), "{ledger}");
}

#[tokio::test]
async fn tasks_are_sorted_and_cut_and_the_answer_says_so() {
    let tids = async |query: &str| -> Vec<String> {
        let body = ask(true, &format!("tasks?app=app-1&stage=3&{query}")).await.json();
        let tasks = body["tasks"].as_array().unwrap();
        tasks.iter().map(|t| t["task"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(tids("limit=4").await, ["107", "117", "104", "119"], "104 has a helper of half a second");
    assert_eq!(tids("limit=2&sort=task").await, ["100", "101"]);
    assert_eq!(tids("limit=3&sort=wall").await, ["107", "117", "119"]);
    assert_eq!(tids("limit=2&sort=run_delay").await, ["100", "101"], "equal ones by number");
    assert_eq!(tids("sort=blocked").await.len(), 20);
    let body = ask(true, "tasks?app=app-1&stage=3&limit=1&sort=wall").await.json();
    assert_eq!((&body["count"], &body["cut"], &body["sort"]), (&json!(20), &json!(19), &json!("wall")));
    let task = &ask(true, "tasks?task=104").await.json()["tasks"][0];
    let labels = [
        ("app", "app-1"),
        ("stage", "3"),
        ("stage_attempt", "0"),
        ("task_index", "4"),
        ("task_attempt", "0"),
        ("executor", "1"),
        ("node", "n1"),
    ];
    for (key, value) in labels {
        assert_eq!(task[key], value, "{key}");
    }
    assert_eq!(task["first_seen"], "2026-11-21T10:00:11.004Z");
    near(&task["exact"]["cpu_seconds"], 1.004);
    near(&task["helpers"]["exact"]["cpu_seconds"], 0.5);
    assert_eq!((&task["sampled"]["samples"], &task["sampled"]["sampling_error"]), (&json!(100), &json!(0.1)));
}

#[tokio::test]
async fn the_ledger_sums_by_any_labels() {
    let body = ask(true, "ledger?app=app-1&by=stage,thread_class").await.json();
    assert_eq!((&body["by"], &body["count"]), (&json!(["stage", "thread_class"]), &json!(6)));
    let told: Vec<_> = body["ledger"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            (line["labels"]["stage"].as_str().unwrap(), line["labels"]["thread_class"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [("", "gc"), ("", "jit"), ("", "other"), ("10", "task"), ("3", "python"), ("3", "task")]
    );
    near(&body["ledger"][0]["exact"]["cpu_seconds"], 4.05);
    assert_eq!(body["ledger"][0]["first_seen"], "2026-11-21T10:00:00.000Z");
    let sum = ask(true, "ledger?app=app-1").await.json();
    assert_eq!((&sum["count"], &sum["ledger"][0]["labels"]), (&json!(1), &json!({})));
    near(&sum["ledger"][0]["exact"]["cpu_seconds"], 24.166 + 0.5 + 0.25 + 4.05 + 0.1 + 0.7);
}

#[tokio::test]
async fn bad_input_is_named() {
    for (path, parameter) in [
        ("ledger?by=colour", "by"),
        ("ledger?by=stage,stage", "by"),
        ("tasks?sort=name", "sort"),
        ("tasks?limit=0", "limit"),
        ("tasks?limit=100001", "limit"),
        ("stages?sort=task", "sort"),
        ("stages?limit=0", "limit"),
    ] {
        ask(true, path).await.refused(400, "bad_parameter", Some(parameter));
    }
    let message = ask(true, "ledger?by=stag").await.refused(400, "bad_parameter", Some("by"));
    assert!(message.contains("did you mean `stage`?"), "{message}");
    for path in ["stages?step=1", "ledger?sort=cpu", "tasks?by=stage"] {
        ask(true, path).await.refused(400, "unknown_parameter", path.split(['?', '=']).nth(1));
    }
    let other = ask(true, "stages?app=app-2&stage=3").await.json();
    assert_eq!((&other["count"], &other["stages"]), (&json!(0), &json!([])), "a stage of another app");
}

#[tokio::test]
async fn hostile_names_stay_text() {
    for path in ["stages", "tasks", "ledger?by=app,stage,task,executor", "tax"] {
        let got = ask(true, path).await;
        let text = got.json().to_string();
        assert!(text.contains("<script>"), "{path}: shown as it is, in JSON");
        assert!(!got.text().contains(['\n', '\u{1}']), "{path}: and escaped there");
        assert_eq!(got.header("x-content-type-options"), "nosniff");
    }
    let evil: String = EVIL.bytes().map(|b| format!("%{b:02x}")).collect();
    let stage = ask(true, &format!("stages?stage={evil}")).await.json();
    assert_eq!((&stage["count"], &stage["stages"][0]["stage"]), (&json!(1), &json!(EVIL)));
    let folded = ask(true, &format!("flamegraph?app={evil}&group=app,stage,task&format=folded")).await;
    let mut lines = folded.text().lines();
    let line = lines.next().unwrap();
    assert!(line.ends_with(" 5") && line.matches(';').count() == 3 && lines.next().is_none(), "{line}");
    let svg = ask(true, &format!("flamegraph?app={evil}&group=stage")).await;
    assert!(svg.text().contains("alert(") && !svg.text().contains("<script>alert"));
}

#[tokio::test]
async fn too_many_tasks_are_refused() {
    let answers = AnswerLimits { label_sets: 10, ..AnswerLimits::default() };
    let store = MemoryStore::new(MemoryStoreConfig { answers, ..MemoryStoreConfig::default() });
    let process = jobs::labels(&[(LabelKey::App, "a"), (LabelKey::Executor, "1")]);
    let tasks = (0..11).map(|i| jobs::thread(&process, "task", "1", "0", &i.to_string()));
    let ledger = tasks.map(|task| jobs::line(&task, 1, 0, 1)).collect();
    store.append(jobs::window(0, Vec::new(), ledger, Vec::new()));
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    for path in ["stages", "tasks", "ledger?by=task"] {
        let sign = if path.contains('?') { '&' } else { '?' };
        let got = send(app.clone(), request("GET", &format!("/api/v1/{path}{sign}{}", within(0, 10)))).await;
        got.refused(422, "answer_too_large", None);
    }
    let one = send(app, request("GET", &format!("/api/v1/ledger?by=stage&{}", within(0, 10)))).await;
    assert_eq!(one.json()["count"], 1);
}

#[tokio::test]
async fn wall_time_is_whole() {
    use emberscope_model::{FrameKind, Row, SampleKind};
    let store = jobs::store(true);
    let pairs = [(LabelKey::App, "app-1"), (LabelKey::Stage, "3"), (LabelKey::Task, "100")];
    let labels = [(LabelKey::ThreadClass, "task")].into_iter().chain(pairs);
    let wait = |reason: &'static str, weight| {
        let labels: Vec<_> = labels.clone().chain([(LabelKey::Wait, reason)]).collect();
        let row =
            jobs::row(&Arc::new(jobs::labels(&labels)), &[jobs::RUN, (FrameKind::Kernel, "schedule")], 1);
        Row { kind: SampleKind::OffCpu, weight, ..row }
    };
    let rows = vec![wait("lock", 400 * jobs::MS), wait("idle", 100 * jobs::MS)];
    store.append(jobs::window(2, rows, Vec::new(), Vec::new()));
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let ask = async |more: &str| {
        let path = format!("/api/v1/flamegraph?type=wall&stage=3&format=folded{more}&{}", within(0, 40));
        send(app.clone(), request("GET", &path)).await.text().to_owned()
    };
    let of = |folded: &str, line: &str| {
        let weight = folded.lines().find_map(|l| l.strip_prefix(line)?.trim().parse::<u64>().ok());
        // Weights of waits are stored to three digits.
        (weight.unwrap_or_else(|| panic!("{line} is not in {folded}")) + jobs::MS / 2) / jobs::MS
    };
    let folded = ask("").await;
    // 20 tasks and a feeder wanted to run 100 ms each, 30 of them throttled; the tasks were blocked 50 ms each, of which 500 ms
    // were seen.
    assert_eq!(of(&folded, "[waits for a CPU]"), 1_470);
    assert_eq!(of(&folded, "[throttled by a CPU quota]"), 630);
    assert_eq!(of(&folded, "[unknown: wait not sampled]"), 500);
    assert_eq!(of(&folded, "java.lang.Thread.run;schedule"), 400, "idle threads are left out");
    assert_eq!(of(&folded, "java.lang.Thread.run;Feeder.write"), 500);
    let by = ask("&group=wait,thread_class").await;
    assert_eq!(of(&by, "wait=cpu;thread_class=task;[waits for a CPU]"), 1_400);
    assert_eq!(of(&by, "wait=throttled;thread_class=task;[throttled by a CPU quota]"), 600);
    assert_eq!(of(&by, "wait=(on cpu);thread_class=python;java.lang.Thread.run;Feeder.write"), 500);
    assert_eq!(of(&by, "wait=lock;thread_class=task;java.lang.Thread.run;schedule"), 400);
    assert_eq!(of(&by, "wait=(none);thread_class=task;[unknown: wait not sampled]"), 500);
    let locks = ask("&wait=lock").await;
    assert_eq!(locks.lines().count(), 1, "{locks}");
}

#[tokio::test]
async fn stages_are_sorted_and_cut() {
    let app = || router(state(jobs::store(true)), Access::LocalHostOnly, Router::new());
    let ask = |query: &str| format!("/api/v1/stages?app=app-1&{query}&{}", within(0, 30));
    let numbers = |body: &Value| -> Vec<String> {
        body["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap().to_owned()).collect()
    };
    let body = send(app(), request("GET", &ask(""))).await.json();
    assert_eq!((numbers(&body), &body["cut"]), (vec!["3".to_owned(), "10".to_owned()], &json!(0)));
    // Of twenty tasks the tenth, and the slowest.
    assert_eq!(body["stages"][0]["durations"], json!({ "median_seconds": 1.16, "max_seconds": 3.15 }));
    for sort in ["cpu", "run_delay", "blocked", "wall", "amount"] {
        let body = send(app(), request("GET", &ask(&format!("sort={sort}&limit=1")))).await.json();
        assert_eq!(
            (numbers(&body), &body["cut"], &body["count"]),
            (vec!["3".to_owned()], &json!(1), &json!(2))
        );
    }
    let two = "app=app-2&sort=cpu";
    let body = send(app(), request("GET", &ask(two))).await.json();
    assert_eq!(
        numbers(&body),
        ["3", "0", "10"],
        "0.8 s by samples where there is no ledger, 0.25 s by the ledger"
    );
}
