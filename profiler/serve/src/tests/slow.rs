//! Slow tasks: by what they are slow, and what of that is more than chance.

use super::*;
use emberscope_model::{FrameKind, LabelKey, LabelSetBuilder, Row, SampleKind};
use emberscope_store::{MemoryStore, Store};
use jobs::{MS, RUN, WORK, labels, line, row, thread};

/// A stage of ten tasks: milliseconds of CPU, samples in [`WORK`], and of blocked time of each; with samples of waits, or
/// without.
fn stage(tasks: [(u64, u64, u64); 10], with_waits: bool) -> MemoryStore {
    let process = labels(&[(LabelKey::App, "a"), (LabelKey::Role, "executor"), (LabelKey::Executor, "1")]);
    let (mut rows, mut ledger) = (Vec::new(), Vec::new());
    for (index, (cpu, samples, blocked)) in tasks.into_iter().enumerate() {
        let task = thread(&process, "task", "1", &index.to_string(), &(70 + index).to_string());
        let mut of = line(&task, cpu, 0, 1);
        of.sums.wall_ns = of.sums.wall_ns - of.sums.blocked_ns() + blocked * MS;
        ledger.push(of);
        rows.push(row(&task, &[RUN, WORK], samples));
        if with_waits {
            let labels = Arc::new(LabelSetBuilder::from_set(&task).set(LabelKey::Wait, "shuffle").build());
            let wait = row(&labels, &[RUN, (FrameKind::JavaCompiled, "Job.fetch")], 1);
            rows.push(Row { kind: SampleKind::OffCpu, weight: blocked * MS, ..wait });
        }
    }
    let store = MemoryStore::new(Default::default());
    store.append(jobs::window(0, rows, ledger, Vec::new()));
    store
}

/// The last of ten tasks, of 4 s each, waits 6 s more at two locks.
fn at_locks() -> MemoryStore {
    let process = labels(&[(LabelKey::App, "a"), (LabelKey::Role, "executor"), (LabelKey::Executor, "1")]);
    let (mut rows, mut ledger) = (Vec::new(), Vec::new());
    for index in 0..10 {
        let task = thread(&process, "task", "1", &index.to_string(), &(70 + index).to_string());
        let wait = |lock: &str, owner: &str, ms: u64| {
            let labels = LabelSetBuilder::from_set(&task).set(LabelKey::Wait, "lock");
            let labels = labels.set(LabelKey::Lock, lock).set(LabelKey::LockOwner, owner).build();
            let wait = row(&Arc::new(labels), &[RUN, (FrameKind::Class, "a.Cache")], 1);
            Row { kind: SampleKind::OffCpu, weight: ms * MS, ..wait }
        };
        let waits = [wait("a.Cache", "loader", 5_000), wait("a.Pool", "(not seen)", 1_000)];
        let waited = if index == 9 { 6_000 } else { 0 };
        rows.extend(waits.into_iter().filter(|_| waited > 0));
        rows.push(row(&task, &[RUN, WORK], 400));
        let mut of = line(&task, 4_000, 0, 1);
        of.sums.wall_ns = of.sums.wall_ns - of.sums.blocked_ns() + waited * MS;
        ledger.push(of);
    }
    let store = MemoryStore::new(Default::default());
    store.append(jobs::window(0, rows, ledger, Vec::new()));
    store
}

#[tokio::test]
async fn locks_have_their_owners() {
    let body = slow(at_locks(), "&by=wall").await.json();
    assert_eq!(body["slow"]["because"][0]["of"], "lock", "{}", body["slow"]);
    let want = json!([
        { "lock": "a.Cache", "owner": "loader", "seconds": 5.0 },
        { "lock": "a.Pool", "owner": "(not seen)", "seconds": 1.0 },
    ]);
    let mut locks = body["slow"]["locks"].clone();
    locks.as_array_mut().unwrap().iter_mut().for_each(|lock| lock["seconds"] = hundredths(&lock["seconds"]));
    assert_eq!(locks, want);
    assert_eq!(
        slow(stage(blocked(), true), "").await.json()["slow"]["locks"],
        json!([]),
        "none waits for one"
    );
}

async fn slow(store: MemoryStore, more: &str) -> Got {
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let query = format!("/api/v1/diff?slow=1&app=a&stage=1&format=json{more}&{}", within(0, 10));
    send(app, request("GET", &query)).await
}

/// The ninth took 16.2 s, 12.1 of them blocked, the others 4.2 s; the tenth used a little more CPU.
fn blocked() -> [(u64, u64, u64); 10] {
    let mut tasks = [(4_000, 400, 100); 10];
    tasks[8].2 = 12_100;
    tasks[9].0 = 4_040;
    tasks
}

#[tokio::test]
async fn a_task_that_waits_long_is_slow_too() {
    let body = slow(stage(blocked(), true), "").await.json();
    assert_eq!((&body["slow"]["by"], &body["slow"]["long"]), (&json!("wall"), &Value::Null));
    assert_eq!(body["right"]["tasks"][0]["task_index"], "8");
    let because = &body["slow"]["because"];
    assert_eq!((&because[0]["of"], &because[1]), (&json!("shuffle"), &Value::Null));
    assert_eq!(
        (&body["cause"], &body["significant"]),
        (&Value::Null, &json!(false)),
        "of CPU time it has no more"
    );
    let cpu = slow(stage(blocked(), true), "&by=cpu").await.json();
    assert_eq!((&cpu["slow"]["by"], &cpu["right"]["tasks"][0]["task_index"]), (&json!("cpu"), &json!("9")));
    assert_eq!(
        (&cpu["slow"]["long"]["task_index"], &cpu["slow"]["long"]["waits_sampled"]),
        (&json!("8"), &json!(true))
    );
}

#[tokio::test]
async fn without_samples_of_waits_it_is_named_beside_the_slow_ones() {
    let body = slow(stage(blocked(), false), "").await.json();
    assert_eq!(body["slow"]["by"], "cpu", "up to Spark 4.1 it may have waited for its next task");
    let long = &body["slow"]["long"];
    assert_eq!((&long["task_index"], &long["waits_sampled"]), (&json!("8"), &json!(false)));
    assert_eq!((&long["wall_seconds"], &long["blocked_seconds"]), (&json!(16.2), &json!(12.1)));
    assert_eq!(long["usual_wall_seconds"], 4.2);
    let wall = slow(stage(blocked(), false), "&by=wall").await.json();
    assert_eq!(wall["right"]["tasks"][0]["task_index"], "8");
    let even = slow(stage([(4_000, 400, 100); 10], false), "").await.json();
    assert_eq!(even["slow"]["long"], Value::Null);
}

#[tokio::test]
async fn no_cause_is_named_inside_the_noise() {
    let mut tasks = [(200, 20, 100); 10];
    tasks[9] = (202, 22, 100);
    let body = slow(stage(tasks, false), "").await.json();
    assert_eq!((&body["significant"], &body["cause"]), (&json!(false), &Value::Null));
    assert_eq!(body["slow"]["because"], json!([]), "2 ms of CPU time that no sample bears out");
    tasks[9] = (600, 60, 100);
    let body = slow(stage(tasks, false), "").await.json();
    assert_eq!((&body["significant"], &body["cause"]["name"]), (&json!(true), &json!("Job.work")));
    assert_eq!(body["slow"]["because"][0]["of"], "cpu");
}

#[tokio::test]
async fn what_makes_tasks_slow_is_for_slow_ones_only() {
    let app = router(state(jobs::store(true)), Access::LocalHostOnly, Router::new());
    let query = format!("/api/v1/diff?left.app=app-1&by=wall&{}", within(0, 30));
    let message = send(app, request("GET", &query)).await.refused(400, "bad_parameter", Some("by"));
    assert!(message.contains("slow=1"), "{message}");
    slow(stage(blocked(), false), "&by=time").await.refused(400, "bad_parameter", Some("by"));
}
