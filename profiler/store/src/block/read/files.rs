//! A block's files: brought, opened, and held against the manifest.

use super::super::manifest::FileFacts;
use super::super::table::{Room, TableReader};
use super::super::{
    BlockProblem, FRAMES, GROUPS, LABEL_SETS, LEDGER, MERGED, NODES, PAUSES, PROCESSES, SAMPLES, SPARK,
    STACKS, WINDOWS, table_of,
};
use super::file::Positioned;
use super::{Block, lock};
use crate::read::was_read;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a table that is read as a whole: a large one has some megabytes.
const MAX_TABLE: u64 = 64 << 20;
/// What a row of a table takes in memory while it is read and after, its texts not counted.
fn row_bytes(table: &str) -> u64 {
    match table {
        GROUPS => 100,
        LEDGER => 160,
        LABEL_SETS => 100,
        WINDOWS => 400,
        PROCESSES => 600,
        FRAMES => 250,
        STACKS => 60,
        NODES => 24,
        PAUSES => 120,
        SPARK => 300,
        _ => 40,
    }
}

impl Block {
    /// The file of a small table, which may have been written anew since: `label_sets-2.parquet`.
    pub(super) fn file_of(&self, table: &str) -> Result<(String, FileFacts), BlockProblem> {
        let manifest = lock(&self.manifest);
        let is = |name: &str| {
            let rest = name.strip_prefix(table).and_then(|rest| rest.strip_suffix(".parquet"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let found = manifest.files.iter().find(|(name, _)| is(name));
        let found = found.map(|(name, facts)| (name.clone(), *facts));
        drop(manifest);
        let found = found.ok_or_else(|| BlockProblem::says(table, "is not in the manifest".to_owned()))?;
        if let Some(fetch) = &self.fetch.0 {
            fetch.fetch(&found.0).map_err(|error| BlockProblem::io(&self.dir.join(&found.0), &error))?;
        }
        Ok(found)
    }

    /// Whether the block has a table: not all blocks have all of them.
    pub(super) fn has(&self, table: &str) -> bool {
        lock(&self.manifest).files.keys().any(|name| table_of(name) == table)
    }

    /// A small table, checked. Its rows take of `room`.
    pub(super) fn table(&self, table: &'static str, room: &Room) -> Result<TableReader<Bytes>, BlockProblem> {
        let (name, facts) = self.file_of(table)?;
        if facts.bytes > MAX_TABLE {
            return Err(BlockProblem::says(&name, format!("is larger than {MAX_TABLE} bytes")));
        }
        let path = self.dir.join(&name);
        let failed = |error: io::Error| BlockProblem::io(&path, &error);
        let mut bytes = Vec::with_capacity(facts.bytes as usize + 1);
        File::open(&path)
            .and_then(|file| file.take(facts.bytes + 1).read_to_end(&mut bytes))
            .map_err(failed)?;
        was_read(bytes.len());
        if bytes.len() as u64 != facts.bytes || crc32fast::hash(&bytes) != facts.crc32 {
            return Err(BlockProblem::says(&name, "is not as it was written".to_owned()));
        }
        TableReader::whole(Bytes::from(bytes), table, room, row_bytes(table))
    }

    /// A table of rows, checked when it is opened for the first time.
    pub(in super::super) fn rows(
        &self,
        table: &'static str,
    ) -> Result<TableReader<Positioned>, BlockProblem> {
        if !self.checked.load(Ordering::Relaxed) {
            for table in [SAMPLES, MERGED] {
                self.check(&self.file_of(table)?)?;
            }
            self.checked.store(true, Ordering::Relaxed);
        }
        let (name, facts) = self.file_of(table)?;
        let path = self.dir.join(name);
        let file = File::open(&path).map_err(|error| BlockProblem::io(&path, &error))?;
        TableReader::new(Positioned { file: Arc::new(file), length: facts.bytes }, table)
    }

    /// Reads all files of the block and compares them with its manifest.
    ///
    /// # Errors
    /// The first file that cannot be read, or has not the length and checksum that the manifest names.
    pub fn check_all(&self) -> Result<(), BlockProblem> {
        let files = lock(&self.manifest).files.clone();
        files.into_iter().try_for_each(|file| self.check(&file))
    }

    fn check(&self, (name, facts): &(String, FileFacts)) -> Result<(), BlockProblem> {
        let path = self.dir.join(name);
        let failed = |error: io::Error| BlockProblem::io(&path, &error);
        let mut file = File::open(&path).map_err(failed)?;
        let (mut buffer, mut sum, mut length) = (vec![0; 256 << 10], crc32fast::Hasher::new(), 0);
        loop {
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            sum.update(buffer.get(..read).unwrap_or_default());
        }
        match (length, sum.finalize()) == (facts.bytes, facts.crc32) {
            true => Ok(()),
            false => Err(BlockProblem::says(name, "is not as it was written".to_owned())),
        }
    }
}
