//! Why a store on disk does not start.

use super::super::block::BlockError;
use super::super::journal::JournalError;
use std::io;
use std::path::PathBuf;

/// Why a store cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DiskStoreError {
    /// A directory cannot be made or read.
    #[error("cannot {what} {}", path.display())]
    Dir {
        /// What was tried.
        what: &'static str,
        /// Which directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A block.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A thread.
    #[error("cannot start the store's threads: {0}")]
    Thread(io::Error),
}
