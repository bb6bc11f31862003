//! `bench operators`: whether samples of SQL queries are put to the operators of their plans.
//!
//! One application of each Spark (tests/jobs/queries.py) under one daemon. Twenty queries as analysts write them, over a shop's
//! tables: how many of their tasks' samples have an operator. Then the [`pairs`], queries of which most is one operator's work.

use super::row::{self, Row};
use crate::clock::now;
use crate::launch::{Daemon, SparkJob};
use crate::setup::{self, SparkKit, packages, python};
use crate::{build, places};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod pairs;

/// The least part of all samples that is put to an operator, or to some of the plan in one loop, in percent. What Spark does
/// around them (generating code, reading a task in) is the rest.
const PUT: f64 = 95.0;
/// How long the job may take on a crowded machine.
const WORK: Duration = Duration::from_secs(3600);
/// Until what Spark says of the last query is kept: its driver is asked every 30 s.
const KEPT: Duration = Duration::from_secs(120);
/// Until a window is answered for: two of 2 s, and what closing takes.
const VISIBLE_AFTER: Duration = Duration::from_secs(8);
/// Queries that are in no pair.
const QUERIES: usize = 20;

#[derive(Parser)]
#[command(name = "operators", about = "Samples of SQL queries against the operators of their plans")]
struct OperatorsOptions {
    /// Versions of Spark
    #[arg(long, value_delimiter = ',', default_values = [python::PYSPARK, python::NEWEST_PYSPARK])]
    sparks: Vec<String>,
    /// Rows of the largest table. By default about as many as `store_sales` of TPC-DS has at its smallest scale; of fewer rows
    /// more of a query's time goes into starting it
    #[arg(long, default_value_t = 3_000_000)]
    rows: u64,
    /// Samples a second
    #[arg(long, default_value = "199")]
    hz: String,
    /// The daemon's program, where it is built already
    #[arg(long)]
    bin: Option<PathBuf>,
}

/// A query that ran, by its description.
struct Ran {
    /// Its name, and behind it `with` or `without`, where it is of a pair.
    name: String,
    /// Which time it ran.
    time: u32,
    execution: u64,
}

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("operators".to_owned()).chain(arguments.iter().cloned());
    let options = OperatorsOptions::parse_from(words);
    let binary = options.bin.clone().map_or_else(build::run, Ok)?;
    let mut rows = Vec::new();
    for spark in &options.sparks {
        let kit = setup::spark_version(spark, None)?;
        println!("Spark {spark} on JDK {}", kit.jdk.major);
        rows.extend(measured(&options, &binary, spark, &kit)?);
    }
    row::print(&rows);
    if rows.iter().any(Row::fails) {
        bail!("not all within their bars");
    }
    Ok(())
}

fn measured(options: &OperatorsOptions, binary: &Path, spark: &str, kit: &SparkKit) -> Result<Vec<Row>> {
    let work = places::target().join("bench/operators");
    let _ = std::fs::remove_dir_all(&work);
    let daemon = Daemon::start(binary, &work.join("data"), None, &["--window", "2s", "--hz", &options.hz])?;
    let from = now();
    let job = SparkJob::new("queries.py", &kit.venv, &kit.jdk.home, &work.join("spark"));
    let job = job
        .master("local-cluster[1,2,1536]")
        .arg("--rows")
        .arg(options.rows.to_string())
        .packages(packages::pandas(&kit.venv)?);
    let mut job = job.start()?;
    let app = job.wait_fact("app", WORK)?;
    job.wait_fact("done", WORK)?;
    std::thread::sleep(VISIBLE_AFTER);
    let range = format!("app={app}&from={from}&until={}", now());
    let ran = all_named(&daemon, &range)?;
    let mut rows = queries(&daemon, spark, &range, &ran)?;
    rows.extend(pairs::pairs(&daemon, spark, &range, &ran)?);
    std::fs::write(work.join("spark/stop"), "").context("stopping the job")?;
    job.wait(WORK)?;
    daemon.stop()?;
    Ok(rows)
}

/// What ran, once Spark has told of all of it.
fn all_named(daemon: &Daemon, range: &str) -> Result<Vec<Ran>> {
    let begun = Instant::now();
    loop {
        let answer = daemon.json(&format!("/api/v1/sql?{range}&limit=10000"))?;
        let ran: Vec<Ran> =
            answer["queries"].as_array().into_iter().flatten().filter_map(described).collect();
        let names = |of_pairs: bool| {
            let mut names: Vec<&str> = ran
                .iter()
                .map(|ran| ran.name.as_str())
                .filter(|name| name.contains(' ') == of_pairs)
                .collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        };
        if (names(false), names(true)) == (QUERIES, 2 * pairs::PAIRS.len()) {
            return Ok(ran);
        }
        ensure!(
            begun.elapsed() < KEPT,
            "of {} queries and {} of pairs Spark told",
            names(false),
            names(true)
        );
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// `star_join 2`, `sort without 3`; None of what prepares.
fn described(row: &Value) -> Option<Ran> {
    let (name, time) = row["description"].as_str()?.rsplit_once(' ')?;
    Some(Ran { name: name.to_owned(), time: time.parse().ok()?, execution: row["execution"].as_u64()? })
}

/// Samples of an execution by operator, and by what an operator is (`operator`, `fused`, `around`, `codegen`, `unknown`).
fn operators(daemon: &Daemon, range: &str, execution: u64) -> Result<Vec<(String, String, u64)>> {
    let answer = daemon.json(&format!("/api/v1/sql?{range}&execution={execution}"))?;
    let rows = answer["operators"].as_array().context("no operators")?;
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| {
        Ok((text(row, "operator"), text(row, "of"), row["samples"].as_u64().context("samples")?))
    };
    rows.iter().map(row).collect()
}

/// An operator's name; what is none's in brackets.
fn shown(operator: String, of: &str) -> String {
    if of == "operator" || of == "fused" { operator } else { format!("[{of}] {operator}") }
}

/// A line with what has most of a query's samples.
fn print_largest(name: &str, operators: &BTreeMap<String, u64>) {
    let all: u64 = operators.values().sum();
    let mut largest: Vec<(&String, &u64)> = operators.iter().collect();
    largest.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
    let share =
        |(operator, samples): &(&String, &u64)| format!("{operator} {:.1} %", percent(**samples, all));
    let told: Vec<String> = largest.iter().take(4).map(share).collect();
    println!("    {name} ({all} samples): {}", told.join(", "));
}

fn queries(daemon: &Daemon, spark: &str, range: &str, ran: &[Ran]) -> Result<Vec<Row>> {
    let mut whole: BTreeMap<String, u64> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut of_query: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for ran in ran.iter().filter(|ran| !ran.name.contains(' ')) {
        for (operator, of, samples) in operators(daemon, range, ran.execution)? {
            *of_query.entry(&ran.name).or_default().entry(shown(operator, &of)).or_default() += samples;
            *whole.entry(of).or_default() += samples;
        }
    }
    for (name, operators) in &of_query {
        print_largest(name, operators);
    }
    let all: u64 = whole.values().sum();
    let of = |of: &str| whole.get(of).copied().unwrap_or(0);
    let put = of("operator") + of("fused");
    rows.push(Row::share(
        format!("operators: {spark}, samples of {QUERIES} queries that have one"),
        put as usize,
        PUT,
        all as usize,
    ));
    for kind in ["fused", "around", "codegen", "unknown"] {
        let figure = format!("{:.2} %", percent(of(kind), all));
        rows.push(Row::told(format!("operators: {spark}, of these {kind}"), figure, all as usize));
    }
    Ok(rows)
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_description_names_query_and_time() {
        let ran = described(&json!({ "description": "sort without 3", "execution": 7 })).unwrap();
        assert_eq!((ran.name.as_str(), ran.time, ran.execution), ("sort without", 3, 7));
        assert!(described(&json!({ "description": "prepare", "execution": 7 })).is_none());
        assert!(described(&json!({ "description": "noop at x", "execution": 7 })).is_none());
    }
}
