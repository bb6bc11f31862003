//! Asking the daemon, and counting what it answers.

use super::apps::number;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::Daemon;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Stack -> count.
pub type Folded = BTreeMap<String, u64>;

pub fn folded(text: &str) -> Result<Folded> {
    let mut out = Folded::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').with_context(|| format!("no count in {line:?}"))?;
        *out.entry(stack.to_owned()).or_default() += count.parse::<u64>()?;
    }
    Ok(out)
}

pub fn ask_folded(daemon: &Daemon, query: &str) -> Result<Folded> {
    let reply = daemon.get(&format!("/api/v1/flamegraph?format=folded&{query}"))?;
    ensure!(reply.status == 200, "{query}: {} {}", reply.status, reply.body);
    folded(&reply.body)
}

pub fn ask_json(daemon: &Daemon, query: &str) -> Result<Value> {
    daemon.json(&format!("/api/v1/flamegraph?format=json&{query}"))
}

/// Pids whose samples an answer holds.
pub fn pids_in(daemon: &Daemon, query: &str) -> Result<BTreeSet<u32>> {
    let stacks = ask_folded(daemon, &format!("{query}&group=pid"))?;
    let pid = |stack: &String| {
        let first = stack.split(';').next().unwrap_or_default();
        first.strip_prefix("pid=").and_then(|pid| pid.parse().ok()).with_context(|| stack.clone())
    };
    stacks.keys().map(pid).collect()
}

/// Sum of a metric over its labels.
pub fn metric(daemon: &Daemon, name: &str) -> Result<f64> {
    let text = daemon.get("/metrics")?.body;
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = text.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(values.sum())
}

/// Frames in JIT code, each counted once a sample that has it: (named, unnamed).
pub fn jit_frames(answer: &Value) -> Result<(u64, u64)> {
    let nodes = answer["nodes"].as_array().context("no nodes")?;
    let unnamed = ["[unknown: no perf map]", "[unknown: not in perf map]", "[unknown: jvm not asked]"];
    let (mut with, mut without) = (0, 0);
    for node in nodes {
        let total = number(&node["total"])?;
        match node["kind"].as_str().unwrap_or_default() {
            "java" | "java-inlined" | "java-interpreted" | "stub" => with += total,
            "unknown" if unnamed.iter().any(|name| node["name"] == *name) => without += total,
            _ => {}
        }
    }
    Ok((with, without))
}
