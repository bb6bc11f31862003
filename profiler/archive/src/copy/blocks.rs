//! Finished blocks: file by file, then the index, then the manifest.
//!
//! A block is there for readers of the index from the moment at which all its files are, and for those who look for
//! `manifest.json` a moment later. One that was changed (labels that became known late) is put again: the file that
//! changed has another name, the index too, and the old ones go last. One whose windows were made coarser is put only if it
//! never was: the archive keeps the finer one. The newest block goes first.

use super::super::layout::{self, BlockName};
use super::merged::is_there;
use super::{Copied, CopyError, Copying, EVERY, lock};
use emberscope_store::{BlockFacts, MANIFEST, blocks_of};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

impl Copying {
    pub(super) async fn copy_blocks(&mut self) -> Result<(), CopyError> {
        let mut dirs = blocks_of(&self.config.store)?;
        let old = self.learn_merged(&dirs);
        dirs.retain(|dir| {
            dir.file_name().and_then(|name| name.to_str()).is_none_or(|name| !old.contains(name))
        });
        let names: Vec<String> =
            dirs.iter().filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned())).collect();
        self.copied.retain(|name, _| names.contains(name));
        let gone =
            self.waiting.iter().filter(|name| !names.contains(name) && !old.contains(*name)).count() as u64;
        dirs.retain(|dir| !self.is_copied(dir));
        self.waiting = dirs.iter().filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned())).collect();
        self.count_waiting(gone);
        for dir in dirs.iter().rev() {
            if self.last_pieces.elapsed() > EVERY {
                self.send_pieces().await?;
            }
            match self.copy_block(dir).await {
                // It went by its age, or its labels were changed: the next round looks again.
                Err(CopyError::Disk(error)) if error.kind() == ErrorKind::NotFound => {}
                // The daemon sets a damaged block aside by itself.
                Err(CopyError::Disk(error)) if error.kind() == ErrorKind::InvalidData => {
                    tracing::warn!(%error, block = %dir.display(), "a block is not copied");
                }
                other => other?,
            }
            let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            self.waiting.retain(|waits| waits != name);
            self.count_waiting(0);
        }
        self.found.clear();
        Ok(())
    }

    fn count_waiting(&self, gone: u64) {
        let mut counts = lock(&self.counts);
        counts.missed += gone;
        counts.waiting = self.waiting.len() as u64;
        counts.oldest = self.waiting.iter().min().cloned();
    }

    /// By the time at which its manifest was written: a look at each of some hundred blocks.
    fn is_copied(&self, dir: &Path) -> bool {
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let changed = std::fs::metadata(dir.join(MANIFEST)).and_then(|file| file.modified()).ok();
        self.copied.get(name).is_some_and(|copied| copied.changed == changed)
    }

    async fn copy_block(&mut self, dir: &Path) -> Result<(), CopyError> {
        let changed = std::fs::metadata(dir.join(MANIFEST)).and_then(|file| file.modified()).ok();
        let facts = BlockFacts::read(dir)?;
        let crc32 = facts.crc32();
        let known = self.copied.get(&facts.name).copied();
        if known.is_none_or(|known| known.crc32 != crc32) {
            let there = match known {
                Some(_) => self.objects_of(&facts.name).await?,
                None => self.found.remove(&facts.name).unwrap_or_default(),
            };
            let whole = there.contains_key(MANIFEST);
            let old = if whole { Vec::new() } else { self.old_of(&facts).await? };
            if is_there(&facts, &old) {
                self.copied.insert(facts.name, Copied { crc32, changed });
                return Ok(());
            }
            let finer = facts.window_ns.is_some() && there.contains_key(MANIFEST);
            if !finer && !is_whole(&facts, &there) {
                self.put_files(dir, &facts, &there).await?;
                self.hide_old(&facts, &old).await?;
                self.put_manifest(&facts).await?;
                // Where files are renamed into place, one that was broken off has a name of its own.
                let torn = there.keys().any(|file| !names(&facts, file));
                if known.is_some() || there.contains_key(MANIFEST) || torn {
                    self.clear_old(&facts).await?;
                }
            }
            // Also those that stayed when this was broken off.
            if !old.is_empty()
                || known.is_none() && facts.merged.keys().any(|name| self.found.contains_key(name))
            {
                self.clear_merged(&facts).await?;
            }
        }
        self.copied.insert(facts.name, Copied { crc32, changed });
        Ok(())
    }

    /// Files of a block in the archive, with their bytes.
    async fn objects_of(&self, block: &str) -> Result<HashMap<String, u64>, CopyError> {
        let below = format!("{}/{block}", layout::blocks(&self.host));
        let objects = self.remote.list(&below, usize::MAX).await?;
        let file = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(objects.into_iter().map(|object| (file(&object.name), object.bytes)).collect())
    }

    async fn put_files(
        &self,
        dir: &Path,
        facts: &BlockFacts,
        there: &HashMap<String, u64>,
    ) -> Result<(), CopyError> {
        for (file, bytes, _) in &facts.files {
            // A name stands for one content, and an object is whole or not at all.
            if there.get(file) == Some(bytes) {
                continue;
            }
            let path = dir.join(file);
            if std::fs::metadata(&path)?.len() != *bytes {
                let says = format!("{file} has not the length that the manifest says");
                return Err(std::io::Error::new(ErrorKind::InvalidData, says).into());
            }
            let sent =
                self.remote.put_file(&layout::block_file(&self.host, &facts.name, file), &path).await?;
            lock(&self.counts).bytes += sent;
        }
        Ok(())
    }

    async fn put_manifest(&self, facts: &BlockFacts) -> Result<(), CopyError> {
        let index = layout::index(&self.host, &facts.name, facts.crc32());
        self.remote.put(&index, facts.manifest.clone()).await?;
        let manifest = layout::block_file(&self.host, &facts.name, MANIFEST);
        self.remote.put(&manifest, facts.manifest.clone()).await?;
        lock(&self.counts).blocks += 1;
        Ok(())
    }

    /// What an older manifest of the block named.
    async fn clear_old(&self, facts: &BlockFacts) -> Result<(), CopyError> {
        let below = format!("{}/{}", layout::index_hour(layout::hour(&facts.name)), self.host);
        for object in self.remote.list(&below, usize::MAX).await? {
            let old = BlockName::of(&object.name)
                .is_some_and(|known| known.block == facts.name && known.crc32 != facts.crc32());
            if old {
                self.remote.delete(&object.name).await?;
            }
        }
        for file in self.objects_of(&facts.name).await?.keys() {
            if !names(facts, file) {
                self.remote.delete(&layout::block_file(&self.host, &facts.name, file)).await?;
            }
        }
        Ok(())
    }
}

/// Whether a file is one of the block's.
fn names(facts: &BlockFacts, file: &str) -> bool {
    file == MANIFEST || facts.files.iter().any(|(known, ..)| known == file)
}

/// Whether the archive has all of it, the manifest too: put last, so the index is there.
fn is_whole(facts: &BlockFacts, there: &HashMap<String, u64>) -> bool {
    there.get(MANIFEST) == Some(&(facts.manifest.len() as u64))
        && facts.files.iter().all(|(file, bytes, _)| there.get(file) == Some(bytes))
}
