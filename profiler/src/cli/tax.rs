//! `emberscope tax`: how the CPU time of JVMs splits by class of thread.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{moment, or_nothing};
use super::table::{Align, Table};
use super::text::{percent, percent_within, time, time_within};
use clap::Args;
use emberscope_model::ThreadClass;
use serde::Deserialize;

const PATH: &str = "/api/v1/tax";

/// Flags of `emberscope tax`.
#[derive(Args, Clone, Debug)]
pub struct TaxArgs {
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each class, and one for each process.
///
/// # Errors
/// [`CliError::Usage`] with `--thread-class`, before anybody is asked. Else as for [`AskArgs::run`].
pub fn run(args: &TaxArgs) -> Result<(), CliError> {
    if !args.ask.select.labels.thread_class.is_empty() {
        let message =
            "--thread-class is what the tax splits by; emberscope top --thread-class shows a class's methods";
        return Err(CliError::Usage(message.to_owned()));
    }
    args.ask.run::<Tax>(PATH, Vec::new())
}

#[derive(Debug, Deserialize)]
struct Tax {
    #[serde(flatten)]
    basis: Basis,
    #[serde(default, deserialize_with = "or_nothing")]
    source: String,
    stage: Option<Stage>,
    total: Part,
    #[serde(default)]
    classes: Vec<Part>,
    #[serde(default)]
    processes: Vec<Process>,
    #[serde(default)]
    beside: Vec<Beside>,
}

/// The stage whose time it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stage {
    tasks: u64,
    #[serde(deserialize_with = "or_nothing")]
    first_seen: String,
    #[serde(deserialize_with = "or_nothing")]
    last_seen: String,
    cpu_seconds: Option<f64>,
}

/// CPU time of a class, or of all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    thread_class: Option<String>,
    cpu_seconds: Option<f64>,
    user_seconds: Option<f64>,
    system_seconds: Option<f64>,
    cpu_error: Option<f64>,
    user_error: Option<f64>,
    system_error: Option<f64>,
    share: Option<f64>,
    share_error: Option<f64>,
    samples: u64,
    sampled_cpu_seconds: Option<f64>,
    sampling_error: Option<f64>,
}

impl Part {
    /// CPU, user, kernel, sampled.
    fn cells(&self) -> [String; 4] {
        let sampled = Some(self.sampled_cpu_seconds).filter(|_| self.samples > 0).flatten();
        [
            time_within(self.cpu_seconds, self.cpu_error),
            time_within(self.user_seconds, self.user_error),
            time_within(self.system_seconds, self.system_error),
            time_within(sampled, self.sampling_error),
        ]
    }
    /// Samples of a JVM from before it was known to be one have no class.
    fn class(&self) -> &str {
        self.thread_class.as_deref().unwrap_or("(none)")
    }
    fn is_used(&self) -> bool {
        self.samples > 0 || self.cpu_seconds.is_some_and(|seconds| seconds > 0.0)
    }
}

#[derive(Debug, Deserialize)]
struct Process {
    #[serde(flatten)]
    who: Who,
    #[serde(default, deserialize_with = "or_nothing")]
    source: String,
    #[serde(default)]
    total: Part,
    #[serde(default)]
    classes: Vec<Part>,
}

/// A process that is no JVM.
#[derive(Debug, Deserialize)]
struct Beside {
    #[serde(flatten)]
    who: Who,
    #[serde(default)]
    samples: u64,
    cpu_seconds: Option<f64>,
    sampling_error: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Who {
    pid: Option<u32>,
    #[serde(deserialize_with = "or_nothing")]
    app: String,
    #[serde(deserialize_with = "or_nothing")]
    role: String,
    #[serde(deserialize_with = "or_nothing")]
    executor: String,
    #[serde(deserialize_with = "or_nothing")]
    process: String,
}

const WHO: [(&str, Align); 4] =
    [("PID", Align::Right), ("APP", Align::Left), ("ROLE", Align::Left), ("EXECUTOR", Align::Left)];

impl Who {
    fn cells(&self) -> [String; 4] {
        let pid = self.pid.map(|pid| pid.to_string()).unwrap_or_default();
        [pid, self.app.clone(), self.role.clone(), self.executor.clone()]
    }
}

impl Rows for Tax {
    const WHAT: &'static str = "JVM";
    fn basis(&self) -> &Basis {
        &self.basis
    }
    fn table(&self) -> Table {
        let right = |name| (name, Align::Right);
        let columns = ["CPU", "SHARE", "USER", "KERNEL", "SAMPLED"].map(right);
        let mut table = Table::new(&[vec![("CLASS", Align::Left)], columns.to_vec()].concat());
        if self.processes.is_empty() {
            return table;
        }
        for part in &self.classes {
            table.row(line(part.class(), part, percent_within(part.share, part.share_error)));
        }
        let whole = self.total.cpu_seconds.filter(|seconds| *seconds > 0.0).map(|_| 1.0);
        table.row(line("sum", &self.total, percent(whole)));
        table.note(how(&self.source).to_owned());
        if let Some(stage) = &self.stage {
            let (from, until) = self.basis.range();
            let (first, last) =
                (moment(&stage.first_seen, from, until), moment(&stage.last_seen, from, until));
            let tasks = counted(stage.tasks, "task");
            let own = time(stage.cpu_seconds);
            table.note(format!(
                "the JVMs that ran the stage's {tasks} ({own} of CPU, helpers and Python included), with all that they did in \
                 the windows from {first} to {last}"
            ));
        }
        table
    }
    /// A row for each JVM, the classes beside each other; then what is no JVM.
    fn below(&self) -> Vec<Table> {
        let used = |class: &str| {
            let parts = self.processes.iter().flat_map(|process| &process.classes);
            parts.filter(|part| part.class() == class).any(Part::is_used)
        };
        // Columns have names of the closed list; what else came is in the sum.
        let classes: Vec<&'static str> =
            ThreadClass::ALL.iter().map(|class| class.slug()).filter(|c| used(c)).collect();
        let mut columns = WHO.to_vec();
        columns.extend(["CPU", "USER", "KERNEL"].map(|name| (name, Align::Right)));
        columns.extend(classes.iter().map(|class| (*class, Align::Right)));
        columns.push(("BY", Align::Left));
        let mut processes = Table::new(&columns);
        for process in &self.processes {
            let mut row = process.who.cells().to_vec();
            row.extend(process.total.cells().into_iter().take(3));
            row.extend(classes.iter().map(|class| {
                let part = process.classes.iter().find(|part| part.class() == *class);
                part.map(|part| percent_within(part.share, part.share_error)).unwrap_or_default()
            }));
            row.push(process.source.clone());
            processes.row(row);
        }
        let columns =
            [WHO.as_slice(), &[("PROCESS", Align::Left), ("SAMPLES", Align::Right), ("CPU", Align::Right)]];
        let mut beside = Table::new(&columns.concat());
        for row in &self.beside {
            let mut cells = row.who.cells().to_vec();
            cells.extend([row.who.process.clone(), row.samples.to_string()]);
            cells.push(time_within(row.cpu_seconds, row.sampling_error));
            beside.row(cells);
        }
        beside.note("no JVMs, and in no sum above".to_owned());
        vec![processes, beside]
    }
}

fn line(class: &str, part: &Part, share: String) -> [String; 6] {
    let [cpu, user, kernel, sampled] = part.cells();
    [class.to_owned(), cpu, share, user, kernel, sampled]
}

/// What the figures rest on.
fn how(source: &str) -> &'static str {
    match source {
        "ledger" => {
            "exact, by the kernel's accounts of each thread, but SAMPLED: by n samples, +- the standard error 1/sqrt(n)"
        }
        "samples" => {
            "by samples: +- is the standard error, 1/sqrt(n) of a time of n samples, sqrt(p (1 - p) / n) of a share p"
        }
        _ => {
            "CPU, USER and KERNEL: exact, by the kernel's accounts, of the JVMs marked ledger; of the others by n \
             samples, and of these is +- the standard error; SAMPLED: by n samples, +- 1/sqrt(n)"
        }
    }
}

#[cfg(test)]
mod tests;
