//! `diff` of slow and usual tasks: a stage in which one task does three times the work of the others, two parts
//! of it in `TaskWork.slowPath`. That method must be the first.

use super::Bench;
use super::row::Row;
use super::tasks::Ran;
use anyhow::{Context as _, Result};

/// Measures.
pub fn rows(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let stage = *ran.stages("skew").first().context("the job did not name its skewed stage")?;
    let answer =
        bench.daemon.json(&format!("/api/v1/diff?{}&stage={stage}&slow=1&format=json", ran.query()))?;
    let first = answer["diff"][0]["name"].as_str().unwrap_or_default();
    let holds = first.ends_with("TaskWork.slowPath");
    let figure = |side: &str| answer[side]["task_cpu_seconds"].as_f64().unwrap_or_default();
    let tasks = answer["slow"]["tasks"].as_u64().unwrap_or_default() as usize;
    println!(
        "   slow tasks {:.3} s in all, median ones {:.3} s; cause {}; difference {}",
        figure("right"),
        figure("left"),
        answer["cause"],
        answer["diff"][0]["self"]
    );
    Ok(vec![Row::is("slow: first method of diff", first, "slowPath", holds, tasks)])
}
