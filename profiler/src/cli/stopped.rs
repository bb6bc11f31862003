//! The store of a daemon that does not run, under its lock.
//!
//! In: a data directory. Out: its store and the lock. Nothing goes by age or size while it is open so.

use super::{CliError, DataDirLock};
use emberscope_store::{Chain, DiskStore, DiskStoreConfig};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The store's directory in a data directory.
pub fn store_dir(dir: &Path) -> PathBuf {
    dir.join("store")
}

/// The store of a data directory that is there, with its lock.
///
/// # Errors
/// [`CliError::Nothing`]: there is no store. Else as for [`DataDirLock::take`] and [`opened`].
pub fn open(dir: &Path) -> Result<(DataDirLock, DiskStore), CliError> {
    if !store_dir(dir).is_dir() {
        return Err(CliError::Nothing(format!(
            "{} has no store: name the --data-dir of a daemon",
            dir.display()
        )));
    }
    let lock = DataDirLock::take(dir)?;
    Ok((lock, opened(dir)?))
}

/// The store of a data directory that this process has the lock of; it is made where it is missing.
///
/// # Errors
/// [`CliError::Store`]: the store cannot be made or opened, in words with their causes.
pub fn opened(dir: &Path) -> Result<DiskStore, CliError> {
    let config = DiskStoreConfig {
        retention_age: Duration::MAX,
        retention_bytes: u64::MAX,
        ..DiskStoreConfig::new(store_dir(dir))
    };
    DiskStore::open(config).map_err(|error| CliError::Store(Chain(&error).to_string()))
}
