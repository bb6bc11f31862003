//! What a sample takes on disk where waits and allocations are sampled beside CPU time: the generated hour of
//! `profiler/examples/store_bench`.

use super::super::row::Row;
use super::super::store;
use super::Bench;
use anyhow::{Context as _, Result};
use std::process::{Command, Stdio};

/// Bytes a sample.
const BAR: f64 = 0.6;

pub fn rows(_: &Bench) -> Result<Vec<Row>> {
    let mut program = Command::new(store::build()?);
    let output = program.args(["--only", "kinds"]).stderr(Stdio::inherit()).output();
    let said = output.context("cannot start the measurement of the store")?.stdout;
    let said = String::from_utf8_lossy(&said);
    println!("{said}");
    let fact = |name: &str| -> Result<f64> {
        let (_, rest) = said.split_once(&format!("fact {name}=")).with_context(|| format!("no {name}"))?;
        rest.lines().next().unwrap_or_default().parse().with_context(|| format!("{name} is no number"))
    };
    let (bytes, samples) = (fact("bytes")?, fact("samples")?);
    let figure = format!("{:.3} bytes", bytes / samples);
    let what = "a stored sample, generated hour of cpu, off-cpu and alloc";
    Ok(vec![Row::is(what, figure, &format!("<= {BAR} bytes"), bytes / samples <= BAR, samples as usize)])
}
