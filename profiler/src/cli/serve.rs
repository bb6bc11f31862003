//! `emberscope serve`: answers from an archive, for all nodes that wrote there, or from a data directory.
//!
//! In: the archive's URL, or a directory whose daemon does not run. Out: the daemon's HTTP API and page. Nothing is
//! sampled and nothing kept but a cache, which begins empty; so any number may serve one archive, each with a
//! directory of its own.

use super::{CliError, DataDirLock, Lifecycle, logging, stopped};
use crate::archive::ReaderConfig;
use crate::config::{ArchiveUrl, ByteSize, FilePath, Interval, Listen, LogFilter, LogFormat, WindowLength};
use crate::pipeline::{self, ServeArchive};
use crate::serve::ServeConfig;
use clap::Args;

/// Flags of `emberscope serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// The archive that daemons write to (their --archive): s3://, gs://, abfs://, hdfs:// or file://. Credentials come
    /// from the environment: AWS_*, GOOGLE_*, AZURE_*, HADOOP_*.
    #[arg(long, value_name = "URL", required_unless_present = "data_dir")]
    store: Option<ArchiveUrl>,
    /// Answer from this data directory instead; no daemon may be using it.
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    data_dir: Option<FilePath>,
    /// Address and port of the HTTP server. Anything but a loopback address asks for a token-file.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4099")]
    listen: Listen,
    /// File with the bearer token that clients must send; others may not read it. /healthz needs none.
    #[arg(long, value_name = "FILE")]
    token_file: Option<FilePath>,
    /// Directory for what was read, used by one server at a time; it begins empty.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/emberscope")]
    cache_dir: FilePath,
    /// Disk space for it: over it the blocks go that were asked for longest ago.
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    cache_bytes: ByteSize,
    /// Memory for what was read, beside what a question needs while it runs.
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    memory: ByteSize,
    /// How often the archive's lists are read again.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    refresh: Interval,
    /// Length of the windows in the archive, as the daemons have it.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    window: WindowLength,
    /// Which messages are logged: error, warn, info, debug, trace, or target=level with commas between.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: LogFilter,
    /// How log lines look: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    logging::start(args.log.get(), args.log_format);
    let token_file = args.token_file.as_ref().map(|file| file.get().to_owned());
    let listen = ServeConfig { listen: *args.listen.get(), token_file };
    let life =
        || Lifecycle::install().map_err(|source| CliError::Host { what: "cannot handle signals", source });
    if let Some(dir) = &args.data_dir {
        let (_lock, store) = stopped::open(dir.get())?;
        pipeline::serve_store(store, dir.get(), listen, life()?)?;
        tracing::info!("stopped");
        return Ok(());
    }
    // The parser asks for one of the two.
    let Some(url) = &args.store else { return Ok(()) };
    let dir = args.cache_dir.get();
    let _lock = hold(dir)?;
    let reader = ReaderConfig {
        cache_bytes: args.cache_bytes.0,
        memory_bytes: args.memory.as_usize(),
        refresh: args.refresh.get(),
        ..ReaderConfig::new(url.get(), dir)
    };
    pipeline::serve_archive(ServeArchive { reader, listen, window: args.window.get().get() }, life()?)?;
    tracing::info!("stopped");
    Ok(())
}

/// One at a time uses a directory.
pub(super) fn hold(dir: &std::path::Path) -> Result<DataDirLock, CliError> {
    DataDirLock::take(dir).map_err(|error| match error {
        CliError::Locked { dir, .. } => CliError::Usage(format!(
            "another emberscope uses {}: give this one a directory of its own with --cache-dir",
            dir.display()
        )),
        CliError::DataDir { what, path, reason } => CliError::Usage(format!(
            "cannot {what} {}: {reason}; name a directory that can be written with --cache-dir",
            path.display()
        )),
        other => other,
    })
}
