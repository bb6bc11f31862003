//! The store that the first version wrote: its block, by Spark and by the whole HTTP server in this process.

use super::asked::{self, Set};
use anyhow::{Context as _, Result, ensure};
use emberscope_serve::{Access, Metrics, Queries, ServeState, router};
use emberscope_store::{DiskStore, DiskStoreConfig, Store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The block's windows; those of the journal come after.
const SPAN: (u64, u64) = (1_700_000_000, 1_700_000_040);

/// The data directory, below the test's own.
const DATA: &str = "data of a node";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store-1")
}

/// A copy of the fixture, whose blocks stay as they are.
pub fn copied(dir: &Path) -> Result<DiskStore> {
    let copied = std::process::Command::new("cp").arg("-r").arg(fixture()).arg(dir).status()?;
    ensure!(copied.success(), "cannot copy the fixture");
    let (retention_age, merge_after) = (Duration::MAX, Duration::MAX);
    Ok(DiskStore::open(DiskStoreConfig { retention_age, merge_after, ..DiskStoreConfig::new(dir) })?)
}

/// Serves a store on a free port, which is the answer; ends with the process.
pub fn served(store: Arc<dyn Store>) -> Result<u16> {
    let state = ServeState {
        store,
        status: Arc::new(|| json!({})),
        metrics: Arc::new(Metrics::new("test")?),
        ready: Arc::new(|| Ok(())),
        node: "n1".into(),
        version: "test".into(),
        queries: Queries::default(),
        spark: None,
        prices: Default::default(),
    };
    let app = router(state, Access::LocalHostOnly, axum::Router::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || -> Result<()> {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            sender.send(listener.local_addr()?.port())?;
            Ok(axum::serve(listener, app).await?)
        })
    });
    receiver.recv().context("the server did not start")
}

/// A block beside the store's own that this took the place of, as a kill between its name and their end leaves it: each
/// of its samples would be counted twice.
fn leave_behind(store: &Path) -> Result<()> {
    let mut blocks = std::fs::read_dir(store.join("blocks"))?;
    let block = blocks.next().context("the fixture has no block")??.path();
    let old = block.with_file_name("20231114T221320Z-000000000099");
    let copied = std::process::Command::new("cp").arg("-r").args([&block, &old]).status()?;
    ensure!(copied.success(), "cannot copy the block");
    let manifest = block.join("manifest.json");
    let mut told: Value = serde_json::from_slice(&std::fs::read(&manifest)?)?;
    told["merged"] = json!({"20231114T221320Z-000000000099": 1});
    Ok(std::fs::write(manifest, told.to_string())?)
}

fn get(port: u16, path: &str) -> Result<String> {
    get_within(port, path, SPAN)
}

/// The answer of a path that goes on with the range, in Unix seconds.
pub fn get_within(port: u16, path: &str, (from, until): (u64, u64)) -> Result<String> {
    let url = format!("http://127.0.0.1:{port}{path}from={from}&until={until}");
    Ok(ureq::get(&url).call().with_context(|| url.clone())?.body_mut().read_to_string()?)
}

fn questions(dir: &Path) -> Vec<Value> {
    let bad = dir.join("bad/blocks/x");
    std::fs::create_dir_all(&bad).ok();
    std::fs::write(bad.join("manifest.json"), "{\"format\": 7, \"files\": {}}").ok();
    let (from, until) = SPAN;
    let of_app = json!({"app": "app-1", "since": from, "until": until});
    vec![
        json!({"name": "grouped", "what": "flame_graph", "selection": of_app, "group": ["stage", "task"], "annotate": true}),
        json!({"name": "half", "what": "flame_graph", "selection": {"until": from + 20, "executor": ["1", "2"]}}),
        json!({"name": "written", "what": "write_folded", "file": dir.join("out.folded")}),
        json!({"name": "top", "what": "top_methods"}),
        json!({"name": "stages", "what": "cpu_by_stage"}),
        json!({"name": "ledger", "what": "ledger", "by": ["app", "stage", "task"]}),
        json!({"name": "none", "what": "flame_graph", "selection": {"app": "nobody"}}),
        json!({"name": "untold", "what": "flame_graph", "selection": of_app, "group": ["sql"]}),
        json!({"name": "views", "what": "views"}),
        json!({"name": "sql", "what": "sql", "sql": "SELECT sum(count) AS count, sum(weight) AS weight FROM emberscope_samples"}),
        json!({"name": "totals", "what": "sql", "sql": "SELECT sum(count) AS count, sum(weight) AS weight FROM emberscope_totals"}),
        json!({"name": "paths", "what": "sql", "sql": "SELECT count(*) AS stacks, count(DISTINCT path) AS paths FROM emberscope_stacks"}),
        json!({"name": "version", "what": "refused", "path": dir.join("bad")}),
        json!({"name": "nothing", "what": "refused", "path": dir.join("nowhere")}),
    ]
}

/// The store of the fixture, served.
pub struct Fixture {
    dir: PathBuf,
    port: u16,
}

impl Fixture {
    /// Copies the store below `dir` and serves it.
    pub fn prepare(dir: &Path) -> Result<Self> {
        // A data directory has its store below; blocks may lie on any path, and this one has a blank.
        let data = dir.join(DATA);
        std::fs::create_dir_all(&data)?;
        let port = served(Arc::new(copied(&data.join("store"))?))?;
        leave_behind(&data.join("store"))?;
        Ok(Self { dir: dir.to_owned(), port })
    }

    /// What Spark is asked.
    pub fn set(&self) -> Set {
        Set { name: "fixture", path: self.dir.join(DATA), ask: questions(&self.dir) }
    }

    /// Holds Spark's answers against those by HTTP.
    pub fn judge(&self, said: &Value) -> Result<()> {
        let (dir, port) = (&self.dir, self.port);
        let graph =
            |way: &str, unit: &str| get(port, &format!("/api/v1/flamegraph?format=folded&{way}unit={unit}&"));
        let grouped = "app=app-1&group=stage,task&annotate=1&";
        let (counts, weights) =
            (asked::folded(&graph(grouped, "samples")?)?, asked::folded(&graph(grouped, "ns")?)?);
        asked::same_stacks("grouped", &asked::flame_graph(said, "grouped")?, &counts, &weights)?;
        // Of a store of before Spark was asked.
        let (counts, weights) = (
            asked::folded(&graph("app=app-1&group=sql&", "samples")?)?,
            asked::folded(&graph("app=app-1&group=sql&", "ns")?)?,
        );
        ensure!(counts.keys().any(|stack| stack.starts_with("sql=unknown;")), "every stage is told of");
        asked::same_stacks("untold", &asked::flame_graph(said, "untold")?, &counts, &weights)?;
        let until = SPAN.0 + 20;
        let half = |unit: &str| -> Result<_> {
            let way = format!("/api/v1/flamegraph?format=folded&executor=1&executor=2&unit={unit}&");
            let url = format!("http://127.0.0.1:{port}{way}from={}&until={until}", SPAN.0);
            asked::folded(&ureq::get(&url).call()?.body_mut().read_to_string()?)
        };
        asked::same_stacks("half", &asked::flame_graph(said, "half")?, &half("samples")?, &half("ns")?)?;
        let file = std::fs::read_to_string(dir.join("out.folded"))?;
        ensure!(asked::folded(&file)? == asked::folded(&graph("", "samples")?)?, "the file is another");
        ensure!(said["written"] == file.lines().count(), "{}", said["written"]);

        let top: Value = serde_json::from_str(&get(port, "/api/v1/top?limit=1000&")?)?;
        ensure!(asked::same_methods(said, "top", &top)? < 3, "few methods could be compared");
        let series: Value =
            serde_json::from_str(&get(port, "/api/v1/series?by=app,stage,stage_attempt&step=10s&")?)?;
        ensure!(asked::same_stages(said, "stages", &series)? > 2, "{}", said["stages"]);
        let ledger: Value = serde_json::from_str(&get(port, "/api/v1/ledger?by=app,stage,task&")?)?;
        ensure!(
            asked::same_ledger(said, "ledger", &ledger, &["app", "stage", "task"])? > 2,
            "{}",
            said["ledger"]
        );

        let samples = series["quality"]["samples"].as_u64().map(u128::from);
        ensure!(
            Some(asked::number(&said["sql"][0]["count"])?) == samples && said["sql"] == said["totals"],
            "{}",
            said["sql"]
        );
        ensure!(
            said["none"] == json!([]) && said["views"].as_array().is_some_and(|views| views.len() == 16),
            "{said}"
        );
        ensure!(
            said["paths"][0]["stacks"].as_u64() > said["paths"][0]["paths"].as_u64(),
            "{}",
            said["paths"]
        );
        let refused = said["version"].as_str().unwrap_or_default();
        ensure!(refused.contains("bad/blocks/x is a block of format 7"), "{refused}");
        ensure!(
            said["nothing"].as_str().is_some_and(|says| says.contains("there is no block at")),
            "{}",
            said["nothing"]
        );
        Ok(())
    }
}
