//! For tests: all there is, copied once, on the thread that asks.

use super::*;

/// Copies to the archive that the configuration names.
///
/// # Errors
/// The URL cannot be one of an archive, or as for [`once_to`].
pub async fn once(config: ArchiverConfig) -> Result<ArchiveUsage, String> {
    let remote = Remote::open(&config.url, true).map_err(|error| error.to_string())?;
    once_to(config, remote).await
}

/// Copies to an archive that is open.
///
/// # Errors
/// The first failure of the round, in words. What was put until then stays in the archive.
pub async fn once_to(config: ArchiverConfig, remote: Remote) -> Result<ArchiveUsage, String> {
    let counts = Arc::new(Mutex::new(Counts::new()));
    let url = config.url.clone();
    let mut copying = Copying::new(config, remote, counts.clone());
    copying.round().await.map_err(|error| error.to_string())?;
    Ok(lock(&counts).usage(&url))
}
