//! `bench kinds`: waits by their reason against tasks that measure theirs ([`waits`]; [`tasks`], of which each is judged), and what
//! watching switches costs ([`switches`], [`rates`]); allocations against the JVM's own account ([`allocations`]); how often a stated
//! error is right ([`errors`]); pauses against the JVM's log ([`gc`]); what a sample takes on disk ([`store`]); time and allocations by
//! method against async-profiler on the same run ([`peers`]).

mod allocations;
mod errors;
mod gc;
mod measured;
mod peers;
mod rates;
mod store;
mod switches;
mod tasks;
mod waits;

use super::{kit, row};
use crate::{build, places};
use anyhow::{Result, bail};
use clap::Parser;
use std::path::PathBuf;

#[derive(Parser)]
#[command(
    name = "kinds",
    about = "Waits against what tasks measure, what a switch costs, allocations against the JVM's account, stated errors against a hundred runs, pauses against the JVM's log, bytes a sample, time and allocations against async-profiler"
)]
struct KindsOptions {
    #[command(flatten)]
    kit: kit::Options,
    /// Waits of a task
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// Length of one, milliseconds
    #[arg(long, default_value_t = 50)]
    millis: u32,
    /// Rounds of switches, and of allocations, with the programs and without
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these (default: all)
    #[arg(long, value_delimiter = ',')]
    rows: Vec<Rows>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rows {
    Waits,
    Tasks,
    Switches,
    Rates,
    Allocations,
    Errors,
    Gc,
    Store,
    AsyncProfiler,
}

/// What measures rows.
type Measures = fn(&Bench) -> Result<Vec<row::Row>>;

/// What measures them, in this order.
const ALL: [(Rows, Measures); 9] = [
    (Rows::Waits, waits::rows),
    (Rows::Tasks, tasks::rows),
    (Rows::Switches, switches::rows),
    (Rows::Rates, rates::rows),
    (Rows::Allocations, allocations::rows),
    (Rows::Errors, errors::rows),
    (Rows::Gc, gc::rows),
    (Rows::Store, store::rows),
    (Rows::AsyncProfiler, peers::rows),
];

/// What all need.
struct Bench {
    options: KindsOptions,
    binary: PathBuf,
    work: PathBuf,
}

/// Has the daemon sample waits.
const WITH_WAITS: [&str; 2] = ["--events", "cpu,off-cpu"];

/// Has it sample allocations.
const WITH_ALLOCATIONS: [&str; 2] = ["--events", "cpu,alloc"];

/// Has it sample CPU time alone.
const WITHOUT: [&str; 2] = ["--events", "cpu"];

/// Entry of the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let options =
        KindsOptions::parse_from(std::iter::once("kinds".to_owned()).chain(arguments.iter().cloned()));
    let binary = build::run()?;
    let work = places::target().join("bench/kinds");
    let _ = std::fs::remove_dir_all(&work);
    let bench = Bench { options, binary, work };
    let only = &bench.options.rows;
    let mut rows = Vec::new();
    for (name, measure) in ALL {
        if only.is_empty() || only.contains(&name) {
            rows.extend(measure(&bench)?);
        }
    }
    row::print(&rows);
    match rows.iter().filter(|row| row.fails()).count() {
        0 => Ok(()),
        failed => bail!("{failed} figures are outside their bars"),
    }
}
