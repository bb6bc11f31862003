//! `emberscope daemon`: samples until it is told to stop.
//!
//! In: flags and the configuration file. What is here is the frame around the pipeline: the log, the lock
//! on the data directory, signals and the service manager.

use super::{CliError, DataDirLock, logging};
use clap::Args;
use emberscope_config::{DaemonConfig, Settings};

use emberscope_pipeline::{Lifecycle, PipelineError};
use emberscope_supervise::quarantine;
use emberscope_supervise::rights;
use std::io::{self, Write};
use std::path::PathBuf;

/// Flags of `emberscope daemon`.
#[derive(Args, Clone, Debug)]
pub struct DaemonArgs {
    /// Configuration file (TOML) with the same names as the flags below. A flag overrides the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the effective configuration, as a configuration file, and exit.
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// [`CliError::Config`]: the flags or the file. [`CliError::Locked`], [`CliError::DataDir`]: the data directory.
/// [`CliError::Host`]: no handler of signals. [`CliError::Pipeline`]: sampling or answering cannot start or go on.
/// [`CliError::Output`]: with `--print-config`.
pub fn run(args: DaemonArgs) -> Result<(), CliError> {
    // Before anything secret is read.
    rights::hide_memory();
    let config = DaemonConfig::load(args.config.as_deref(), args.settings)?;
    if args.print_config {
        return Ok(io::stdout().write_all(config.to_toml().as_bytes())?);
    }
    logging::start(config.log.get(), config.log_format);
    emberscope_supervise::install_hook();
    let _lock = DataDirLock::take(config.data_dir.get())?;
    if let Err(error) = quarantine::start(&config.data_dir.get().join("quarantine")) {
        tracing::warn!(%error, "what brings the daemon down is not remembered over a restart");
    }
    let life =
        Lifecycle::install().map_err(|source| CliError::Host { what: "cannot handle signals", source })?;
    let ended = emberscope_pipeline::run_daemon(config, life);
    match &ended {
        Err(PipelineError::Panicked(panicked)) => {
            tracing::error!(%panicked, "sampling ended");
            quarantine::ends_by_panic();
        }
        Ok(()) | Err(_) => quarantine::ends_in_order(),
    }
    ended?;
    tracing::info!("stopped");
    Ok(())
}
