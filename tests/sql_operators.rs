//! Queries of Spark SQL and their operators, on real Spark: queries of which most is one operator's work.
//!
//! One application (tests/jobs/sql_operators.py) under one daemon. Of each query the large execution is asked, whose
//! code is compiled: which operator comes first, how much is put to operators at all, and the plan. Then again with application
//! and daemon gone, from the data directory.

mod page;

use crate::held::now_ms;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, VISIBLE, WARM_UP, ran, wait_for, wait_visible};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the queries may take on a crowded machine.
const WORK: Duration = Duration::from_secs(900);
/// What Spark says is kept this long after it is said, at the latest: its driver is asked every 30 s.
const KEPT: Duration = Duration::from_secs(40);
/// The least part of all samples that is put to operators, or to some of the plan in one loop.
const PUT: f64 = 0.95;
/// The most of which no frame tells anything.
const UNKNOWN: f64 = 0.05;

/// The least share of a join that is written into another operator's method.
const FUSED: f64 = 0.2;
/// How often a query's rows it works on the second time, with warm code.
const LARGE: &str = "64";
/// Queries, and the operators of which one must be the first. A broadcast join is written into the method of the aggregate
/// above it: which of the two has its loop's samples is as C2 inlines them, and the join has [`FUSED`] of them at the least.
const QUERIES: [(&str, &[&str]); 10] = [
    ("hash_aggregate", &["HashAggregate"]),
    ("sort", &["Sort"]),
    ("sort_merge_join", &["SortMergeJoin"]),
    ("window", &["Window"]),
    ("broadcast_hash_join", &["BroadcastHashJoin", "HashAggregate"]),
    ("exchange", &["Exchange (write)", "Exchange (read)"]),
    ("scan_parquet", &["Scan parquet"]),
    ("write_parquet", &["WriteFiles"]),
    ("batch_eval_python", &["BatchEvalPython"]),
    ("generate", &["Generate"]),
];

#[test]
fn each_query_is_its_operators_on_spark_3() -> Result<()> {
    let Some(here) = Here::or_skip("each_query_is_its_operators_on_spark_3") else { return Ok(()) };
    each_query_is_its_operators(&here)
}

fn each_query_is_its_operators(here: &Here) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "2s", "--hz", "199"])?;
    let from = now_ms()?;
    let job = here.spark("sql_operators.py", dir.path()).master("local-cluster[1,2,1024]");
    let mut job = job.arg("--rows").arg("1").arg(LARGE).start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("done", WORK)?;
    let until = now_ms()?;
    wait_visible(&daemon, until)?;
    let range = format!("app={app}&from={from}&until={until}");
    let largest = wait_for("names and plans of all queries", KEPT + VISIBLE, || {
        let found = largest(&daemon, &range)?;
        let ids: Vec<u64> = QUERIES.iter().filter_map(|(name, _)| found.get(*name).copied()).collect();
        for id in &ids {
            let answer = daemon.json(&format!("/api/v1/sql?{range}&execution={id}"))?;
            if answer["plan"]["says"] != "" {
                return Ok(None);
            }
        }
        Ok((ids.len() == QUERIES.len()).then_some(found))
    })?;
    let mut whole: BTreeMap<String, u64> = BTreeMap::new();
    let mut known: BTreeMap<u64, Value> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, wanted) in QUERIES {
        let id = *largest.get(name).context("its number")?;
        let answer = daemon.json(&format!("/api/v1/sql?{range}&execution={id}"))?;
        let operators = answer["operators"].as_array().context("no operators")?;
        let of = |row: &Value| row["of"].as_str().unwrap_or_default().to_owned();
        for row in operators {
            *whole.entry(of(row)).or_default() += row["samples"].as_u64().context("samples")?;
        }
        let told = operators.iter().take(6).map(|row| {
            format!(
                "{} {:.1} %",
                row["operator"].as_str().unwrap_or("?"),
                100.0 * row["share"].as_f64().unwrap_or(0.0)
            )
        });
        println!("{name}: {}", told.collect::<Vec<_>>().join(", "));
        let first = operators.first().and_then(|row| row["operator"].as_str()).unwrap_or_default();
        let share = |of: &str| {
            operators.iter().find(|row| row["operator"] == of).and_then(|row| row["share"].as_f64())
        };
        if !wanted.contains(&first) || wanted.first().and_then(|of| share(of)).unwrap_or(0.0) < FUSED {
            wrong.push(format!("{name} is mostly {first}"));
        }
        ensure!(operators.iter().any(|row| row["operator"] == "unknown"), "{name}: unknown has no row");
        known.insert(id, json!([answer["operators"], answer["plan"]]));
    }
    let all: u64 = whole.values().sum();
    let share = |of: &str| whole.get(of).copied().unwrap_or(0) as f64 / all as f64;
    let [named, fused, around, codegen, unknown] =
        ["operator", "fused", "around", "codegen", "unknown"].map(share);
    println!(
        "of {all} samples {:.2} % are put to operators, {:.2} % to some in one loop, {:.2} % to Spark's work around \
         them, {:.2} % to generated code of which none is known, {:.2} % are unknown",
        100.0 * named,
        100.0 * fused,
        100.0 * around,
        100.0 * codegen,
        100.0 * unknown
    );
    ensure!(wrong.is_empty(), "{wrong:?}");
    let put = named + fused;
    ensure!(put >= PUT && unknown <= UNKNOWN, "{put} are put to operators, {unknown} are unknown");
    graphs_say_the_same(&daemon, &range, *largest.get("sort").context("sort")?)?;
    let binary = here.binary.to_str().context("the binary's path")?;
    let id = largest.get("sort").map(u64::to_string).unwrap_or_default();
    let span = (from, until);
    let (from, until) = (from.to_string(), until.to_string());
    let words =
        ["--app", &app, "--from", &from, "--until", &until, "--execution", &id, "--url", daemon.url()];
    let table = ran([&[binary, "sql"], &words[..]].concat())?.good()?.out;
    ensure!(table.starts_with("OPERATOR") && table.contains("\nSort "), "{table}");

    std::thread::sleep(KEPT);
    drop(job);
    ensure!(daemon.stop()?.success());
    let server = Daemon::serve_data_dir(&here.binary, &dir.path().join("data"))?;
    let queries = server.json(&format!("/api/v1/labels/sql/values?{range}"))?;
    let queries = queries["values"].as_array().context("no values")?;
    for (id, told) in &known {
        let id_text = id.to_string();
        ensure!(queries.iter().any(|row| row["value"] == id_text), "{id} is none of {queries:?}");
        let answer = server.json(&format!("/api/v1/sql?{range}&execution={id}"))?;
        ensure!(answer["spark"]["state"] == "kept", "the names are {}", answer["spark"]);
        let now = json!([answer["operators"], answer["plan"]]);
        ensure!(now == *told, "query {id} was {told} and is {now}");
    }
    let id = largest.get("broadcast_hash_join").map(u64::to_string).unwrap_or_default();
    let words =
        ["--app", &app, "--from", &from, "--until", &until, "--execution", &id, "--url", server.url()];
    let plan = ran([&[binary, "sql", "--plan"], &words[..]].concat())?.good()?.out;
    println!("{plan}");
    ensure!(
        plan.contains("*(2) HashAggregate\n")
            && plan.contains("*(2) BroadcastHashJoin (in HashAggregate's code)"),
        "{plan}"
    );
    let id = *largest.get("sort_merge_join").context("its number")?;
    page::leads_to_an_operator(&server, &app, id, span)?;
    ensure!(server.stop()?.success());
    Ok(())
}

/// The large execution of each query.
fn largest(daemon: &Daemon, range: &str) -> Result<BTreeMap<String, u64>> {
    let answer = daemon.json(&format!("/api/v1/sql?{range}&limit=10000"))?;
    let mut found = BTreeMap::new();
    for row in answer["queries"].as_array().context("no queries")? {
        if let (Some(name), Some(id)) = (row["description"].as_str(), row["execution"].as_u64()) {
            let Some(name) = name.strip_suffix(LARGE).and_then(|name| name.strip_suffix(' ')) else {
                continue;
            };
            found.entry(name.to_owned()).or_insert(id);
        }
    }
    Ok(found)
}

/// A flame graph has operators as first frames, and can be of one alone.
fn graphs_say_the_same(daemon: &Daemon, range: &str, id: u64) -> Result<()> {
    let answer = daemon.json(&format!("/api/v1/sql?{range}&execution={id}"))?;
    let row =
        answer["operators"].as_array().and_then(|rows| rows.iter().find(|row| row["operator"] == "Sort"));
    let samples = row.and_then(|row| row["samples"].as_u64()).context("no Sort")?;
    // The plan has the sort alone in the loop of its codegen stage, whose label says no operator.
    let labels = row.and_then(|row| row["labels"].as_array()).context("no labels")?;
    let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
    ensure!(labels.contains(&"Sort"), "{labels:?}");
    let stages = answer["queries"][0]["stages"].as_array().context("no stages")?;
    let stages: String = stages.iter().map(|stage| format!("&stage={stage}")).collect();
    let folded_of = |which: &str, more: &str| -> Result<Vec<(String, u64)>> {
        let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{range}{which}{more}"))?;
        ensure!(reply.status == 200, "{which}{more}: {}", reply.body);
        let line = |line: &str| {
            let (stack, count) = line.rsplit_once(' ').context("no count")?;
            Ok((stack.to_owned(), count.parse()?))
        };
        reply.body.lines().map(line).collect()
    };
    let folded = |more: &str| folded_of(&stages, more);
    let grouped = folded("&group=operator")?;
    ensure!(grouped.iter().all(|(stack, _)| stack.starts_with("operator=")), "a stack has no operator");
    let sum = |lines: &[(String, u64)], of: &str| -> u64 {
        lines.iter().filter(|(stack, _)| stack.starts_with(of)).map(|(_, count)| count).sum()
    };
    let all = folded("")?;
    ensure!(sum(&grouped, "") == sum(&all, ""), "grouping by operator changes the sum");
    let short = folded("&fold=1")?;
    let begins = |(stack, _): &&(String, u64)| stack.starts_with("thread start … Task.run (");
    ensure!(sum(&short, "") == sum(&all, ""), "folding changes the sum");
    let of_tasks: u64 = short.iter().filter(begins).map(|(_, count)| count).sum();
    ensure!(of_tasks * 10 > sum(&all, "") * 9, "{of_tasks} samples are below the fold of {}", sum(&all, ""));
    let query = format!("&sql={id}");
    let queried = folded_of(&query, "")?;
    let odd: Vec<_> = queried.iter().filter(|line| !all.contains(line)).collect();
    let gone: Vec<_> = all.iter().filter(|line| !queried.contains(line)).collect();
    ensure!(
        queried == all,
        "query {id} is not its stages {stages}: {odd:?} for {gone:?}, or in another order"
    );
    let of_query = folded_of(&query, "&group=sql,operator")?;
    let first = format!("sql={id};operator=");
    ensure!(of_query.iter().all(|(stack, _)| stack.starts_with(&first)), "a stack is not of {first}");
    let of_labels: u64 = labels.iter().map(|label| sum(&grouped, &format!("operator={label};"))).sum();
    ensure!(of_labels == samples, "{of_labels} samples of {samples}");
    let alone: String =
        labels.iter().map(|label| format!("&operator={}", label.replace(' ', "%20"))).collect();
    ensure!(sum(&folded(&alone)?, "") == samples, "of {labels:?} alone there are others");
    Ok(())
}
