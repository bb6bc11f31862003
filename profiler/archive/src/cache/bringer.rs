//! Brings the files of blocks: each comes under another name, is held against the manifest, and renamed into place.

use super::{Cache, Cached, lock};
use crate::remote::{DownloadError, RemoteError};
use emberscope_store::{BlockFacts, Fetch, Needs, StoreError};
use futures_util::{StreamExt, stream};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

/// Files that are fetched at once: an object store answers many as soon as one.
const AT_ONCE: usize = 32;

/// Brings the files of one block.
#[derive(Debug)]
pub(crate) struct Bringer {
    pub(super) cache: Weak<Cache>,
    pub(super) key: String,
    pub(super) dir: PathBuf,
    /// Where the files are in the archive.
    pub(super) below: String,
    pub(super) facts: BlockFacts,
    /// The archive did not answer: nothing is wrong with the block.
    pub(super) away: Mutex<Option<String>>,
}

/// Why a file was not brought.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BringError {
    /// The archive does not answer: nothing is known about the file.
    #[error("{0}")]
    Away(RemoteError),
    /// The file is not there, or not as the manifest says.
    #[error("{0}")]
    Bad(String),
    /// This machine's disk: the file cannot be made, written or renamed.
    #[error("the cache cannot be written: {0}")]
    Disk(io::Error),
}

impl Bringer {
    /// Where the block is in the cache.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The archive's failure that the last reader met, if that is what it was.
    pub fn take_away(&self) -> Option<String> {
        lock(&self.away).take()
    }

    /// Files that a question surely reads and that are not here yet.
    fn missing(&self, needs: Needs) -> Vec<String> {
        let wanted = self.facts.files.iter().filter(|(file, ..)| needs.file(file));
        wanted.filter(|(file, ..)| !self.dir.join(file).exists()).map(|(file, ..)| file.clone()).collect()
    }

    async fn bring(&self, file: &str) -> Result<(), BringError> {
        let path = self.dir.join(file);
        if path.exists() {
            return Ok(());
        }
        let Some(cache) = self.cache.upgrade() else { return Ok(()) };
        let known = self.facts.files.iter().find(|(known, ..)| known == file);
        let Some((_, bytes, crc32)) = known else {
            return Err(BringError::Bad(format!("{file} is not named")));
        };
        let number = cache.temporary.fetch_add(1, Ordering::Relaxed);
        let aside = self.dir.join(format!(".{number}-{file}"));
        let name = format!("{}/{file}", self.below);
        let taken = cache.remote.download(&name, &aside, *bytes).await;
        let result = match taken {
            Ok(Some(sum)) if sum == (*bytes, *crc32) => match fs::rename(&aside, &path) {
                Ok(()) => {
                    cache.took(&self.key, *bytes);
                    return Ok(());
                }
                Err(error) => Err(BringError::Disk(error)),
            },
            Ok(Some(_)) => Err(BringError::Bad(format!("{name} is not as it was written"))),
            Ok(None) => Err(BringError::Bad(format!("{name} is not there"))),
            Err(DownloadError::Remote(error)) => match cache.remote.is_of_object(&error).await {
                true => Err(BringError::Bad(error.to_string())),
                false => Err(BringError::Away(error)),
            },
            Err(DownloadError::Disk(error)) => Err(BringError::Disk(error)),
        };
        let _ = fs::remove_file(&aside);
        result
    }
}

impl Fetch for Bringer {
    fn fetch(&self, file: &str) -> io::Result<()> {
        if self.dir.join(file).exists() {
            return Ok(());
        }
        let Some(cache) = self.cache.upgrade() else { return Err(io::ErrorKind::NotFound.into()) };
        // Only threads that may block read blocks.
        cache.handle.block_on(self.bring(file)).map_err(|error| {
            if !matches!(error, BringError::Bad(_)) {
                *lock(&self.away) = Some(error.to_string());
            }
            io::Error::other(error.to_string())
        })
    }
}

/// Brings what a question surely reads of some blocks, many files at once. Out: the blocks that are bad, each with
/// what is wrong.
///
/// # Errors
/// [`StoreError::Away`]: the archive does not answer, or this machine's disk takes nothing. Files that came before
/// stay in the cache.
pub(crate) async fn bring(
    blocks: &[Cached],
    needs: Needs,
) -> Result<Vec<(Arc<Bringer>, String)>, StoreError> {
    let files = blocks.iter().flat_map(|block| {
        let bringer = block.bringer.clone();
        bringer.missing(needs).into_iter().map(move |file| (bringer.clone(), file))
    });
    let files: Vec<(Arc<Bringer>, String)> = files.collect();
    let mut brought = stream::iter(files.into_iter().map(|(bringer, file)| async move {
        let done = bringer.bring(&file).await;
        (bringer, done)
    }))
    .buffer_unordered(AT_ONCE);
    let mut bad = Vec::new();
    while let Some((bringer, done)) = brought.next().await {
        match done {
            Ok(()) => {}
            Err(BringError::Bad(says)) => bad.push((bringer, says)),
            Err(error) => return Err(StoreError::Away { says: error.to_string() }),
        }
    }
    Ok(bad)
}
