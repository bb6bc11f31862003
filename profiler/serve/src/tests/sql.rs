//! Queries and their operators, through the router.

use super::super::spark::tests::Fake;
use super::*;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, SparkFact, SparkFactKind,
    SparkSource, Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_store::{MemoryStore, MemoryStoreConfig};

const STAGE_2: &str =
    "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage2";

/// Tasks of stage 3.1, which is the execution 7's, and of stage 4, of which nothing is told.
/// With a plan of that text and these edges.
fn store(plan: Option<(&str, &[u32])>) -> Arc<MemoryStore> {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    let row = |stage: &str, attempt: &str, role: &str, names: &[&str], count: u64| {
        let labels = [
            (LabelKey::App, "app-1"),
            (LabelKey::AppName, "nightly"),
            (LabelKey::Role, role),
            (LabelKey::Stage, stage),
            (LabelKey::StageAttempt, attempt),
        ];
        let labels = labels.iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(*key, *value));
        let frame = |name: &&str| Arc::new(Frame::new(FrameKind::JavaCompiled, *name, ""));
        Row {
            labels: Arc::new(labels.build()),
            stack: Arc::new(Stack { frames: names.iter().map(frame).collect(), end: StackEnd::Root }),
            kind: SampleKind::Cpu,
            count,
            weight: count * 10_000_000,
        }
    };
    let next = format!("{STAGE_2}.processNext");
    let sort = format!("{STAGE_2}.sort_addToSorter_0$");
    let python = "org.apache.spark.sql.execution.python.BatchEvalPythonExec.x";
    let from = WallTime::from_millis(START * 1000);
    store.append(Window {
        range: TimeRange { from, until: from.plus(10 * SECOND) },
        rows: vec![
            row("3", "1", "executor", &["run", &next, &sort], 6),
            Row { kind: SampleKind::OffCpu, ..row("3", "1", "executor", &["run", &next, &sort], 5) },
            row("3", "1", "executor", &["run", &next], 2),
            row("3", "1", "executor", &["run", python], 1),
            row("3", "1", "python", &["main (pyspark/worker.py)", "f (job.py)"], 3),
            row("4", "0", "executor", &["run"], 4),
            row("", "", "driver", &["main"], 9),
        ],
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
    let fake = Fake::default();
    let told = fake.stages("app-1", Duration::ZERO);
    let stage = told.value().and_then(|told| told.facts().next()).expect("a stage");
    let sql =
        SparkFact { kind: SparkFactKind::Sql, id: "7".into(), name: "select 1".into(), ..stage.clone() };
    store.learn(&[stage.clone(), sql.clone()]);
    if let Some((text, edges)) = plan {
        let kind = SparkFactKind::Plan;
        let (name, description) = ("".into(), Some(text.into()));
        store.learn(&[SparkFact { kind, name, description, refs: edges.into(), ..sql }]);
    }
    Arc::new(store)
}

async fn ask(path: &str) -> Got {
    ask_of(store(None), path).await
}

async fn ask_of(store: Arc<MemoryStore>, path: &str) -> Got {
    let state = ServeState { store, ..state(FakeStore::default()) };
    let app = router(state, Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/{path}&{}", within(0, 10)))).await
}

#[tokio::test]
async fn queries_by_what_their_tasks_did_from_what_is_kept() {
    let answer = ask("sql?app=app-1").await.json();
    let rows = answer["queries"].as_array().expect("queries");
    let brief = |row: &Value| {
        json!([row["execution"], row["description"], row["stages"], row["samples"], row["share"]])
    };
    let want = [json!([7, "select 1", [3], 12, 0.75]), json!([null, null, [4], 4, 0.25])];
    assert_eq!(rows.iter().map(brief).collect::<Vec<_>>(), want);
    assert_eq!((&answer["operators"], &answer["spark"]["state"]), (&Value::Null, &json!("kept")));
    assert_eq!(rows[0]["app_name"], "nightly");
    let cut = ask("sql?app=app-1&limit=1").await.json();
    assert_eq!(
        (&cut["count"], &cut["cut"], cut["queries"].as_array().map(Vec::len)),
        (&json!(2), &json!(1), Some(1))
    );
    let unknown = ask("sql?app=app-1&join=no").await.json();
    assert_eq!(brief(&unknown["queries"][0]), json!([null, null, [3, 4], 16, 1.0]));
}

#[tokio::test]
async fn a_query_has_the_accounts_of_its_tasks() {
    use LabelKey::{App, Role, Stage, StageAttempt, Task, ThreadClass, Wait};
    let all = [(App, "app-1"), (Role, "executor"), (Stage, "3"), (StageAttempt, "1"), (Task, "1")];
    let of = |class: &str, wait: &str| {
        let set = LabelSetBuilder::from_set(&jobs::labels(&all)).set(ThreadClass, class).set(Wait, wait);
        Arc::new(set.build())
    };
    let waits = Row { kind: SampleKind::OffCpu, ..jobs::row(&of("task", "shuffle"), &[jobs::RUN], 100) };
    let ledger = vec![
        jobs::line(&of("task", ""), 1_000, 1_000, 5_000),
        jobs::line(&of("task", ""), 500, 1_000, 5_000),
        // Of a thread that works for the task: its waits are none of the task's.
        jobs::line(&of("python", ""), 700, 1_000, 5_000),
    ];
    let with_accounts = store(None);
    with_accounts.append(jobs::window(0, vec![waits], ledger, Vec::new()));
    let answer = ask_of(with_accounts, "sql?app=app-1").await.json();
    let rows = answer["queries"].as_array().expect("queries");
    let exact = &rows[0]["exact"];
    assert_eq!((&exact["cpu_seconds"], &exact["run_delay_seconds"]), (&json!(1.5), &json!(0.2)), "{exact}");
    let by = &rows[0]["waited"]["by"];
    assert_eq!((by.as_object().map(serde_json::Map::len), hundredths(&by["shuffle"])), (Some(1), json!(1.0)));
    assert_eq!((&rows[1]["exact"], &rows[1]["waited"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn operators_of_a_query() {
    let answer = ask("sql?app=app-1&execution=7").await.json();
    let rows = answer["operators"].as_array().expect("operators");
    let brief = |row: &Value| json!([row["operator"], row["of"], row["samples"], row["stages"]]);
    let want = [
        json!(["Sort", "operator", 6, [3]]),
        // With the half in the Python worker.
        json!(["BatchEvalPython", "operator", 4, [3]]),
        json!(["WholeStageCodegen (2)", "codegen", 2, [3]]),
        json!(["unknown", "unknown", 0, []]),
    ];
    assert_eq!(rows.iter().map(brief).collect::<Vec<_>>(), want);
    assert_eq!((&rows[0]["share"], &answer["queries"][0]["samples"]), (&json!(0.5), &json!(12)));
    assert_eq!(rows[1]["labels"], json!(["(python)", "BatchEvalPython"]));
    let none =
        json!({"nodes": [], "edges": [], "says": "Spark gave no plan of this query, or it is not read yet."});
    assert_eq!(answer["plan"], none);
    let told = ask("sql?app=app-1&execution=8").await.refused(404, "unknown_execution", Some("execution"));
    assert!(told.contains("there are: 7."), "{told}");
    ask("sql?execution=x").await.refused(400, "bad_parameter", Some("execution"));
}

#[tokio::test]
async fn a_plan_tells_the_operators_of_a_loop() {
    let text = "0 - WriteFiles\n1 - BatchEvalPython\n2 2 Project\n3 2 Sort\n4 2 Range\n";
    let with_plan = store(Some((text, &[1, 0, 2, 1, 3, 2, 4, 3])));
    let answer = ask_of(with_plan, "sql?app=app-1&execution=7").await.json();
    let rows = answer["operators"].as_array().expect("operators");
    let brief =
        |row: &Value| json!([row["operator"], row["of"], row["samples"], row["nodes"], row["labels"]]);
    let want = [
        json!(["Sort", "operator", 6, [3], ["Sort"]]),
        json!(["BatchEvalPython", "operator", 4, [1], ["(python)", "BatchEvalPython"]]),
        json!(["Sort+Project (codegen 2)", "fused", 2, [2, 3], ["WholeStageCodegen (2)"]]),
        json!(["unknown", "unknown", 0, [], []]),
    ];
    assert_eq!(rows.iter().map(brief).collect::<Vec<_>>(), want);
    let plan = &answer["plan"];
    let node = |node: &Value| {
        let shared = &node["shared"];
        json!([node["name"], node["codegen"], node["in_method_of"], node["samples"], shared["samples"]])
    };
    let nodes: Vec<Value> = plan["nodes"].as_array().expect("nodes").iter().map(node).collect();
    let want = [
        json!(["WriteFiles", null, null, 0, 0]),
        json!(["BatchEvalPython", null, null, 4, 0]),
        json!(["Project", 2, null, 0, 2]),
        json!(["Sort", 2, null, 6, 2]),
        json!(["Range", 2, 3, 0, 0]),
    ];
    assert_eq!(nodes, want);
    assert_eq!((plan["edges"].as_array().map(Vec::len), &plan["says"]), (Some(4), &json!("")));
    assert_eq!(plan["nodes"][3]["share"], 0.5);
    let waited = |row: &Value| hundredths(&row["waited_seconds"]);
    assert_eq!((waited(&rows[0]), waited(&rows[1])), (json!(0.05), Value::Null));
    assert_eq!((waited(&plan["nodes"][3]), waited(&plan["nodes"][2])), (json!(0.05), Value::Null));
}

#[tokio::test]
async fn a_plan_that_is_none_says_so() {
    for (text, edges) in [("1 1 Sort\n1 1 Sort", &[][..]), ("1 1 Sort", &[1, 1]), ("x", &[])] {
        let answer = ask_of(store(Some((text, edges))), "sql?app=app-1&execution=7").await.json();
        assert_eq!(answer["plan"]["says"], "The plan that is kept is none.");
        assert_eq!(answer["operators"][2]["of"], "codegen");
    }
}

#[tokio::test]
async fn operators_select_and_group() {
    let folded = ask("flamegraph?format=folded&app=app-1&stage=3&group=operator").await;
    let lines: Vec<&str> = folded.text().lines().collect();
    assert!(
        lines.iter().any(|line| line.starts_with("operator=Sort;run;") && line.ends_with(" 6")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("operator=(python);main (pyspark/worker.py);")),
        "{lines:?}"
    );
    let sort = ask("flamegraph?format=folded&operator=Sort").await;
    assert_eq!((sort.text().lines().count(), sort.header("x-emberscope-samples")), (1, "6"));
    let either = ask("flamegraph?format=folded&query=%7Boperator%3D~%22Sort%7CBatch.*%22%7D").await;
    assert_eq!(either.text().lines().count(), 2);
    let top = ask("top?operator=Sort").await.json();
    assert_eq!(top["top"][0]["self"]["samples"], 6);
    let values = ask("labels/operator/values?app=app-1").await.json();
    assert_eq!(values["values"][0]["value"], "unknown");
    let diff = ask("diff?format=json&left.operator=Sort&right.operator=unknown").await.json();
    assert_eq!((&diff["left"]["samples"], &diff["right"]["samples"]), (&json!(6), &json!(13)));
    let series = ask("series?by=operator").await.json();
    let lines = series["series"].as_array().unwrap();
    let sort = lines.iter().find(|line| line["labels"]["operator"] == "Sort").unwrap();
    let samples = |point: &serde_json::Value| point["samples"].as_u64().unwrap_or(0);
    assert_eq!(sort["points"].as_array().unwrap().iter().map(samples).sum::<u64>(), 6);
    for path in ["stages?operator=Sort", "ledger?by=operator", "tax?operator=Sort"] {
        ask(path).await.refused(400, "bad_parameter", Some("operator"));
    }
}

#[tokio::test]
async fn queries_and_jobs_select_and_group() {
    let folded = ask("flamegraph?format=folded&group=sql").await;
    let sum = |of: &str| -> u64 {
        let lines = folded.text().lines().filter(|line| line.starts_with(of));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    };
    assert_eq!((sum("sql=7;"), sum("sql=unknown;"), sum("sql=(none);"), sum("")), (12, 4, 9, 25));
    let both = ask("flamegraph?format=folded&group=sql,operator&sql=7").await;
    assert!(both.text().lines().any(|line| line.starts_with("sql=7;operator=Sort;run;")), "{}", both.text());
    let values = ask("labels/sql/values?app=app-1").await.json();
    assert_eq!((&values["values"][0]["value"], &values["values"][0]["samples"]), (&json!("7"), &json!(12)));
    let names = ask("labels?app=app-1").await.json();
    let has =
        |name: &str| names["labels"].as_array().is_some_and(|all| all.iter().any(|known| known == name));
    assert!(has("sql") && has("spark_job") && has("operator"), "{names}");
    let stages = ask("stages?app=app-1&sql=7").await.json();
    assert_eq!(
        (stages["stages"].as_array().map(Vec::len), &stages["stages"][0]["stage"]),
        (Some(1), &json!("3"))
    );
    let series = ask("series?app=app-1&by=sql&step=10s").await.json();
    assert_eq!(series["series"].as_array().map(Vec::len), Some(3), "{series}");
}
