//! Sampled CPU time of each stage against the ledger's: every stage inside twice the standard error that the answer
//! states (95 in 100), and the stages of a phase pooled, over rounds too, within half a percent from 40,000 samples
//! on. With fewer the pooled bar has its sampling error added.

use super::Bench;
use super::row::Row;
use super::tasks::Ran;
use crate::bench::procfs;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// A stage with fewer samples says nothing.
const FEWEST: f64 = 100.0;
/// From here on a pool is held to its bar alone.
const MANY: f64 = 40_000.0;
/// Deviation allowed, in percent.
const BAR: f64 = 0.5;

/// Samples, their seconds and the ledger's, by phase.
#[derive(Default)]
pub struct Pools(BTreeMap<&'static str, (f64, f64, f64)>);

impl Pools {
    /// The stages of a run.
    ///
    /// Interrupts, and what a hypervisor steals, are in samples and not in the ledger where the kernel accounts
    /// for them apart (CONFIG_IRQ_TIME_ACCOUNTING, steal time: `update_rq_clock_task`, kernel/sched/core.c, 6.18).
    pub fn add(&mut self, bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
        let used = procfs::machine()?.since(&ran.machine);
        let share = |ticks: u64| ticks as f64 / used.busy.max(1) as f64 * 100.0;
        let meanwhile =
            format!("{:.2} % interrupts, {:.2} % stolen", share(used.interrupts), share(used.stolen));
        let answer = bench.daemon.json(&format!("/api/v1/stages?{}", ran.query()))?;
        let stages = answer["stages"].as_array().context("no stages in the answer")?;
        let (mut outside, mut far, mut n) = (0, 0, 0);
        let mut told = Vec::new();
        for phase in ["short", "range", "two", "skew", "steady"] {
            for id in ran.stages(phase) {
                let id = id.to_string();
                let stage = stages.iter().find(|stage| stage["stage"] == *id);
                let stage = stage.with_context(|| format!("stage {id} is not in the answer"))?;
                let figure = |kind: &str, name: &str| stage[kind][name].as_f64();
                let samples = figure("sampled", "samples").context("no samples")?;
                let sampled = figure("sampled", "cpu_seconds").context("no sampled cpu_seconds")?;
                let Some(exact) = figure("exact", "cpu_seconds") else { continue };
                let pool = self.0.entry(phase).or_default();
                *pool = (pool.0 + samples, pool.1 + sampled, pool.2 + exact);
                if samples >= FEWEST {
                    let error = figure("sampled", "sampling_error").context("no sampling_error")?;
                    let off = sampled / exact - 1.0;
                    n += 1;
                    outside += usize::from(off.abs() > error);
                    far += usize::from(off.abs() > 2.0 * error);
                    told.push(format!("{phase} {:+.1} of {:.1} %", off * 100.0, error * 100.0));
                }
            }
        }
        println!("   sampled less exact, and the stated error: {}", told.join(", "));
        Ok(vec![
            Row::told("sampled: stages off by more than the stated standard error", outside.to_string(), n),
            Row::at_most("sampled: stages off by more than twice that", far, 0, n),
            Row::told("sampled: the CPUs' time in interrupts, and stolen, of their busy time", meanwhile, n),
        ])
    }

    /// All rounds together.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(phase, (n, sampled, exact)): (&&str, &(f64, f64, f64))| {
            let what = format!("sampled: stages of {phase}, pooled, against the ledger");
            if *n >= MANY {
                Row::exact(what, *sampled, *exact, "s", BAR, *n as usize)
            } else {
                Row::deviation(what, *sampled, *exact, "s", BAR, *n)
            }
        };
        self.0.iter().map(row).collect()
    }
}
