//! Where an archive is, and how much of it is kept here.

use std::path::PathBuf;
use std::time::Duration;

/// Where from, and how much is kept here.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// URL of the archive.
    pub url: String,
    /// A directory that no other program uses; what is below `blocks` in it is removed at the start.
    pub cache: PathBuf,
    /// Most bytes of files in that directory.
    pub cache_bytes: u64,
    /// Most memory for what was read of those files, and for open parts, beside what a question needs while it runs.
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
