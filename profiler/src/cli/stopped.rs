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

/// The same of a directory that this process has the lock of; the store is made where it is missing.
pub fn opened(dir: &Path) -> Result<DiskStore, CliError> {
    let config = DiskStoreConfig {
        retention_age: Duration::MAX,
        retention_bytes: u64::MAX,
        ..DiskStoreConfig::new(store_dir(dir))
    };
    DiskStore::open(config).map_err(|error| CliError::Store(Chain(&error).to_string()))
}

/// A data directory with the store that the first version wrote. Copied without a program: a child between fork and
/// exec holds the locks of the tests beside it.
#[cfg(test)]
pub fn fixture() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let to = to.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => copy(&entry.path(), &to)?,
                false => std::fs::copy(entry.path(), to).map(|_| ())?,
            }
        }
        Ok(())
    }
    let dir = tempfile::tempdir().unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/store-1");
    copy(Path::new(fixture), &store_dir(dir.path())).unwrap();
    dir
}
