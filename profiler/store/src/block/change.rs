//! Labels that became known after a block was written.
//!
//! In: a change of labels. Out: the block with another `label_sets` table: written beside the old one, then
//! the manifest that names it, which is the moment at which it holds. Rows do not change.

use super::super::facts::Labels;
use super::read::{Block, lock};
use super::write::{Files, label_set_columns, write_manifest};
use super::*;
use std::collections::BTreeMap;

/// What tells tables that are written anew from those that are there.
pub(super) fn next_suffix(manifest: &Manifest) -> String {
    let number = |name: &String| name.split_once('-')?.1.strip_suffix(".parquet")?.parse::<u64>().ok();
    let last = manifest.files.keys().filter_map(number).max();
    format!("-{}", last.unwrap_or(1) + 1)
}

impl Block {
    /// Changes the labels of the block's sets. False: `change` found nothing to do.
    ///
    /// # Errors
    /// [`BlockError::Damaged`]: the block's tables cannot be read. [`BlockError::Table`], [`BlockError::Io`]: the new
    /// table or the manifest cannot be written. The old manifest holds then, and the labels are as before.
    pub fn change(&self, sync: bool, change: impl FnOnce(&mut Labels) -> bool) -> Result<bool, BlockError> {
        let damaged = |says: String| BlockError::Damaged { path: self.dir().to_owned(), says };
        let index = self.index().map_err(|problem| damaged(problem.to_string()))?;
        let mut labels = index.facts.labels.clone();
        if !change(&mut labels) {
            return Ok(false);
        }
        let sets: Vec<u32> = (0..labels.sets.len() as u32).collect();
        let mut manifest = lock(self.manifest());
        let old =
            manifest.files.keys().find(|name| name.starts_with(LABEL_SETS)).cloned().unwrap_or_default();
        let suffix = next_suffix(&manifest);
        let mut files = Files { dir: self.dir(), suffix, sync, files: BTreeMap::new() };
        files.table(LABEL_SETS, &label_set_columns(&labels, &sets))?;
        let mut next = manifest.clone();
        next.files.remove(&old);
        next.files.append(&mut files.files);
        let written = write_manifest(self.dir(), &next, sync);
        written.map_err(|source| BlockError::Io { what: "change", path: self.dir().to_owned(), source })?;
        *manifest = next;
        drop(manifest);
        self.let_go();
        // No manifest names it any more.
        let _ = std::fs::remove_file(self.dir().join(old));
        Ok(true)
    }
}
