//! The tax: its parts, each measured for itself, against the CPU time that the kernel accounts to the process
//! (/proc/PID/stat). Of the executor and the driver, from their first instruction to the last instant watched,
//! and over the windows watched alone.

use super::Bench;
use super::delay::Seen;
use super::row::Row;
use anyhow::{Context as _, Result};

/// Deviation allowed, in percent.
const BAR: f64 = 1.0;
/// A part so small need not be told, in percent.
const SMALL: f64 = 0.05;

/// Measures.
pub fn rows(bench: &Bench, seen: &Seen) -> Result<Vec<Row>> {
    let [first, _, last] = seen.instants;
    let [before, _, after] = seen.cpu;
    let cases = [
        ("executor's whole life", seen.executor, seen.from, after.0),
        ("executor, steady", seen.executor, first, after.0 - before.0),
        ("driver's whole life", seen.driver, seen.from, after.1),
    ];
    let mut rows = Vec::new();
    for (what, pid, from, truth) in cases {
        let answer = bench.daemon.json(&format!("/api/v1/tax?pid={pid}&from={from}&until={last}"))?;
        let classes = answer["classes"].as_array().context("no classes in the answer")?;
        let part = |class: &serde_json::Value| class["cpu_seconds"].as_f64().unwrap_or_default();
        let sum: f64 = classes.iter().map(part).sum();
        rows.push(Row::exact(
            format!("tax: parts of {what} against /proc"),
            sum,
            truth,
            "s",
            BAR,
            classes.len(),
        ));
        let share = |class: &serde_json::Value| part(class) / sum * 100.0;
        let name = |class: &serde_json::Value| class["thread_class"].as_str().unwrap_or("null").to_owned();
        let parts: Vec<String> = classes
            .iter()
            .filter(|class| share(class) >= SMALL)
            .map(|class| format!("{} {:.1} %", name(class), share(class)))
            .collect();
        println!("   tax, {what} (source {}): {}", answer["source"], parts.join(", "));
        let other =
            classes.iter().filter(|class| ["other", "null"].contains(&&*name(class))).map(share).sum::<f64>();
        if what.contains("executor's whole") {
            rows.push(Row::is(
                "tax: other, executor's whole life",
                format!("{other:.2} %"),
                "< 1 %",
                other < 1.0,
                1,
            ));
        }
    }
    Ok(rows)
}
