//! Where the program's own messages go: standard error, as text or as one JSON object a line.

use emberscope_config::LogFormat;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Starts logging; a second call in the same process changes nothing.
pub fn start(filter: &str, format: LogFormat) {
    // The filter was read once before, when the configuration was.
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}
