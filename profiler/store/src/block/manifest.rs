//! `manifest.json`: what a block holds and how its files must look.
//!
//! In: a block's directory. Out: its span, its part's number, its files. Read at start for every block, so
//! it has all that choosing a block for a query takes. Limits: [`MAX_BYTES`].

use super::BlockError;
use emberscope_model::{TimeRange, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The version of the format that is written and read.
pub(crate) const FORMAT: u32 = 1;
/// The manifest's name in a block's directory.
pub(super) const NAME: &str = "manifest.json";
/// Bytes of a manifest that are read at most; a manifest has some 2 KB.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// An hour has 3600 windows of a second; an import may have days.
const MAX_WINDOWS: u64 = 1 << 24;

/// A file of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileFacts {
    pub bytes: u64,
    pub crc32: u32,
}

/// What a block was imported from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFacts {
    /// SHA-256 of the file as it was read, hexadecimal.
    pub digest: String,
    /// The name of the file, without its directory.
    pub file: String,
    /// When the file was imported, nanoseconds since the Unix epoch.
    pub at_ns: u64,
}

/// What a block says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    /// The program that wrote the block, with its version: `emberscope 0.1.0`.
    pub program: String,
    /// Number of the part that the block was made of; of a merged block that of the last part.
    pub part: u64,
    /// Start of the first window, nanoseconds since the Unix epoch.
    pub from_ns: u64,
    /// End of the last window, nanoseconds since the Unix epoch.
    pub until_ns: u64,
    pub windows: u64,
    /// Rows of the table `samples`.
    pub rows: u64,
    /// Samples of all kinds.
    pub samples: u64,
    /// Length of the windows, nanoseconds, where they were made coarser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// What the block was imported from; None: from a journal of this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportFacts>,
    /// Blocks that it took the place of: their names, with the CRC-32 of their manifests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub merged: BTreeMap<String, u32>,
    /// The tables: file name, with `.parquet`, and what the file must be.
    pub files: BTreeMap<String, FileFacts>,
}

/// Only what every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Manifest {
    /// Reads the manifest of a block's directory.
    ///
    /// # Errors
    /// [`BlockError::Damaged`]: the file cannot be read, has more than [`MAX_BYTES`], or makes no sense.
    /// [`BlockError::Version`]: the block is of another format than [`FORMAT`].
    pub fn read(dir: &Path) -> Result<Self, BlockError> {
        let path = dir.join(NAME);
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        let damaged = |says: String| BlockError::Damaged { path: path.clone(), says };
        read.map_err(|error| damaged(format!("cannot be read: {error}")))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(damaged(format!("has more than {MAX_BYTES} bytes")));
        }
        Self::parse(dir, &text)
    }

    /// Reads a manifest's text; `dir` is named in errors.
    ///
    /// # Errors
    /// As [`Self::read`], but for the file.
    pub fn parse(dir: &Path, text: &str) -> Result<Self, BlockError> {
        let damaged = |says: String| BlockError::Damaged { path: dir.join(NAME), says };
        let format: Format =
            serde_json::from_str(text).map_err(|e| damaged(format!("makes no sense: {e}")))?;
        if format.format != FORMAT {
            return Err(BlockError::Version { path: dir.to_owned(), found: format.format });
        }
        let known: Self = serde_json::from_str(text).map_err(|e| damaged(format!("makes no sense: {e}")))?;
        known.check().map_err(damaged)?;
        Ok(known)
    }

    /// Whether its numbers can be those of a block, and its names those of files in a directory.
    fn check(&self) -> Result<(), String> {
        if self.from_ns > self.until_ns
            || self.until_ns > i64::MAX.cast_unsigned()
            || self.windows > MAX_WINDOWS
        {
            return Err("makes no sense: its windows are none".to_owned());
        }
        let plain = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            !name.starts_with('.') && name.chars().all(known)
        };
        if let Some(odd) = self.files.keys().find(|name| !plain(name) || !name.ends_with(".parquet")) {
            return Err(format!("names a file {odd:?}"));
        }
        if let Some(odd) = self.merged.keys().find(|name| !plain(name) || name.is_empty()) {
            return Err(format!("names a block {odd:?}"));
        }
        match self.files.values().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes)) {
            Some(_) => Ok(()),
            None => Err("makes no sense: its files have no length".to_owned()),
        }
    }

    /// From the start of the block's first window to the end of the last one.
    pub fn range(&self) -> TimeRange {
        TimeRange { from: WallTime(self.from_ns), until: WallTime(self.until_ns) }
    }

    /// Bytes of all tables, the manifest not counted.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }
}
