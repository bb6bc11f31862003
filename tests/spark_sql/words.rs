//! What Spark said of its applications, kept in a store with the fixture's windows: as tables, and as labels by which Spark
//! selects and groups as HTTP does.

use super::asked::{self, Set};
use super::fixture;
use anyhow::{Result, ensure};
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, SparkFact, SparkFactKind,
    SparkPlan, Stack, StackEnd, TimeRange, WallTime, Window,
};
use emberscope_store::{DiskStore, Store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The fixture's windows and one more, in seconds.
const SPAN: (u64, u64) = (1_700_000_000, 1_700_000_070);

fn at(seconds: u64) -> WallTime {
    WallTime::from_millis((SPAN.0 + seconds) * 1000)
}

fn fact(kind: SparkFactKind, id: &str, name: &str, refs: &[u32]) -> SparkFact {
    SparkFact {
        app: "app-1".into(),
        name: name.into(),
        status: "COMPLETE".into(),
        refs: refs.into(),
        count: 4,
        begun: Some(at(1)),
        ended: Some(at(3)),
        source: "http://driver:4040".into(),
        fetched: at(50),
        ..SparkFact::new(kind, id)
    }
}

fn stage(id: &str, attempt: u32, name: &str, jobs: &[u32]) -> SparkFact {
    SparkFact { attempt, executor_cpu_ns: 7, ..fact(SparkFactKind::Stage, id, name, jobs) }
}

/// Of the stage 0 two attempts, of 1 the second without a query; of one of two plans why it is not kept; nothing of app-2.
fn facts() -> Result<Vec<SparkFact>> {
    let sql = |id, name, jobs: &[u32]| fact(SparkFactKind::Sql, id, name, jobs);
    let plan = |id: &str, name: &str, description: Option<&str>, refs: &[u32]| SparkFact {
        description: description.map(Into::into),
        ..fact(SparkFactKind::Plan, id, name, refs)
    };
    let operators = "0 - Exchange\n1 1 Project\n2 1 Scan parquet db.sales\n";
    let all = vec![
        stage("0", 0, "count at job.py:10", &[3]),
        stage("0", 1, "count at job.py:10", &[3, 5]),
        stage("1", 0, "collect at job.py:20", &[4]),
        stage("1", 1, "not read yet", &[4]),
        fact(SparkFactKind::Job, "3", "count at job.py:10", &[0]),
        sql("7", "the day's rows", &[3]),
        sql("8", "select 1", &[5]),
        sql("9", "select 2", &[4]),
        plan("8", "", Some(operators), &[1, 0, 2, 1]),
        plan("9", "HTTP 500", None, &[]),
        SparkFact {
            description: Some("Worker lost".into()),
            status: "REMOVED".into(),
            ..fact(SparkFactKind::Executor, "2", "node-2:7337", &[])
        },
        SparkFact { ended: None, ..fact(SparkFactKind::Executor, "driver", "node-1:4041", &[]) },
        fact(SparkFactKind::Setting, "spark.executor.memory", "4g", &[]),
    ];
    ensure!(all.iter().filter(|fact| SparkPlan::of_fact(fact).is_some()).count() == 1, "it is no plan");
    Ok(all)
}

/// A window after the fixture's, so that the last words are in a block of their own.
fn window() -> Window {
    let labels = LabelSetBuilder::new().set(LabelKey::App, "app-1").set(LabelKey::Stage, "1").build();
    let frames = [Arc::new(Frame::new(FrameKind::JavaCompiled, "a.B.late", ""))].into();
    let stack = Arc::new(Stack { frames, end: StackEnd::Root });
    let row = Row { labels: Arc::new(labels), stack, kind: SampleKind::Cpu, count: 3, weight: 30 };
    Window {
        range: TimeRange { from: at(60), until: at(70) },
        rows: vec![row],
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

/// The store, served.
pub struct Told {
    data: PathBuf,
    port: u16,
}

impl Told {
    /// Makes the store below `dir` and serves it.
    pub fn prepare(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let store = fixture::copied(&dir.join("store"))?;
        ensure!(store.learn(&facts()?), "the fixture has no open window");
        store.settle();
        store.append(window());
        // It was read again, with the query's job gone.
        let last = SparkFact { fetched: at(65), ..stage("1", 1, "collect at job.py:20", &[7]) };
        ensure!(store.learn(&[last]), "no open window");
        store.settle();
        let blocks = |store: &DiskStore| store.disk().map(|disk| disk.blocks);
        ensure!(blocks(&store) == Some(3), "{:?} blocks", blocks(&store));
        let port = fixture::served(Arc::new(store))?;
        Ok(Self { data: dir.to_owned(), port })
    }

    /// What Spark is asked.
    pub fn set(&self) -> Set {
        let words = |of: &str| json!({"name": of, "what": "words", "of": of, "app": "app-1"});
        let graph = |name: &str, selection: Value, group: &[&str]| json!({"name": name, "what": "flame_graph", "selection": selection, "group": group});
        let mut ask = vec![
            graph("grouped", json!({"app": "app-1"}), &["sql", "spark_job", "stage"]),
            graph("nothing-told", json!({"app": "app-2"}), &["sql"]),
            graph("of-8", json!({"app": "app-1", "sql": "8"}), &[]),
            graph("of-jobs", json!({"app": "app-1", "spark_job": [3, 7]}), &["stage"]),
            graph("of-none", json!({"app": "app-1", "sql": ""}), &[]),
            graph("where", json!({"app": "app-1", "where": "sql = '8'"}), &[]),
            json!({"name": "ledger", "what": "ledger", "by": ["app", "sql", "spark_job"]}),
            json!({"name": "several", "what": "refused_selection", "selection": {"sql": "8"}}),
            json!({"name": "nothing-said", "what": "words", "of": "queries", "app": "app-2"}),
            json!({"name": "views", "what": "views"}),
            json!({"name": "view", "what": "sql", "sql": "SELECT sql, sum(count) AS count FROM emberscope_samples \
                WHERE app = 'app-1' AND kind = 'cpu' GROUP BY sql ORDER BY sql"}),
            json!({"name": "joined", "what": "sql", "sql": "SELECT description, sum(weight) AS weight FROM emberscope_totals \
                JOIN emberscope_spark_queries USING (app, sql) WHERE kind = 'cpu' GROUP BY description ORDER BY description"}),
        ];
        ask.extend(["stages", "jobs", "queries", "operators", "executors", "settings"].map(words));
        Set { name: "told", path: self.data.clone(), ask }
    }

    /// Holds Spark's answers against those by HTTP, and its tables against what was told.
    pub fn judge(&self, said: &Value) -> Result<()> {
        let graph = |way: &str, unit: &str| {
            let path = format!("/api/v1/flamegraph?format=folded&unit={unit}&{way}&");
            asked::folded(&fixture::get_within(self.port, &path, SPAN)?)
        };
        for (name, way) in [
            ("grouped", "app=app-1&group=sql,spark_job,stage"),
            ("nothing-told", "app=app-2&group=sql"),
            ("of-8", "app=app-1&sql=8"),
            ("of-jobs", "app=app-1&spark_job=3&spark_job=7&group=stage"),
            ("of-none", "app=app-1&sql="),
            ("where", "app=app-1&sql=8"),
        ] {
            let (counts, weights) = (graph(way, "samples")?, graph(way, "ns")?);
            asked::same_stacks(name, &asked::flame_graph(said, name)?, &counts, &weights)?;
        }
        let ledger = fixture::get_within(self.port, "/api/v1/ledger?by=app,sql,spark_job&", SPAN)?;
        let lines = asked::same_ledger(
            said,
            "ledger",
            &serde_json::from_str(&ledger)?,
            &["app", "sql", "spark_job"],
        )?;
        ensure!(lines > 4, "{}", said["ledger"]);
        let several = said["several"].as_str().unwrap_or_default();
        ensure!(several.contains("sql is a number within an application"), "{several}");
        judge_views(said)?;
        judge_words(said)
    }
}

fn judge_views(said: &Value) -> Result<()> {
    let values = |name: &str, key: &str| -> Vec<Value> {
        said[name].as_array().into_iter().flatten().map(|row| row[key].clone()).collect()
    };
    ensure!(values("view", "sql") == [json!(null), json!("8"), json!("9")], "{}", said["view"]);
    ensure!(values("joined", "description") == ["select 1", "select 2"], "{}", said["joined"]);
    ensure!(
        values("joined", "weight").iter().all(|weight| asked::number(weight).is_ok_and(|weight| weight > 0)),
        "{}",
        said["joined"]
    );
    Ok(())
}

/// The lines of a table, as lists of these columns, in order.
fn lines(said: &Value, name: &str, columns: &[&str]) -> Value {
    let line = |row: &Value| columns.iter().map(|column| row[*column].clone()).collect::<Value>();
    let mut lines: Vec<Value> = said[name].as_array().into_iter().flatten().map(line).collect();
    lines.sort_by_key(Value::to_string);
    lines.into()
}

fn judge_words(said: &Value) -> Result<()> {
    let (count, collect) = ("count at job.py:10", "collect at job.py:20");
    let begun = SPAN.0 as f64 + 1.0;
    let (ended, fetched) = (begun + 2.0, begun + 49.0);
    for (name, columns, want) in [
        (
            "stages",
            &["stage", "stage_attempt", "name", "jobs", "spark_job", "sql", "executor_cpu_ns", "fetched"][..],
            json!([
                ["0", "0", count, [3], "3", "8", 7, fetched],
                ["0", "1", count, [3, 5], "3", "8", 7, fetched],
                ["1", "0", collect, [4], "7", "9", 7, fetched],
                ["1", "1", collect, [7], "7", "9", 7, fetched + 15.0],
            ]),
        ),
        (
            "jobs",
            &["spark_job", "sql", "name", "stages", "tasks", "submitted", "completed"],
            json!([["3", "7", count, [0], 4, begun, ended]]),
        ),
        (
            "queries",
            &["sql", "description", "status", "jobs", "submitted", "completed"],
            json!([
                ["7", "the day's rows", "COMPLETE", [3], begun, ended],
                ["8", "select 1", "COMPLETE", [5], begun, ended],
                ["9", "select 2", "COMPLETE", [4], begun, ended],
            ]),
        ),
        (
            "operators",
            &["sql", "node", "codegen", "operator", "gives_to", "says"],
            json!([
                ["8", 0, null, "Exchange", [], null],
                ["8", 1, 1, "Project", [0], null],
                ["8", 2, 1, "Scan parquet db.sales", [1], null],
                ["9", null, null, null, [], "HTTP 500"],
            ]),
        ),
        (
            "executors",
            &["executor", "host", "cores", "status", "added", "removed", "reason"],
            json!([
                ["2", "node-2:7337", 4, "REMOVED", begun, ended, "Worker lost"],
                ["driver", "node-1:4041", 4, "COMPLETE", begun, null, null],
            ]),
        ),
        ("settings", &["setting", "value"], json!([["spark.executor.memory", "4g"]])),
    ] {
        let found = lines(said, name, columns);
        ensure!(found == want, "{name}: {found}, not {want}");
    }
    ensure!(said["nothing-said"] == json!([]), "{}", said["nothing-said"]);
    let views = said["views"].as_array().map_or(0, Vec::len);
    ensure!(views == 16, "{views} views");
    Ok(())
}
