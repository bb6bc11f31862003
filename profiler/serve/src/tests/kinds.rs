//! Stages, tasks and differences of kinds of samples that are no CPU time: each in its own unit, beside what is exact.

use super::*;
use emberscope_model::{LabelKey, LabelSet, LabelSetBuilder, Row, SampleKind};
use emberscope_store::MemoryStore;

fn near(value: &Value, want: f64) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    // Weights of waits are stored to three digits.
    assert!((got - want).abs() <= want.abs() / 256.0, "{got} instead of {want}");
}

/// Ids of the rows of an answer.
fn ids<'a>(body: &'a Value, rows: &str, id: &str) -> Vec<&'a str> {
    body[rows].as_array().unwrap().iter().map(|row| row[id].as_str().unwrap()).collect()
}

/// The store of [`jobs`], in whose stages threads allocate and wait: most bytes in stage 10, by one task and a thread that it
/// started; in stage 3 by the task 119 more than by 100.
fn of_other_kinds() -> MemoryStore {
    let store = jobs::store(true);
    let process = [(LabelKey::App, "app-1"), (LabelKey::Executor, "1"), (LabelKey::Node, "n1")];
    let process = jobs::labels(&process);
    let of =
        |class: &str, stage: &str, index: &str, tid: &str| jobs::thread(&process, class, stage, index, tid);
    let row = |labels: &Arc<LabelSet>, kind, count: u64, weight: u64| {
        let row = jobs::row(labels, &[jobs::RUN, jobs::WORK], count);
        Row { kind, weight, ..row }
    };
    let allocated = |labels: Arc<LabelSet>, count: u64| row(&labels, SampleKind::Alloc, count, count << 19);
    let waits = LabelSetBuilder::from_set(&of("task", "3", "0", "100"));
    let locked = waits.clone().set(LabelKey::Wait, "lock").set(LabelKey::Lock, "a.Cache").build();
    let shuffled = waits.set(LabelKey::Wait, "shuffle").build();
    let rows = vec![
        allocated(of("task", "3", "0", "100"), 100),
        allocated(of("task", "3", "19", "119"), 300),
        allocated(of("task", "10", "0", "200"), 400),
        allocated(of("other", "10", "0", "200"), 100),
        allocated(of("other", "", "", ""), 900),
        row(&Arc::new(locked), SampleKind::OffCpu, 4, 400 * jobs::MS),
        row(&Arc::new(shuffled), SampleKind::OffCpu, 1, 100 * jobs::MS),
    ];
    store.append(jobs::window(2, rows, Vec::new(), Vec::new()));
    store
}

#[tokio::test]
async fn each_kind_has_its_amount_beside_what_is_exact() {
    let app = router(state(of_other_kinds()), Access::LocalHostOnly, Router::new());
    let ask = async |query: &str| {
        let path = format!("/api/v1/{query}&app=app-1&{}", within(0, 40));
        send(app.clone(), request("GET", &path)).await
    };
    let body = ask("stages?type=alloc").await.json();
    assert_eq!(body["type"], "alloc");
    assert_eq!(ids(&body, "stages", "stage"), ["10", "3"], "the most bytes first");
    let stages = &body["stages"];
    let want = json!({ "samples": 400, "allocated_bytes": 400u64 << 19, "sampling_error": 0.05 });
    assert_eq!(stages[0]["sampled"], want);
    assert_eq!(stages[0]["helpers"]["sampled"]["allocated_bytes"], 100u64 << 19);
    assert_eq!(stages[0]["python"]["sampled"]["allocated_bytes"], 0);
    near(&stages[0]["exact"]["cpu_seconds"], 0.25);
    let folded = ask("flamegraph?type=alloc&unit=bytes&format=folded&stage=10").await;
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let sum: u64 = folded.text().lines().map(weight).sum();
    assert_eq!(sum, 500 << 19, "what the flame graph holds");
    // By another kind exact figures and waits are the same.
    let by_cpu = ask("stages?sort=stage").await.json();
    let by_bytes = ask("stages?sort=stage&type=alloc").await.json();
    for at in 0..2 {
        let (cpu, bytes) = (&by_cpu["stages"][at], &by_bytes["stages"][at]);
        for key in ["stage", "tasks", "begun", "exact", "waited", "durations"] {
            assert_eq!(cpu[key], bytes[key], "{key}");
        }
        assert_eq!(cpu["helpers"]["exact"], bytes["helpers"]["exact"]);
    }
    let tasks = ask("tasks?type=alloc&limit=3").await.json();
    assert_eq!(tasks["sort"], "amount");
    assert_eq!(ids(&tasks, "tasks", "task"), ["200", "119", "100"]);
    assert_eq!(tasks["tasks"][1]["sampled"]["allocated_bytes"], 300u64 << 19);
    let by_cpu = ask("tasks?type=alloc&limit=2&sort=cpu").await.json();
    assert_eq!(ids(&by_cpu, "tasks", "task"), ["107", "117"]);
}

#[tokio::test]
async fn what_only_waits_have_selects_waits_alone() {
    let app = router(state(of_other_kinds()), Access::LocalHostOnly, Router::new());
    let ask = async |query: &str| {
        let path = format!("/api/v1/stages?app=app-1&{query}&{}", within(0, 40));
        send(app.clone(), request("GET", &path)).await.json()
    };
    let locks = ask("type=lock").await;
    let stage = &locks["stages"][0];
    assert_eq!((&locks["count"], &stage["stage"]), (&json!(2), &json!("3")));
    near(&stage["sampled"]["lock_seconds"], 0.4);
    near(&stage["exact"]["wall_seconds"], 24.166 + 3.0);
    near(&stage["waited"]["seconds"], 0.5);
    let of_class = ask("type=off-cpu&lock=a.Cache").await;
    near(&of_class["stages"][0]["sampled"]["off_cpu_seconds"], 0.4);
    let wall = ask("type=wall").await;
    near(&wall["stages"][0]["sampled"]["wall_seconds"], 24.0 + 0.5);
    assert_eq!(ask("wait=lock").await["count"], 0, "no sample of CPU time waits");
}

#[tokio::test]
async fn differences_are_in_the_unit_of_the_kind() {
    let app = router(state(of_other_kinds()), Access::LocalHostOnly, Router::new());
    let ask = async |query: &str| {
        let query = format!("app=app-1&left.stage=3&right.stage=10&type=alloc&{query}&{}", within(0, 40));
        send(app.clone(), request("GET", &format!("/api/v1/diff?{query}"))).await
    };
    let body = ask("format=json&scale=absolute&nodes=1").await.json();
    let (left, right) = ((400u64 << 19) as f64, (500u64 << 19) as f64);
    assert_eq!(body["left"]["type"], "alloc");
    assert_eq!(body["left"]["allocated_bytes"], 400u64 << 19);
    let total = &body["total"];
    assert_eq!((&total["left_amount"], &total["right_amount"]), (&json!(left), &json!(right)));
    assert_eq!((&total["left_seconds"], &total["difference"]), (&Value::Null, &json!(right - left)));
    let error = (left * left / 400.0 + right * right / 500.0).sqrt();
    assert!((total["difference_error"].as_f64().unwrap() / error - 1.0).abs() < 1e-9, "{total}");
    assert_eq!((&body["significant"], &body["cause"]["name"]), (&json!(true), &json!("Job.work")));
    let (row, nodes) = (&body["diff"][0], &body["nodes"]);
    assert_eq!((&row["name"], &row["self"]["right_amount"]), (&json!("Job.work"), &json!(right)));
    assert_eq!(nodes[1]["total"], json!([left, right]));
    let folded = ask("format=folded&scale=absolute").await;
    assert_eq!(folded.text(), "java.lang.Thread.run;Job.work 209715200 262144000\n");
    let svg = ask("format=svg").await;
    assert!(svg.text().contains("<title>Job.work (256,000 KiB, 100.00%"), "{}", svg.text());
    assert!(svg.text().contains("red: more bytes; the left side scaled to the right one"), "{}", svg.text());
}

#[tokio::test]
async fn slow_tasks_are_slow_by_time_and_compared_by_any_kind() {
    let store = of_other_kinds();
    let process = [(LabelKey::App, "app-1"), (LabelKey::Executor, "1"), (LabelKey::Node, "n1")];
    let process = jobs::labels(&process);
    let allocated = |index: &str, tid: &str, count: u64| {
        let thread = jobs::thread(&process, "task", "3", index, tid);
        let row = jobs::row(&thread, &[jobs::RUN, jobs::WORK], count);
        Row { kind: SampleKind::Alloc, weight: count << 19, ..row }
    };
    // Two slow tasks, and one of the four usual ones.
    let rows = vec![allocated("7", "107", 200), allocated("17", "117", 200), allocated("10", "110", 100)];
    store.append(jobs::window(3, rows, Vec::new(), Vec::new()));
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let ask = async |kind: &str, more: &str| {
        let query = format!("app=app-1&stage=3&slow=1&type={kind}&{more}&{}", within(0, 40));
        send(app.clone(), request("GET", &format!("/api/v1/diff?{query}"))).await
    };
    let body = ask("alloc", "format=json").await.json();
    assert_eq!((&body["slow"]["by"], &body["scale"]), (&json!("cpu"), &json!("task")));
    assert_eq!(ids(&body["right"], "tasks", "task"), ["107", "117"]);
    let total = &body["total"];
    near(&total["left_amount"], (100u64 << 19) as f64 / 4.0);
    near(&total["right_amount"], (400u64 << 19) as f64 / 2.0);
    assert_eq!(body["slow"]["because"][0]["of"], "cpu", "of CPU time no sample was asked for");
    assert!(ask("alloc", "format=svg").await.text().contains("bytes for each task"));
    // Locks are waited for by the clock: a condition that only waits fulfil chooses no tasks.
    let locks = ask("lock", "format=json").await.json();
    assert_eq!((&locks["slow"]["by"], &locks["slow"]["tasks"]), (&json!("wall"), &json!(20)));
    assert_eq!(ask("page-faults", "format=json").await.json()["right"]["samples"], 0);
}

#[tokio::test]
async fn an_app_is_known_whatever_was_sampled_of_it() {
    let app = router(state(of_other_kinds()), Access::LocalHostOnly, Router::new());
    let ask = async |query: &str| {
        let path = format!("/api/v1/stages?{query}&{}", within(0, 40));
        send(app.clone(), request("GET", &path)).await
    };
    let none = ask("app=other%20job&type=alloc").await.json();
    assert_eq!((&none["quality"]["samples"], &none["count"]), (&json!(0), &json!(0)), "nothing of it");
    let named = ask("app=etl&run=latest&type=alloc").await.json();
    assert_eq!(ids(&named, "stages", "stage"), ["10", "3"]);
    ask("app=nobody&type=alloc").await.refused(404, "unknown_app", Some("app"));
}
