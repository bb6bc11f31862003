//! What a daemon kept of a real Spark job, as an archive of a node: by HTTP and by Spark.

use super::asked::{self, Set};
use crate::held::Held;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the blocks as an archive has them; out: from their first window to the end of the last, in ms.
fn archive(data: &Path, archive: &Path) -> Result<(u64, u64)> {
    let blocks = archive.join("v1/nodes/here/blocks");
    std::fs::create_dir_all(&blocks)?;
    let mut span = (u64::MAX, 0);
    for block in std::fs::read_dir(data.join("store/blocks"))? {
        let path = block?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        ensure!(Command::new("cp").arg("-r").arg(&path).arg(&blocks).status()?.success(), "cannot copy");
        let manifest: Value = serde_json::from_slice(&std::fs::read(path.join("manifest.json"))?)?;
        let ms = |name: &str| manifest[name].as_u64().map(|ns| ns / 1_000_000).context("no time");
        span = (span.0.min(ms("from_ns")?), span.1.max(ms("until_ns")?));
    }
    ensure!(span.0 < span.1, "no block was written");
    Ok(span)
}

fn get(server: &Daemon, path: &str) -> Result<String> {
    let reply = server.get(path)?;
    ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
    Ok(reply.body)
}

/// The job's blocks, and the server that answers of them by HTTP.
pub struct Live {
    app: String,
    /// A query of it.
    sql: String,
    archive: PathBuf,
    span: (u64, u64),
    server: Daemon,
}

impl Live {
    /// Copies what is held below `dir` and serves it.
    pub fn prepare(here: &Here, held: &Held, dir: &Path) -> Result<Self> {
        let (data, copy) = (held.copy(dir)?, dir.join("archive"));
        let span = archive(&data, &copy)?;
        // What Spark said may be in the journal alone.
        for journal in std::fs::read_dir(data.join("store/journal"))? {
            std::fs::remove_file(journal?.path())?;
        }
        let server = Daemon::serve_data_dir(&here.binary, &data)?;
        let path = format!("/api/v1/labels/sql/values?app={}&from={}&until={}", held.app, span.0, span.1);
        let values: Value = serde_json::from_str(&get(&server, &path)?)?;
        let sql = values["values"][0]["value"].as_str().context("no query")?.to_owned();
        Ok(Self { app: held.app.clone(), sql, archive: copy, span, server })
    }

    /// What Spark is asked.
    pub fn set(&self) -> Set {
        let selection = json!({ "app": self.app });
        let ask = vec![
            json!({"name": "grouped", "what": "flame_graph", "selection": selection, "group": ["executor", "stage"]}),
            json!({"name": "operators", "what": "flame_graph", "selection": selection, "group": ["operator", "stage"]}),
            json!({"name": "queries", "what": "flame_graph", "selection": selection, "group": ["sql", "spark_job", "operator"]}),
            json!({"name": "query", "what": "flame_graph", "selection": {"app": self.app, "sql": self.sql}}),
            json!({"name": "by-operator", "what": "by_operator", "selection": selection}),
            json!({"name": "drawn", "what": "flamegraph", "selection": selection}),
            json!({"name": "top", "what": "top_methods", "selection": selection}),
            json!({"name": "stages", "what": "cpu_by_stage"}),
            json!({"name": "ledger", "what": "ledger", "by": ["stage", "task"], "selection": selection}),
            json!({"name": "views", "what": "views"}),
            json!({"name": "sql", "what": "sql", "sql": "SELECT sum(count) AS count FROM emberscope_samples WHERE kind = 'cpu'"}),
        ];
        Set { name: "live", path: self.archive.clone(), ask }
    }

    /// Holds Spark's answers against those by HTTP.
    pub fn judge(&self, said: &Value) -> Result<()> {
        let (from, until) = self.span;
        let range = format!("from={from}&until={until}");
        let of_app = format!("app={}&{range}", self.app);
        let graph = |group: &str, unit: &str| {
            let what = format!("flamegraph?format=folded&group={group}&unit={unit}");
            asked::folded(&get(&self.server, &format!("/api/v1/{what}&{of_app}"))?)
        };
        let json_of = |path: &str| -> Result<Value> { Ok(serde_json::from_str(&get(&self.server, path)?)?) };
        let top = json_of(&format!("/api/v1/top?limit=100000&{of_app}"))?;
        let series = json_of(&format!("/api/v1/series?by=app,stage,stage_attempt&step=10m&{range}"))?;
        let ledger = json_of(&format!("/api/v1/ledger?by=stage,task&{of_app}"))?;
        let samples = json_of(&format!("/api/v1/series?step=10m&{range}"))?["quality"]["samples"].as_u64();

        let of_query = format!("&sql={}", self.sql);
        for (name, group) in [
            ("grouped", "executor,stage"),
            ("operators", "operator,stage"),
            ("queries", "sql,spark_job,operator"),
            ("query", of_query.as_str()),
        ] {
            let (counts, weights) = (graph(group, "samples")?, graph(group, "ns")?);
            asked::same_stacks(name, &asked::flame_graph(said, name)?, &counts, &weights)?;
        }
        let operators = json_of(&format!("/api/v1/labels/operator/values?{of_app}"))?;
        asked::same_operators(said, "by-operator", &operators)?;
        let drawn = json_of(&format!("/api/v1/flamegraph?columns=1&unit=ns&{of_app}"))?;
        asked::same_drawing(&said["drawn"], &drawn, &graph("", "samples")?)?;
        let several = asked::same_methods(said, "top", &top)?;
        let methods = top["methods"].as_u64().unwrap_or_default();
        ensure!((several as u64) * 20 < methods, "{several} of {methods} methods could not be compared");
        ensure!(asked::same_stages(said, "stages", &series)? > 1, "{}", said["stages"]);
        // The first block may have been written when few tasks had run.
        ensure!(asked::same_ledger(said, "ledger", &ledger, &["stage", "task"])? > 4, "{}", said["ledger"]);
        ensure!(Some(asked::number(&said["sql"][0]["count"])?) == samples.map(u128::from), "{}", said["sql"]);
        Ok(())
    }
}
