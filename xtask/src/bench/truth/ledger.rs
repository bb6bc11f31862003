//! The ledger's CPU time of each task against Spark's own: `Executor CPU Time` + `Executor Deserialize CPU
//! Time` of the event log. Spark's clock covers a part of what the task's thread does, so the ledger may only be
//! above it. Failed and killed tasks are left out: Spark says 0 for them.

use super::Bench;
use super::row::Row;
use super::tasks::Ran;
use crate::bench::stats::{Summary, quantile};
use crate::launch::asked::exact_cpu;
use crate::launch::event_log::Task;
use anyhow::Result;

/// What the ledger may be below Spark's figure, in milliseconds.
const BELOW_MS: f64 = 0.2;

/// Measures.
pub fn rows(bench: &Bench, ran: &Ran) -> Result<Vec<Row>> {
    let exact = exact_cpu(&bench.daemon, &ran.query())?;
    let measured: Vec<&Task> = ran.log.tasks.iter().filter(|task| task.succeeded()).collect();
    let missing = measured.iter().filter(|task| !exact.contains_key(&task.tid)).count();
    let mut rows =
        vec![Row::at_most("ledger: tasks of the event log without a line", missing, 0, measured.len())];
    let above = |task: &Task| Some(exact.get(&task.tid)? * 1e3 - task.spark_cpu_ns() as f64 / 1e6);
    for phase in ["short", "range", "two", "skew", "steady"] {
        let stages = ran.stages(phase);
        let tasks = measured.iter().filter(|task| stages.contains(&task.stage));
        let figures: Vec<f64> = tasks.filter_map(|task| above(task)).collect();
        let Some(all) = Summary::of(&figures) else { continue };
        let (p10, p90) = (quantile(&figures, 0.1), quantile(&figures, 0.9));
        let text = format!(
            "{:+.2} {p10:+.2} {:+.2} {p90:+.2} {:+.2} ms; mean {:+.2}",
            all.min, all.median, all.max, all.mean
        );
        rows.push(Row::told(format!("ledger: less event log, {phase}: min p10 median p90 max"), text, all.n));
    }
    let figures: Vec<f64> = measured.iter().filter_map(|task| above(task)).collect();
    let below: Vec<&&Task> =
        measured.iter().filter(|task| above(task).is_some_and(|above| above < -BELOW_MS)).collect();
    for task in below.iter().take(5) {
        println!("   below the event log by {:.3} ms: {task:?}", -above(task).unwrap_or_default());
    }
    let what = format!("ledger: tasks more than {BELOW_MS} ms below the event log");
    rows.push(Row::at_most(what, below.len(), 0, figures.len()));
    Ok(rows)
}
