//! Brings what many blocks have of some label sets together as one block, with longer windows.
//!
//! In: blocks of any nodes. Out: a block whose sums are theirs: frames, stacks and label sets once, tasks summed up to
//! their stage, windows of a node to windows of the grain. Limits: none of its own; [`Merger::bytes`] tells.

use super::block::{self, BlockError, Origin};
use super::error::StoreError;
use super::part::{Keep, Part};
use super::shelf::Volume;
use emberscope_model::{LabelKey, Selection};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Why blocks do not become one.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The new block cannot be written.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// One of the old blocks cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A block in the making.
#[derive(Debug)]
pub struct Merger {
    part: Part,
    keep: Keep,
}

impl Merger {
    /// A block without windows yet. Windows become as long as the grain.
    pub fn new(grain: Duration) -> Self {
        let keep = Keep { grain: Some(grain), tasks: false, rows_at_once: u64::MAX };
        Self { part: Part::default(), keep }
    }

    /// Adds what a block has of a selection.
    ///
    /// # Errors
    /// [`MergeError::Store`]: the block cannot be read. No window of it is added then.
    pub fn add(&mut self, volume: &Volume, selection: &Selection) -> Result<(), MergeError> {
        Ok(volume.view(|view| self.part.gather(view, selection, self.keep))?)
    }

    /// Bytes of memory that the block takes in the making, estimated.
    pub fn bytes(&self) -> usize {
        self.part.bytes()
    }

    /// Writes the block into a directory, under a name of its own; `number` is its part's. None: nothing is in it.
    ///
    /// # Errors
    /// [`MergeError::Block`]: the block cannot be written. Nothing of it stays in the directory then.
    pub fn write(&self, number: u64, dir: &Path) -> Result<Option<PathBuf>, MergeError> {
        Ok(block::write(&self.part, number, dir, false, Origin::default())?.map(|(path, _)| path))
    }
}

impl Volume {
    /// Values that a label has in the block or journal, but for what was forgotten.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]: the block's tables cannot be brought or read.
    pub fn values(&self, key: LabelKey) -> Result<BTreeSet<Arc<str>>, StoreError> {
        self.view(|view| {
            let labels = &view.facts().labels;
            let sets =
                (0..labels.sets.len() as u32).zip(&labels.forgotten).filter(|(_, forgotten)| !**forgotten);
            Ok(sets.filter_map(|(set, _)| labels.shared(labels.value(set, key)).cloned()).collect())
        })
    }

    /// Applications that Spark said something of while the windows were made.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn apps_of_facts(&self) -> Result<BTreeSet<Arc<str>>, StoreError> {
        self.view(|view| Ok(view.spark()?.iter().map(|fact| fact.app.clone()).collect()))
    }
}
