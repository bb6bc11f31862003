//! Imports: another profiler's samples as blocks of their own, all of them or none; and what Spark said, of an event log.
//!
//! In: windows in order of time or facts of Spark, and what they were read from. Out: blocks beside those of a store whose daemon does
//! not run; who imports holds the data directory's lock. They are written in `imports/.DIGEST` and flushed; then that
//! is renamed to `imports/DIGEST`, which is the moment at which all of them are there; then each is moved to `blocks`.
//! A start removes the one and goes on with the other. The manifests keep the digest, so that a file that was
//! imported is known for as long as any of its blocks is kept.
//!
//! Limits: a part is sealed at [`PART_BYTES`], and holds windows that begin in one hour of wall-clock time, as a
//! daemon's do.

use super::block::{self, ImportFacts, Origin, sync_dir};
use super::disk::DiskStoreError;
use super::part::Part;
use super::spark::Room;
use emberscope_model::{LostCounts, SparkFact, TimeRange, WallTime, Window};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const IMPORTS: &str = "imports";
/// Memory of a part, as estimated: blocks of some ten MB.
const PART_BYTES: usize = 32 << 20;
/// Stretch of time of a part.
const HOUR: Duration = Duration::from_secs(3600);

/// Blocks in the making. Dropped without [`Importing::commit`] it leaves what the next start removes.
#[derive(Debug)]
pub struct Importing {
    store: PathBuf,
    aside: PathBuf,
    facts: ImportFacts,
    number: u64,
    part: Part,
    blocks: Vec<PathBuf>,
    bytes: u64,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskStoreError {
    let path = path.to_owned();
    move |source| DiskStoreError::Dir { what, path, source }
}

impl Importing {
    /// Begins an import, in a store's directory that nobody else has open; `number` is that of the store's next part.
    ///
    /// # Errors
    /// [`DiskStoreError::Dir`]: what an earlier import of the same file left cannot be removed, or the directory
    /// cannot be made.
    pub fn begin(store: &Path, number: u64, facts: ImportFacts) -> Result<Self, DiskStoreError> {
        let aside = store.join(IMPORTS).join(format!(".{}", facts.digest));
        match fs::remove_dir_all(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &aside)(error));
            }
            _ => {}
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&aside);
        made.map_err(failed("make", &aside))?;
        let (part, blocks) = (Part::default(), Vec::new());
        Ok(Self { store: store.to_owned(), aside, facts, number, part, blocks, bytes: 0 })
    }

    /// Takes the next window; a full part is written as a block first.
    ///
    /// # Errors
    /// [`DiskStoreError::Block`]: the windows before cannot be written as a block. They are kept, and this one is not
    /// taken: the same call can be made again.
    pub fn append(&mut self, window: &Window) -> Result<(), DiskStoreError> {
        let hour = |from: WallTime| from.floor(HOUR);
        let first = self.part.facts.windows.first();
        let other = first.is_some_and(|first| hour(first.range.from) != hour(window.range.from));
        if other || self.part.bytes() >= PART_BYTES {
            self.seal()?;
        }
        self.part.append(window);
        Ok(())
    }

    /// Keeps what Spark said of applications, in a block of its own with one window at `at` that has no samples and is as
    /// short as a window can be, so that it stands for no time. Out: how many facts are not kept, for there is no room.
    ///
    /// # Errors
    /// [`DiskStoreError::Block`]: this block, or the one before, cannot be written.
    pub fn learn(&mut self, at: WallTime, facts: &[SparkFact]) -> Result<u64, DiskStoreError> {
        self.seal()?;
        let range = TimeRange { from: at, until: at.plus(Duration::from_nanos(1)) };
        let (rows, ledger, pauses, processes) = Default::default();
        let lost = LostCounts::default();
        self.part.append(&Window { range, rows, ledger, pauses, processes, lost, partial: false });
        for fact in facts {
            self.part.spark.take(fact, Room::BLOCK);
        }
        let refused = self.part.spark.refused();
        self.seal()?;
        Ok(refused)
    }

    fn seal(&mut self) -> Result<(), DiskStoreError> {
        let origin = Origin { import: Some(self.facts.clone()), ..Origin::default() };
        let written = block::write(&self.part, self.number, &self.aside, true, origin)?;
        // Not before they are on the disk: what could not be written is written by the next call.
        self.part = Part::default();
        if let Some((path, manifest)) = written {
            self.number += 1;
            self.bytes += manifest.bytes();
            self.blocks.extend(path.file_name().map(PathBuf::from));
        }
        Ok(())
    }

    /// All windows are there: the store has them from now on, whatever happens. Out: how many blocks, and their bytes.
    ///
    /// # Errors
    /// [`DiskStoreError::Block`]: the last block cannot be written. [`DiskStoreError::Dir`]: a directory cannot be
    /// flushed or renamed. The store has no block of the import then, or, where only moving them failed, gets them at
    /// its next start.
    pub fn commit(mut self) -> Result<(usize, u64), DiskStoreError> {
        self.seal()?;
        let whole = self.store.join(IMPORTS).join(&self.facts.digest);
        let named = sync_dir(&self.aside, true)
            .and_then(|()| fs::rename(&self.aside, &whole))
            .and_then(|()| sync_dir(&self.store.join(IMPORTS), true));
        named.map_err(failed("finish", &whole))?;
        finish(&self.store)?;
        Ok((self.blocks.len(), self.bytes))
    }
}

/// Moves blocks of finished imports to their place, and removes those of imports that were broken off.
pub(super) fn finish(store: &Path) -> Result<(), DiskStoreError> {
    let imports = store.join(IMPORTS);
    let entries = |dir: &Path| -> io::Result<Vec<PathBuf>> {
        match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(all) => all.map(|entry| Ok(entry?.path())).collect(),
        }
    };
    for import in entries(&imports).map_err(failed("read", &imports))? {
        let name = import.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            fs::remove_dir_all(&import).map_err(failed("remove", &import))?;
            continue;
        }
        for from in entries(&import).map_err(failed("read", &import))? {
            let to = store.join("blocks").join(from.file_name().unwrap_or_default());
            fs::rename(&from, &to).map_err(failed("move", &from))?;
        }
        // Its blocks are in their place for good before the name that tells of them goes.
        let blocks = store.join("blocks");
        sync_dir(&blocks, true).map_err(failed("flush", &blocks))?;
        fs::remove_dir(&import).map_err(failed("remove", &import))?;
    }
    Ok(())
}
