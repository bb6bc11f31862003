//! `emberscope daemon`: samples until it is told to stop.
//!
//! In: flags and the configuration file. What is here is the frame around the pipeline: the log, the lock
//! on the data directory, signals and the service manager.

use super::{CliError, DataDirLock, Lifecycle, logging};
use crate::config::{DaemonConfig, Settings};
use crate::pipeline;
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;

/// Flags of `emberscope daemon`.
#[derive(Args, Clone, Debug)]
pub struct DaemonArgs {
    /// Configuration file (TOML) with the same names as the flags below. A flag beats the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the configuration that would hold, as a configuration file, and end.
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(args: DaemonArgs) -> Result<(), CliError> {
    let config = DaemonConfig::load(args.config.as_deref(), args.settings)?;
    if args.print_config {
        return Ok(io::stdout().write_all(config.to_toml().as_bytes())?);
    }
    logging::start(config.log.get(), config.log_format);
    let _lock = DataDirLock::take(config.data_dir.get())?;
    let life =
        Lifecycle::install().map_err(|source| CliError::Host { what: "cannot handle signals", source })?;
    pipeline::run_daemon(config, life)?;
    tracing::info!("stopped");
    Ok(())
}
