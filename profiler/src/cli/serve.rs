//! `emberscope serve`: answers from an archive, for all nodes that wrote there, or from a data directory.
//!
//! In: the archive's URL, or a directory whose daemon does not run. Out: the daemon's HTTP API and page. Nothing is
//! sampled and nothing kept but a cache, which begins empty; so any number may serve one archive, each with a
//! directory of its own. Who may ask is as with the daemon, but that there is a Unix socket only if it is named: many serve on
//! one machine.

use super::{CliError, DataDirLock, logging, stopped};
use clap::Args;
use emberscope_archive::ReaderConfig;
use emberscope_config::{
    ArchiveUrl, ByteSize, FilePath, Interval, Listen, LogFilter, LogFormat, Price, SocketPath, WindowLength,
};

use emberscope_pipeline::{Answers, Lifecycle, ServeArchive};
use emberscope_serve::{ServeConfig, TlsFiles};

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
    /// Address and port of the HTTP server; requests there need a token. Any address but a loopback one requires a
    /// token-file.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4099")]
    listen: Listen,
    /// Unix socket for root, the user that runs this, and the members of its group, who need no token there.
    #[arg(long, value_name = "PATH", default_value = "none")]
    socket: SocketPath,
    /// File with the bearer token for full access; others must not be able to read it. Without it a token is
    /// generated: the file token in the data directory or the cache directory.
    #[arg(long, value_name = "FILE")]
    token_file: Option<FilePath>,
    /// File with a token for read-only access: all queries, but no login links.
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<FilePath>,
    /// File with a token for /metrics and /readyz only.
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<FilePath>,
    /// Answer requests on loopback without a token: from every user and every program of this machine.
    #[arg(long)]
    open_loopback: bool,
    /// File with the certificate chain of the HTTP server (PEM), which turns TLS on.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<FilePath>,
    /// File with its private key (PEM); others must not be able to read it.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<FilePath>,
    /// Address and port of a second server, for /healthz, /readyz and /metrics only.
    #[arg(long, value_name = "ADDR:PORT")]
    health_listen: Option<Listen>,
    /// Directory of the cache, used by one server at a time; a start empties it.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/emberscope")]
    cache_dir: FilePath,
    /// Disk space for the cache: beyond it, the least recently used blocks are removed.
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    cache_bytes: ByteSize,
    /// Memory for cached data, in addition to what a query needs while it runs.
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    memory: ByteSize,
    /// How often the archive's listings are read again.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    refresh: Interval,
    /// Length of the windows in the archive: the daemons' setting.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    window: WindowLength,
    /// Price of an hour of a core that an executor reserves, in any currency: with it runs have a cost.
    #[arg(long, value_name = "NUMBER")]
    price_core_hour: Option<Price>,
    /// Price of an hour of a GiB of memory that an executor reserves, in the same currency.
    #[arg(long, value_name = "NUMBER")]
    price_gib_hour: Option<Price>,
    /// Which messages are logged: error, warn, info, debug, trace, or a comma list of target=level.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: LogFilter,
    /// Format of log lines: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

impl ServeArgs {
    fn listens(&self) -> ServeConfig {
        let path = |file: &Option<FilePath>| file.as_ref().map(|file| file.get().to_owned());
        ServeConfig {
            listen: *self.listen.get(),
            socket: self.socket.get().map(ToOwned::to_owned),
            health: self.health_listen.as_ref().map(|listen| *listen.get()),
            token_file: path(&self.token_file),
            read_token_file: path(&self.read_token_file),
            metrics_token_file: path(&self.metrics_token_file),
            own_dir: self.data_dir.as_ref().unwrap_or(&self.cache_dir).get().to_owned(),
            open_loopback: self.open_loopback,
            tls: path(&self.tls_cert).zip(path(&self.tls_key)).map(|(cert, key)| TlsFiles { cert, key }),
        }
    }
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// [`CliError::Host`]: no handler of signals. [`CliError::Usage`]: the cache's directory is held by another program,
/// or cannot be made. [`CliError::Pipeline`]: the server or the archive. With `--data-dir` as for [`stopped::open`].
pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    emberscope_supervise::rights::hide_memory();
    logging::start(args.log.get(), args.log_format);
    emberscope_supervise::install_hook();
    let prices = emberscope_pipeline::prices(args.price_core_hour.as_ref(), args.price_gib_hour.as_ref());
    let answers = Answers { listen: args.listens(), prices };
    let life =
        || Lifecycle::install().map_err(|source| CliError::Host { what: "cannot handle signals", source });
    if let Some(dir) = &args.data_dir {
        let (_lock, store) = stopped::open(dir.get())?;
        emberscope_pipeline::serve_store(store, dir.get(), &answers, life()?)?;
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
    emberscope_pipeline::serve_archive(
        ServeArchive { reader, answers, window: args.window.get().get() },
        life()?,
    )?;
    tracing::info!("stopped");
    Ok(())
}

/// Holds a directory: one program at a time uses it.
///
/// # Errors
/// [`CliError::Usage`]: another program has it, or it cannot be made.
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
