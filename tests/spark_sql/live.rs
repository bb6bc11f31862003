//! What a daemon kept of a real Spark job, as an archive of a node: by the daemon and by Spark.

use super::asked::{self, ask};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, WARM_UP};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Short windows; half of the memory makes a block.
const SMALL: [&str; 4] = ["--window", "2s", "--store-bytes", "256KiB"];

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
    Ok(span)
}

fn get(daemon: &Daemon, path: &str) -> Result<String> {
    let reply = daemon.get(path)?;
    ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
    Ok(reply.body)
}

#[test]
fn a_real_job_says_the_same() -> Result<()> {
    let test = "a_real_job_says_the_same";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &SMALL)?;
    let mut job = here.spark("demo.py", dir.path()).arg("--seconds").arg("20").start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WARM_UP)?;
    job.wait(WARM_UP)?;
    let blocks = || daemon.json("/api/v1/status").map(|status| status["store"]["disk"]["blocks"].as_u64());
    ensure!(blocks()? > Some(0), "no block was written");
    let copy = dir.path().join("archive");
    let (from, until) = archive(&dir.path().join("data"), &copy)?;

    let range = format!("from={from}&until={until}");
    let of_app = format!("app={app}&{range}");
    let graph = |unit: &str| {
        get(&daemon, &format!("/api/v1/flamegraph?format=folded&group=executor,stage&unit={unit}&{of_app}"))
    };
    let (counts, weights) = (asked::folded(&graph("samples")?)?, asked::folded(&graph("ns")?)?);
    let json_of = |path: &str| -> Result<Value> { Ok(serde_json::from_str(&get(&daemon, path)?)?) };
    let top = json_of(&format!("/api/v1/top?limit=100000&{of_app}"))?;
    let series = json_of(&format!("/api/v1/series?by=app,stage,stage_attempt&step=10m&{range}"))?;
    let ledger = json_of(&format!("/api/v1/ledger?by=stage,task&{of_app}"))?;
    let samples = json_of(&format!("/api/v1/series?step=10m&{range}"))?["quality"]["samples"].as_u64();

    let selection = json!({ "app": app });
    let questions = [
        json!({"name": "grouped", "what": "flame_graph", "selection": selection, "group": ["executor", "stage"]}),
        json!({"name": "top", "what": "top_methods", "selection": selection}),
        json!({"name": "stages", "what": "cpu_by_stage"}),
        json!({"name": "ledger", "what": "ledger", "by": ["stage", "task"], "selection": selection}),
        json!({"name": "views", "what": "views"}),
        json!({"name": "sql", "what": "sql", "sql": "SELECT sum(count) AS count FROM emberscope_samples"}),
    ];
    let sparks = [Some(here.clone()), here.clone().with_newest_spark(test)];
    for (place, spark) in sparks.into_iter().flatten().enumerate() {
        let said =
            ask(&spark, &dir.path().join(format!("ask-{place}")), std::slice::from_ref(&copy), &questions)?;
        asked::same_stacks("grouped", &asked::flame_graph(&said, "grouped")?, &counts, &weights)?;
        let several = asked::same_methods(&said, "top", &top)?;
        let methods = top["methods"].as_u64().unwrap_or_default();
        ensure!((several as u64) * 20 < methods, "{several} of {methods} methods could not be compared");
        ensure!(asked::same_stages(&said, "stages", &series)? > 1, "{}", said["stages"]);
        // The first block may have been written when few tasks had run.
        ensure!(asked::same_ledger(&said, "ledger", &ledger, &["stage", "task"])? > 4, "{}", said["ledger"]);
        ensure!(Some(asked::number(&said["sql"][0]["count"])?) == samples.map(u128::from), "{}", said["sql"]);
    }
    ensure!(daemon.stop()?.success());
    Ok(())
}
