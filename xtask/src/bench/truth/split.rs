//! A Java program whose CPU time splits 70 to 30 by construction (tests/jobs/Split.java): the share seen.

use super::row::Row;
use super::{Bench, TIMEOUT};
use crate::bench::procfs;
use crate::clock::{WINDOW_MS, over_windows};
use crate::launch::JavaProgram;
use crate::places;
use anyhow::{Context as _, Result, bail};
use std::time::Duration;

/// Measures.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let work = bench.work.join("split");
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let source = std::fs::read_to_string(places::workspace().join("tests/jobs/Split.java"))
        .context("reading tests/jobs/Split.java")?;
    let seconds = bench.options.windows * WINDOW_MS / 1000 + 30;
    let mut program = JavaProgram::new("Split", &source, &bench.kit.jdk.home)
        .flag("-XX:CompileCommand=quiet")
        .flag("-XX:CompileCommand=dontinline,Split::*")
        .arg(seconds.to_string())
        .start(&work)?;
    let pid: u32 = program.wait_fact("started", TIMEOUT)?.parse().context("the program's pid")?;
    // Past the interpreter and the first compilations.
    std::thread::sleep(Duration::from_secs(3));
    let (from, until, before, after) = over_windows(bench.options.windows, || procfs::cpu_seconds(pid))?;
    let path = format!("/api/v1/flamegraph?pid={pid}&from={from}&until={until}&format=folded");
    let reply = bench.daemon.get(&path)?;
    let total = |part: &str| -> f64 {
        let lines = reply.body.lines().filter(|line| line.contains(part));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let (seven, three, all) = (total(";Split.seven"), total(";Split.three"), total(""));
    let both = seven + three;
    if both == 0.0 {
        bail!("no sample of Split.seven or Split.three among {all} samples:\n{}", reply.body);
    }
    let (seen, truth) = (all / f64::from(bench.options.hz), after - before);
    Ok(vec![
        Row::deviation("split: share of the 70 of 70/30", seven / both * 100.0, 70.0, "%", 1.0, both),
        Row::deviation("split: its JVM, samples x period against /proc", seen, truth, "s", 1.0, all),
    ])
}
