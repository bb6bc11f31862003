//! `bench`: measurements that print figures. A file for each, and an entry in [`BENCHES`].

mod api;
mod archive;
mod bpf_stats;
mod compare;
pub mod hostile;
mod kinds;
mod kit;
mod operators;
mod overhead;
mod page;
mod probe;
pub mod procfs;
mod python;
mod row;
mod settings;
mod stacks;
mod stats;
mod store;
mod truth;

use anyhow::{Result, bail};

/// A measurement: its name, one line on what it prints, and what runs it with the arguments after its
/// name.
pub type Bench = (&'static str, &'static str, fn(&[String]) -> Result<()>);

/// All there are.
pub const BENCHES: &[Bench] = &[
    ("api", "the HTTP server under many clients, some of which never read or hang up", api::run),
    (
        "archive",
        "an application's hour of 1,000 nodes from an S3 server: compact, time, memory",
        archive::run,
    ),
    ("compare", "runs of one job compared: false alarms, and whether a slower method is found", compare::run),
    (
        "hostile",
        "attacks by an unprivileged neighbour, one after the other, beside a Spark job",
        hostile::run,
    ),
    ("kinds", "waits by reason against tasks that measure theirs; what watching switches costs", kinds::run),
    ("operators", "samples of SQL queries against the operators of their plans", operators::run),
    ("overhead", "what the daemon costs a real Spark job: paired on/off runs", overhead::run),
    ("page", "the page in Chromium: first paint, zoom, search, hover of 50,000 and 100,000 nodes", page::run),
    ("probe", "what naming threads costs a job of short tasks: ns a rename, paired on/off runs", probe::run),
    ("python", "Python stacks against a program that tells its own, on each CPython there is", python::run),
    ("settings", "what each setting of the daemon costs beside a Spark job that goes on", settings::run),
    (
        "stacks",
        "Java stacks against programs that tell their own, a real Spark job, known splits",
        stacks::run,
    ),
    ("store", "windows on disk: bytes a sample, ingest, answers, kills", store::run),
    ("truth", "samples, labels and ledger against the kernel, Spark's event log, known work", truth::run),
];

/// Which measurement.
#[derive(clap::Args)]
pub struct Options {
    /// Its name; none lists them
    name: Option<String>,
    /// Its own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs one, or lists all.
pub fn run(options: &Options) -> Result<()> {
    let Some(name) = &options.name else {
        for (name, about, _) in BENCHES {
            println!("{name:<12} {about}");
        }
        return Ok(());
    };
    match BENCHES.iter().find(|(known, ..)| known == name) {
        Some((_, _, bench)) => bench(&options.arguments),
        None => bail!("there is no measurement `{name}`; `cargo xtask bench` lists them"),
    }
}
