//! The command line: a file for each command.
//!
//! In: arguments. Out: an exit code and, on failure, one sentence. Commands that ask for stored samples
//! are HTTP clients of a daemon, by its Unix socket unless told; `daemon` and `record` start the pipeline; `doctor` looks at the host.

mod answer;
mod apps;
mod ask;
mod client;
mod command;
mod compact;
mod compare;
mod completions;
#[cfg(test)]
mod contract;
mod daemon;
mod diff;
mod doctor;
mod executors;
mod exit;
mod export;
#[cfg(test)]
mod fake;
mod figures;
mod file_format;
mod flamegraph;
mod import;
mod labels;
mod lock;
mod logging;
mod output;
mod pauses;
mod record;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod reference;
mod runs;
mod selection;
mod serve;
mod shape;
mod sql;
mod stages;
mod status;
mod stopped;
mod table;
mod tasks;
mod tax;
mod text;
mod top;
mod unix;
mod url;
mod values;
mod version;
mod waited;
mod when;
mod words;

pub use completions::complete;
pub use exit::{CODES_HELP, CliError, code};
pub use lock::{DataDirLock, Holder};
pub use text::clean;

use clap::Parser;
use command::Command;

/// An always-on profiler for machines that run Apache Spark.
///
/// The daemon samples every process of the node and keeps what it saw; the other commands query it.
#[derive(Parser, Clone, Debug)]
#[command(name = "emberscope", version = version::text(), max_term_width = 100, after_help = CODES_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Does what was asked. Out: the exit code.
    ///
    /// # Errors
    /// [`CliError`] of the command, with the exit code that it leads to ([`CliError::code`]).
    pub fn run(self) -> Result<u8, CliError> {
        self.command.run()
    }
}
