//! Why a store on disk does not start, or an import does not get there. A journal or block that cannot be read is no
//! reason: it is set aside.

use super::super::block::BlockError;
use std::io;
use std::path::PathBuf;

/// Why a store cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DiskStoreError {
    /// A directory cannot be made or read.
    #[error("cannot {what} {}", path.display())]
    Dir {
        /// The operation, as a verb: `make`.
        what: &'static str,
        /// The directory, or the file in it.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A block cannot be written.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A thread cannot be started.
    #[error("cannot start the store's threads: {0}")]
    Thread(io::Error),
}
