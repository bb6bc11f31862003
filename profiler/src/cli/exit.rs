//! How a command ends: the exit codes and the errors that lead to them.
//!
//! A script can tell by the code alone whether to mend its call (2), to wait for data (3) or to start
//! the daemon (4). Errors are one sentence each and carry their cause behind a colon.

use emberscope_config::{ConfigError, SelectError};
use emberscope_export::ExportError;
use emberscope_import::ImportError;
use emberscope_pipeline::PipelineError;
use std::io;
use std::path::PathBuf;

/// Exit codes, as `--help` and docs/reference/cli.md tell them.
pub mod code {
    /// The command worked.
    pub const OK: u8 = 0;
    /// The command failed; or of `compare --fail-over` something grew by more.
    pub const FAILURE: u8 = 1;
    /// A flag, a parameter or the configuration file is wrong (clap's own code, too).
    pub const USAGE: u8 = 2;
    /// Nothing found: an unknown application, or no samples in the selection.
    pub const NOTHING: u8 = 3;
    /// No daemon answers at the address.
    pub const UNREACHABLE: u8 = 4;
}

/// The codes, for help texts.
pub const CODES_HELP: &str = "\
Exit codes:
  0  success
  1  failure; or, with compare --fail-over, something grew by more than allowed
  2  a flag, a parameter or the configuration file is wrong
  3  nothing found: an unknown application, or no samples in the selection
  4  no daemon answers at the address";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Flags that do not fit together, or to the place the output goes to.
    #[error("{0}")]
    Usage(String),
    /// The daemon answered with an error.
    #[error("{message}")]
    Api {
        /// HTTP status.
        status: u16,
        /// The daemon's sentence.
        message: String,
    },
    /// The daemon answered something else than a daemon does.
    #[error("{url} does not answer like an emberscope daemon: {reason}")]
    Answer {
        /// The address that was asked.
        url: String,
        /// What is odd about it.
        reason: String,
    },
    /// Nobody answers at the daemon's address.
    #[error(
        "no daemon answers at {url} ({reason}): start one with `emberscope daemon`, or name another with --url"
    )]
    Unreachable {
        /// The address that was asked.
        url: String,
        /// What the client says.
        reason: String,
    },
    /// The daemon's socket is for others.
    #[error(
        "you may not use {}: {}. Ask with sudo{}; or ask over TCP with a token: --url http://127.0.0.1:4099 \
         --token-file FILE",
        path.display(),
        group.as_ref().map_or("only root may".to_owned(), |group| format!("you are not in group {group}")),
        group.as_ref().map_or(String::new(), |group| {
            format!("; or have yourself added (usermod -aG {group} $USER) and log in again")
        })
    )]
    Stranger {
        /// The daemon's socket.
        path: PathBuf,
        /// The group that may, where it is not root's.
        group: Option<String>,
    },
    /// Nothing matches what was chosen.
    #[error("{0}")]
    Nothing(String),
    /// A file could not be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was to be done, behind `cannot`.
        what: &'static str,
        /// Path of the file, as it was given.
        path: PathBuf,
        /// The file system's error.
        #[source]
        source: io::Error,
    },
    /// The data directory cannot be made or held.
    #[error("cannot {what} {}: {reason}; name a directory that can be written with --data-dir", path.display())]
    DataDir {
        /// What was to be done, behind `cannot`.
        what: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// Why not; no `source`, because the sentence has it already, before the mend.
        reason: io::Error,
    },
    /// Standard output could not be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// The machine refuses something that every machine gives.
    #[error("{what}")]
    Host {
        /// What cannot be done, as a sentence.
        what: &'static str,
        /// The system call's error.
        #[source]
        source: io::Error,
    },
    /// Another daemon has the data directory.
    #[error(
        "another emberscope daemon{} uses {}: stop it, or give this one another --data-dir and --listen",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), .dir.display()
    )]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// Who has it, as the lock file says.
        pid: Option<u32>,
    },
    /// A flame graph could not be made.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// An archive could not be read or written.
    #[error("{0}")]
    Archive(String),
    /// A file cannot be imported.
    #[error("{}: {error}; nothing of it was imported", path.display())]
    Import {
        /// Path of the file, as it was given.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<ImportError>,
    },
    /// A store on the disk cannot be opened or read.
    #[error("{0}")]
    Store(String),
    /// Sampling failed.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
}

impl CliError {
    /// The exit code that the error leads to.
    pub fn code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage(_) => code::USAGE,
            Self::Api { status: 400 | 409, .. } => code::USAGE,
            Self::Api { status: 404, .. } | Self::Nothing(_) => code::NOTHING,
            Self::Pipeline(PipelineError::Select(error)) => match error {
                SelectError::UnknownApp { .. } => code::NOTHING,
                SelectError::AmbiguousApp { .. } => code::USAGE,
            },
            Self::Import { error, .. } => match **error {
                ImportError::NoPeriod(_) | ImportError::HasTimes => code::USAGE,
                ImportError::Empty | ImportError::Nothing(_) | ImportError::NoCpu(_) | ImportError::NoLog => {
                    code::NOTHING
                }
                _ => code::FAILURE,
            },
            Self::Unreachable { .. } => code::UNREACHABLE,
            _ => code::FAILURE,
        }
    }
    /// Whether the reader of our output has gone (`| head`): no failure.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Output(source) | Self::File { source, .. } => source.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }
}
