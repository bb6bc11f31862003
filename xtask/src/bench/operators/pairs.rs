//! Queries of which most is one operator's work, each beside the same query without it, or with little of it: what the operator has
//! more of in the first, by samples, against what the first query takes more, by the kernel's accounts; both as a share of the
//! first. They run without whole-stage code, in which operators share a method. Their first time is left out: its code is cold.

use super::super::row::Row;
use super::{Ran, operators, print_largest, shown};
use crate::launch::Daemon;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// How far an operator's share may be off, in points.
const OFF: f64 = 5.0;
/// How the queries with an operator, and what it is called in answers. What it has together with others counts as its own.
pub(super) const PAIRS: [(&str, &[&str]); 10] = [
    ("sort", &["Sort"]),
    ("hash_aggregate", &["HashAggregate", "Exchange (write)", "Exchange (read)", "Exchange"]),
    ("window", &["Window"]),
    // With the filter that drops what it makes.
    ("generate", &["Generate", "Filter"]),
    ("exchange", &["Exchange (write)", "Exchange (read)", "Exchange"]),
    ("merge_join", &["SortMergeJoin"]),
    ("hash_join", &["BroadcastHashJoin"]),
    ("scan", &["Scan parquet", "ColumnarToRow"]),
    // Rows that go nowhere are written, too.
    ("write", &["WriteFiles", "WriteToDataSourceV2"]),
    // Spark 4.3 sends rows to Python by Arrow, where nothing else is set.
    ("python", &["BatchEvalPython", "ArrowEvalPython"]),
];

/// A row each.
pub(super) fn pairs(daemon: &Daemon, spark: &str, range: &str, ran: &[Ran]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (pair, names) in PAIRS {
        let with = Side::of(daemon, range, ran, &format!("{pair} with"), names)?;
        let without = Side::of(daemon, range, ran, &format!("{pair} without"), names)?;
        let of_with = |seconds: f64| 100.0 * seconds / with.cpu;
        rows.push(Row::deviation(
            format!("operators: {spark}, {pair}: its share"),
            of_with(with.own() - without.own()),
            of_with(with.cpu - without.cpu),
            "%",
            OFF,
            with.all as f64,
        ));
    }
    Ok(rows)
}

/// One query of a pair, all its times but the first.
#[derive(Default)]
struct Side {
    /// Seconds of its tasks, by the kernel's accounts.
    cpu: f64,
    /// Samples.
    all: u64,
    /// Samples of the operator of which the pair is.
    of_operator: u64,
}

impl Side {
    fn of(daemon: &Daemon, range: &str, ran: &[Ran], name: &str, names: &[&str]) -> Result<Self> {
        let mut side = Self::default();
        let mut of_query = BTreeMap::new();
        for ran in ran.iter().filter(|ran| ran.name == name && ran.time > 1) {
            side.cpu += exact(daemon, range, ran.execution)?;
            for (operator, of, samples) in operators(daemon, range, ran.execution)? {
                side.all += samples;
                if is_of(names, &operator, &of) {
                    side.of_operator += samples;
                }
                *of_query.entry(shown(operator, &of)).or_default() += samples;
            }
        }
        print_largest(name, &of_query);
        Ok(side)
    }

    /// Seconds of the operator, by the samples.
    fn own(&self) -> f64 {
        self.cpu * self.of_operator as f64 / self.all.max(1) as f64
    }
}

/// Whether a row of answers is of one of these operators, alone or together with others.
fn is_of(names: &[&str], operator: &str, of: &str) -> bool {
    match of {
        "operator" => names.contains(&operator),
        // `Range+Project (codegen 1)`
        "fused" => {
            operator.split(" (").next().is_some_and(|all| all.split('+').any(|one| names.contains(&one)))
        }
        _ => false,
    }
}

/// CPU seconds of an execution's tasks and their Python workers, by the kernel's accounts.
fn exact(daemon: &Daemon, range: &str, execution: u64) -> Result<f64> {
    let answer = daemon.json(&format!("/api/v1/stages?{range}&sql={execution}"))?;
    let stages = answer["stages"].as_array().context("no stages")?;
    let seconds = |stage: &Value| {
        let own = stage["exact"]["cpu_seconds"].as_f64();
        let own = own.with_context(|| format!("no exact time: {stage}"))?;
        Ok(own + stage["python"]["exact"]["cpu_seconds"].as_f64().unwrap_or(0.0))
    };
    stages.iter().map(seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_a_loop_are_each_of_it() {
        let is_sorts = |operator, of| is_of(&["Sort"], operator, of);
        assert!(is_sorts("Sort", "operator") && is_sorts("Range+Sort (codegen 1)", "fused"));
        assert!(!is_sorts("Sort", "unknown") && !is_sorts("Range+Project (codegen 1)", "fused"));
    }
}
