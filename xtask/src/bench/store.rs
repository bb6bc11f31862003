//! `bench store`: what windows take on disk and how soon questions about them are answered.
//!
//! Builds and runs `profiler/examples/store_bench`, which uses the store alone: no kernel, no JVM, no root. In: its
//! arguments. Out: its table, and a failure when a figure is over its bar.

use crate::{places, step};
use anyhow::{Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// Builds it; the program is the answer.
pub fn build() -> Result<PathBuf> {
    let mut cargo = places::cargo();
    let words = ["build", "--locked", "--release", "--package", "emberscope", "--example", "store_bench"];
    cargo.current_dir(places::workspace()).args(words);
    step::run("building the measurement", &mut cargo, "the compiler's message is above")?;
    Ok(places::target().join("release/examples/store_bench"))
}

/// Runs it.
pub fn run(arguments: &[String]) -> Result<()> {
    let status = Command::new(build()?).args(arguments).status()?;
    ensure!(status.success(), "the measurement failed, or a figure is over its bar: see above");
    Ok(())
}
