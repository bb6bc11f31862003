//! `emberscope tax`: how the CPU time of JVMs splits by class of thread.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{known, moment};
use super::table::{Align, Table};
use super::text::{percent, percent_within, time, time_within};
use clap::Args;
use emberscope_api::route::{self, Route};
use emberscope_api::{Part, PartOf, Tax, Who};
use emberscope_model::ThreadClass;

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
    args.ask.run::<Tax>(Vec::new())
}

/// CPU, user, kernel, sampled.
fn times(part: &Part) -> [String; 4] {
    let sampled = part.sampled_cpu_seconds.filter(|_| part.samples > 0);
    [
        time_within(part.cpu_seconds, part.cpu_error),
        time_within(part.user_seconds, part.user_error),
        time_within(part.system_seconds, part.system_error),
        time_within(sampled, part.sampling_error),
    ]
}

/// Samples of a JVM from before it was known to be one have no class.
fn class(part: &PartOf) -> &str {
    part.thread_class.as_deref().unwrap_or("(none)")
}

const WHO: [(&str, Align); 4] =
    [("PID", Align::Right), ("APP", Align::Left), ("ROLE", Align::Left), ("EXECUTOR", Align::Left)];

fn who(who: &Who) -> [String; 4] {
    let pid = who.pid.map(|pid| pid.to_string()).unwrap_or_default();
    [pid, known(&who.app), known(&who.role), known(&who.executor)]
}

impl Rows for Tax {
    const WHAT: &'static str = "JVM";
    const ROUTE: &'static Route = &route::TAX;
    fn table(&self, basis: &Basis) -> Table {
        let right = |name| (name, Align::Right);
        let columns = ["CPU", "SHARE", "USER", "KERNEL", "SAMPLED"].map(right);
        let mut table = Table::new(&[vec![("CLASS", Align::Left)], columns.to_vec()].concat());
        if self.processes.is_empty() {
            return table;
        }
        for part in &self.classes {
            table.row(line(class(part), &part.part, percent_within(part.share, part.share_error)));
        }
        let whole = self.total.cpu_seconds.filter(|seconds| *seconds > 0.0).map(|_| 1.0);
        table.row(line("sum", &self.total, percent(whole)));
        table.note(how(self.source.as_deref()).to_owned());
        if let Some(stage) = &self.stage {
            let (from, until) = basis.range();
            let [first, last] =
                [&stage.first_seen, &stage.last_seen].map(|time| moment(time.as_ref(), from, until));
            let tasks = counted(stage.tasks, "task");
            let own = match time(stage.cpu_seconds) {
                own if own.is_empty() => own,
                own => format!(" ({own} of CPU, helpers and Python included)"),
            };
            table.note(format!(
                "the JVMs that ran the stage's {tasks}{own}, with all that they did in the windows from {first} to {last}"
            ));
        }
        table
    }
    /// A row for each JVM, the classes beside each other; then what is no JVM.
    fn below(&self) -> Vec<Table> {
        let used = |name: &str| {
            let mut parts = self.processes.iter().flat_map(|process| &process.classes);
            let is_used = |PartOf { part, .. }: &PartOf| {
                part.samples > 0 || part.cpu_seconds.is_some_and(|seconds| seconds > 0.0)
            };
            parts.any(|part| class(part) == name && is_used(part))
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
            let mut row = who(&process.who).to_vec();
            row.extend(times(&process.total).into_iter().take(3));
            row.extend(classes.iter().map(|name| {
                let part = process.classes.iter().find(|part| class(part) == *name);
                part.map(|part| percent_within(part.share, part.share_error)).unwrap_or_default()
            }));
            row.push(process.source.clone().unwrap_or_default().into_owned());
            processes.row(row);
        }
        let columns =
            [WHO.as_slice(), &[("PROCESS", Align::Left), ("SAMPLES", Align::Right), ("CPU", Align::Right)]];
        let mut beside = Table::new(&columns.concat());
        for row in &self.beside {
            let mut cells = who(&row.who).to_vec();
            cells.extend([known(&row.who.process), row.samples.to_string()]);
            cells.push(time_within(row.cpu_seconds, row.sampling_error));
            beside.row(cells);
        }
        beside.note("not JVMs, and in no sum above".to_owned());
        vec![processes, beside]
    }
}

fn line(class: &str, part: &Part, share: String) -> [String; 6] {
    let [cpu, user, kernel, sampled] = times(part);
    [class.to_owned(), cpu, share, user, kernel, sampled]
}

/// What the figures rest on.
fn how(source: Option<&str>) -> &'static str {
    match source {
        Some("ledger") => {
            "exact, from the kernel's accounts of each thread, except SAMPLED: from n samples, +- the standard error 1/sqrt(n)"
        }
        Some("samples") => {
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
