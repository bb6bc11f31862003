//! Blocks that took the place of others on the node's disk.
//!
//! Where the archive has all of the others as they were, it keeps them and the merged one is not copied. Else the merged
//! one is: its files first, then what tells of the others goes, then what tells of it comes, so that no reader counts
//! anything twice; between the two it misses them for a moment. What was brought together of such an hour goes too:
//! it may cover blocks that are no more.

use super::super::layout::{self, BlockName};
use super::super::remote::RemoteError;
use super::{CopyError, Copying};
use emberscope_store::{BlockFacts, MANIFEST};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

impl Copying {
    /// Reads which blocks took the place of which. Out: the names of the latter, which are here no more or not for long.
    pub(super) fn learn_merged(&mut self, dirs: &[PathBuf]) -> HashSet<String> {
        let name = |dir: &Path| dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let here: HashSet<String> = dirs.iter().map(|dir| name(dir)).collect();
        self.merged.retain(|block, _| here.contains(block));
        for dir in dirs {
            // What cannot be read is told where it is copied.
            if !self.merged.contains_key(&name(dir))
                && let Ok(facts) = BlockFacts::read(dir)
            {
                self.merged.insert(facts.name, facts.merged.into_keys().collect());
            }
        }
        self.merged.values().flatten().cloned().collect()
    }

    /// Whether a part is in a merged block that was copied, or need not be.
    pub(super) fn is_merged(&self, name: &str) -> bool {
        let mut copied = self.merged.iter().filter(|(block, _)| self.copied.contains_key(*block));
        copied.any(|(_, old)| old.iter().any(|old| old == name))
    }

    /// What tells of the blocks that one took the place of.
    pub(super) async fn old_of(&self, facts: &BlockFacts) -> Result<Vec<BlockName>, CopyError> {
        let hours: BTreeSet<&str> = facts.merged.keys().map(|name| layout::hour(name)).collect();
        let mut old = Vec::new();
        for hour in hours {
            let below = format!("{}/{}", layout::index_hour(hour), self.host);
            let objects = self.remote.list(&below, usize::MAX).await?;
            old.extend(objects.iter().filter_map(|object| BlockName::of(&object.name)));
        }
        old.retain(|known| facts.merged.contains_key(&known.block));
        Ok(old)
    }

    /// What tells of those blocks goes, and their pieces.
    pub(super) async fn hide_old(&mut self, facts: &BlockFacts, old: &[BlockName]) -> Result<(), CopyError> {
        if !old.is_empty() {
            self.clear_gathered(layout::hour(&facts.name)).await?;
        }
        // The index last: by it a round that follows one that was broken off knows that there is more to do.
        for BlockName { block, crc32, .. } in old {
            self.remote.delete(&layout::block_file(&self.host, block, MANIFEST)).await?;
            self.remote.delete(&layout::index(&self.host, block, *crc32)).await?;
        }
        for name in facts.merged.keys() {
            if self.sent.contains_key(name) {
                self.delete_below(&format!("{}/{name}", layout::open(&self.host))).await?;
                self.sent.remove(name);
            }
        }
        Ok(())
    }

    /// The files of the blocks that one took the place of go.
    pub(super) async fn clear_merged(&mut self, facts: &BlockFacts) -> Result<(), CopyError> {
        for name in facts.merged.keys() {
            self.delete_below(&format!("{}/{name}", layout::blocks(&self.host))).await?;
            self.found.remove(name);
        }
        Ok(())
    }

    async fn clear_gathered(&self, hour: &str) -> Result<(), CopyError> {
        for object in self.remote.list(&format!("{}/gathered", layout::ROOT), usize::MAX).await? {
            let Some((known, generation)) = layout::gathered_name(&object.name) else { continue };
            let app = object.name.rsplit('/').nth(1).unwrap_or_default();
            if known == hour {
                match self.remote.delete(&object.name).await {
                    // A node may be allowed no more than what is its own: readers see by the lists that this is old,
                    // and who brings together makes it anew.
                    Err(RemoteError::Denied { .. }) => continue,
                    done => done?,
                }
                self.delete_below(&layout::gathered_files(app, hour, &generation)).await?;
            }
        }
        Ok(())
    }

    async fn delete_below(&self, below: &str) -> Result<(), CopyError> {
        for object in self.remote.list(below, usize::MAX).await? {
            self.remote.delete(&object.name).await?;
        }
        Ok(())
    }
}

/// Whether the archive has all that a merged block took the place of, as it was then: coarser windows are no reason to
/// copy it, labels that became known since are.
pub(super) fn is_there(facts: &BlockFacts, old: &[BlockName]) -> bool {
    let as_written = facts.files.iter().any(|(file, ..)| file == "label_sets.parquet");
    !facts.merged.is_empty()
        && as_written
        && facts.merged.iter().all(|(name, crc32)| {
            old.iter()
                .any(|known| known.block == *name && (known.crc32 == *crc32 || facts.window_ns.is_some()))
        })
}
