//! `bench archive`: an application's hour of 1,000 nodes from an object store.
//!
//! Builds and runs `profiler/examples/archive_bench` against an S3 server of its own (versitygw), or against the archive
//! that `--url` names. In: its arguments. Out: its figures, and a failure when one is over its bar.

use crate::launch::{S3, Storage, s3};
use crate::{places, step};
use anyhow::{Context as _, Result, bail, ensure};
use std::process::Command;

/// Runs it.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = places::cargo();
    let words =
        ["build", "--locked", "--release", "--package", "emberscope-archive", "--example", "archive_bench"];
    cargo.current_dir(places::workspace()).args(words);
    step::run("building the measurement", &mut cargo, "the compiler's message is above")?;
    let mut bench = Command::new(places::target().join("release/examples/archive_bench"));
    if arguments.iter().any(|word| word == "--url") {
        let status = bench.args(arguments).status()?;
        ensure!(status.success(), "the measurement failed, or a figure is over its bar: see above");
        return Ok(());
    }
    let binary = match s3::build()? {
        Ok(binary) => binary,
        Err(why) => bail!("{why}; name an archive with --url, such as file:///DIRECTORY"),
    };
    let dir = std::env::temp_dir().join(format!("emberscope-bench-s3-{}", std::process::id()));
    let server = S3::start(&binary, &dir).context("starting the S3 server")?;
    bench.args(["--url", &server.url("bench")]).args(arguments);
    let status = bench.envs(server.environment()).status();
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
    ensure!(status?.success(), "the measurement failed, or a figure is over its bar: see above");
    Ok(())
}
