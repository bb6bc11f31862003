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
/// Its name in a block.
pub(super) const NAME: &str = "manifest.json";
/// One has 2 KB.
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
    /// Its name.
    pub file: String,
    /// When it was imported, nanoseconds since 1970.
    pub at_ns: u64,
}

/// What a block says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    /// Who wrote it.
    pub program: String,
    /// The part that it was made of.
    pub part: u64,
    /// Start of the first window, nanoseconds since the Unix epoch.
    pub from_ns: u64,
    /// End of the last.
    pub until_ns: u64,
    pub windows: u64,
    /// Rows of `samples`.
    pub rows: u64,
    /// Samples of all kinds.
    pub samples: u64,
    /// Length of its windows, nanoseconds, where they were made coarser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// What it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportFacts>,
    /// Blocks that it took the place of: their names, with the CRC-32 of their manifests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub merged: BTreeMap<String, u32>,
    /// By name, with `.parquet`.
    pub files: BTreeMap<String, FileFacts>,
}

/// Only what every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Manifest {
    /// Of a block's directory.
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

    /// Of its text; `dir` is named in errors.
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

    /// From its first window to its last.
    pub fn range(&self) -> TimeRange {
        TimeRange { from: WallTime(self.from_ns), until: WallTime(self.until_ns) }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }
}
