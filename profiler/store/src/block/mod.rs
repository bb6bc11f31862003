//! Blocks: an hour of windows that no longer change, as Parquet files in a directory of their own.
//!
//! In: a part that is full. Out: a directory that holds all of it and can be copied as it is; and answers
//! from such directories, of which only the columns and rows are read that a query needs. docs/store.md
//! describes every table.
//!
//! A block is written aside and renamed when all of it is on the disk. `manifest.json` names its files with
//! their lengths and checksums, which are compared when a file is first read.

mod change;
mod fetch;
mod manifest;
mod order;
mod read;
mod roll;
mod rows;
mod table;
mod write;

pub use fetch::Fetch;
pub use manifest::ImportFacts;
pub(super) use manifest::{FORMAT, MAX_BYTES as MAX_MANIFEST, Manifest};
pub(super) use read::Block;
pub(super) use write::{Origin, name_of, sync_dir, write};

use std::io;
use std::path::{Path, PathBuf};

/// Files of a block, without `.parquet`.
const SAMPLES: &str = "samples";
const MERGED: &str = "merged";
const LANES: &str = "lanes";
const GROUPS: &str = "groups";
const FLAWS: &str = "flaws";
const WINDOWS: &str = "windows";
const LOST: &str = "lost";
const LABEL_SETS: &str = "label_sets";
const STACKS: &str = "stacks";
const NODES: &str = "nodes";
const FRAMES: &str = "frames";
const PROCESSES: &str = "processes";
const PROCESS_WINDOWS: &str = "process_windows";
const LEDGER: &str = "ledger";
const PAUSES: &str = "pauses";
const SPARK: &str = "spark";

/// The table of a block's file, which may have been written anew since: that of `label_sets-2.parquet` is `label_sets`.
pub(super) fn table_of(file: &str) -> &str {
    file.split(['.', '-']).next().unwrap_or_default()
}

/// What is wrong with a block's files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} {says}")]
pub(super) struct BlockProblem {
    file: String,
    says: String,
}

impl BlockProblem {
    fn says(file: &str, says: String) -> Self {
        Self { file: file.to_owned(), says }
    }
    fn table(file: &str, error: &parquet::errors::ParquetError) -> Self {
        Self::says(file, format!("cannot be read: {error}"))
    }
    fn io(path: &Path, error: &io::Error) -> Self {
        let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self::says(&file, format!("cannot be read: {error}"))
    }
}

/// Why a block cannot be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The disk fails.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The operation, as a verb: `write`.
        what: &'static str,
        /// The file or directory of the operation.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The tables could not be made.
    #[error("cannot write {}: {says}", path.display())]
    Table {
        /// The file that was to be written.
        path: PathBuf,
        /// Parquet's reason.
        says: String,
    },
    /// The block is of a format that this version does not know.
    #[error(
        "{} is a block of format {found}, and this program knows format {FORMAT}: start the version that \
         wrote it, or move the directory away",
        path.display()
    )]
    Version {
        /// Directory of the block.
        path: PathBuf,
        /// The format that its manifest names.
        found: u32,
    },
    /// A file of the block cannot be read, or is not what was written.
    #[error("{}: {says}", path.display())]
    Damaged {
        /// Directory of the block, or its file.
        path: PathBuf,
        /// What is wrong, as it follows the path in a sentence.
        says: String,
    },
}
