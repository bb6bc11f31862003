//! Where an archive is, and how much of it is kept here.

use std::path::PathBuf;
use std::time::Duration;

/// Where from, and how much is kept here.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// The archive.
    pub url: String,
    /// A directory of its own.
    pub cache: PathBuf,
    /// Bytes of files in it.
    pub cache_bytes: u64,
    /// Memory for what was read of them, and for open parts, beside what a question needs while it runs.
    pub memory_bytes: usize,
    /// How often the archive's lists are read again.
    pub refresh: Duration,
}

impl ReaderConfig {
    /// The defaults for an archive and a directory.
    pub fn new(url: impl Into<String>, cache: impl Into<PathBuf>) -> Self {
        let (cache_bytes, memory_bytes, refresh) = (4 << 30, 128 << 20, Duration::from_secs(10));
        Self { url: url.into(), cache: cache.into(), cache_bytes, memory_bytes, refresh }
    }
}
