//! `emberscope compact`: brings the hours of an archive together, an application's of all nodes as one block.
//!
//! In: the archive's URL, hours. Out: a line for each application and hour. Run again it does what is new.

use super::serve::hold;
use super::table::{Align, Table};
use super::when::{When, range, when};
use super::{CliError, logging, output, text};
use clap::Args;
use emberscope_archive::{CompactConfig, CompactError, Compacted, compact};
use emberscope_config::{ArchiveUrl, ByteSize, FilePath};
use emberscope_model::{TimeRange, WallTime};
use emberscope_serve::time::parse_time;
use std::io::{self, Write};

/// Flags of `emberscope compact`.
#[derive(Args, Clone, Debug)]
pub struct CompactArgs {
    /// The archive that daemons write to (their --archive): s3://, gs://, abfs://, hdfs:// or file://. Credentials come
    /// from the environment: AWS_*, GOOGLE_*, AZURE_*, HADOOP_*.
    #[arg(long, value_name = "URL")]
    store: ArchiveUrl,
    /// Only this application, by its id. Default: all.
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// Hours from this time on.
    #[arg(long, value_name = "TIME", default_value = "-1d", allow_hyphen_values = true, value_parser = when)]
    from: When,
    /// Hours until this time; the current hour is left for later.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true, value_parser = when)]
    until: When,
    /// Directory for temporary files.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/emberscope/compact")]
    cache_dir: FilePath,
    /// Disk space for them.
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    cache_bytes: ByteSize,
    /// Memory for the applications of an hour.
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    memory: ByteSize,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Brings the hours together, and prints what was done when all is done.
///
/// # Errors
/// [`CliError::Usage`]: a time that makes no sense, or a directory that another program holds or that cannot be made.
/// [`CliError::Archive`]: the archive fails; hours that were brought together by then stay, and are not printed.
/// [`CliError::Output`].
pub fn run(args: &CompactArgs) -> Result<(), CliError> {
    logging::start("warn", emberscope_config::LogFormat::Text);
    emberscope_supervise::install_hook();
    let now = WallTime::now();
    let time = |text: &Option<String>| {
        parse_time(text.as_deref().unwrap_or("now"), now).map_err(|error| CliError::Usage(error.to_string()))
    };
    let [from, until] = range(Some(&args.from), Some(&args.until), &jiff::Zoned::now());
    let config = CompactConfig {
        url: args.store.get().clone(),
        dir: args.cache_dir.get().to_owned(),
        dir_bytes: args.cache_bytes.0,
        memory_bytes: args.memory.as_usize(),
        app: args.app.clone(),
        range: TimeRange { from: time(&from)?, until: time(&until)? },
    };
    let _lock = hold(&config.dir)?;
    let mut all = Vec::new();
    compact(&config, |compacted| all.push(compacted)).map_err(failed)?;
    show(&all, args.json, &mut io::stdout().lock())
}

fn failed(error: CompactError) -> CliError {
    CliError::Archive(error.to_string())
}

fn show(all: &[Compacted], json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    if json {
        for compacted in all {
            let line = serde_json::to_string(compacted).map_err(io::Error::from)?;
            output::write_json(out, &line)?;
        }
        return Ok(out.flush()?);
    }
    let mut table = Table::new(&[
        ("HOUR", Align::Left),
        ("APP", Align::Left),
        ("BLOCKS", Align::Right),
        ("BYTES", Align::Right),
        ("", Align::Left),
    ]);
    for one in all {
        let what = if one.unchanged { "as it was" } else { "new" };
        table.row([
            one.hour.clone(),
            text::clean(&one.app).into_owned(),
            one.blocks.to_string(),
            one.bytes.to_string(),
            what.to_owned(),
        ]);
    }
    table.write(out, super::table::terminal_width())?;
    Ok(out.flush()?)
}
