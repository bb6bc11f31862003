//! Brings an application's hour of all nodes together as one block, so that it is few reads.
//!
//! In: an archive, hours that are over. Out: for each application of an hour `v1/apps/APP/HOUR/COUNT-CRC/` and, when
//! its files are there, `v1/gathered/APP/HOUR.COUNT-CRC`, which has the manifest and names the blocks that it covers.
//! Sums are unchanged; windows are a minute long, and tasks are summed up to their stage: who asks for tasks reads the
//! nodes' blocks. Done again over the same blocks it does nothing; blocks that came or changed since make a new one,
//! and the old one goes. A bad block is named, left out, and not covered; so is a node that has far more than the others.
//! Limit: [`CompactConfig::memory_bytes`].

mod gather;

use super::catalog::{hour_of, start_of};
use super::index::Index;
use super::layout::{self, BlockName};
use super::reader::{Reader, ReaderConfig};
use super::remote::RemoteError;
use emberscope_model::{TimeRange, WallTime};
use emberscope_store::{BlockFacts, MANIFEST, MergeError, Merger, StoreError};
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// How long after an hour its blocks are surely there.
const SETTLED: Duration = Duration::from_secs(300);
/// Under this in the place of an application: an hour of which all were brought together. No application is called so.
const ALL: &str = "==";

/// What is brought together.
#[derive(Clone, Debug)]
pub struct CompactConfig {
    /// URL of the archive.
    pub url: String,
    /// A directory for what is read and written meanwhile.
    pub dir: PathBuf,
    /// Most bytes of nodes' files in it; what is made is not counted.
    pub dir_bytes: u64,
    /// Most bytes of memory for an hour's applications together.
    pub memory_bytes: usize,
    /// Only this application, by its id; None: all.
    pub app: Option<String>,
    /// Only hours that share an instant with this range.
    pub range: TimeRange,
}

/// One application's hour that is one block now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// The application's id; `all` where every application of the hour was there already.
    pub app: String,
    /// Hour of UTC, as names have it: `20261122T08`.
    pub hour: String,
    /// Blocks of nodes that it covers.
    pub blocks: usize,
    /// Bytes of its files; 0 where nothing was written.
    pub bytes: u64,
    /// Whether it was there already.
    pub unchanged: bool,
}

/// Why an hour was not brought together.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The archive refuses, or does not answer.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A node's block does not come, or its labels cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block cannot be added, or the one that is made cannot be written.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// What the hour's applications have is more than the limit.
    #[error(
        "the hour {hour} takes more than {limit} bytes of memory: bring one application together at a time (--app), or allow more (--memory)"
    )]
    Memory {
        /// The hour's name.
        hour: String,
        /// [`CompactConfig::memory_bytes`].
        limit: usize,
    },
    /// This machine's disk takes nothing.
    #[error("cannot write in {}: {says}", dir.display())]
    Disk {
        /// Directory of what is made.
        dir: PathBuf,
        /// The file system's error.
        says: String,
    },
}

/// `COUNT-CRC` of some blocks.
fn generation(blocks: &[BlockName]) -> String {
    let mut sum = crc32fast::Hasher::new();
    for BlockName { host, block, crc32 } in blocks {
        sum.update(format!("{host}/{block}.{crc32:08x}\n").as_bytes());
    }
    format!("{:06}-{:08x}", blocks.len(), sum.finalize())
}

/// Brings together what is to be. `done` is told of each application's hour.
///
/// # Errors
/// The first [`CompactError`] ends it, but for [`CompactError::Memory`]: the other hours come first. What `done` was told of
/// stays. A bad block, or a node that takes all the memory, is left out, and ends nothing.
pub fn compact(config: &CompactConfig, mut done: impl FnMut(Compacted)) -> Result<(), CompactError> {
    let reader = Reader::open(ReaderConfig {
        cache_bytes: config.dir_bytes,
        ..ReaderConfig::new(config.url.clone(), config.dir.clone())
    })?;
    let now = hour_of(WallTime::now().minus(SETTLED));
    let hours = reader.runtime.block_on(reader.catalog.hours_in(&config.range))?;
    let mut too_large = None;
    for hour in hours.iter().filter(|hour| **hour < now) {
        let blocks = reader.runtime.block_on(reader.catalog.blocks(hour))?;
        let generation = generation(&blocks);
        let of = config.app.as_deref().map_or(ALL.to_owned(), layout::part);
        let known = reader.runtime.block_on(reader.catalog.gathered(&of))?;
        let there = known.iter().any(|known| known.hour == *hour && known.generation == generation);
        if there {
            let app = config.app.clone().unwrap_or_else(|| "all".to_owned());
            done(Compacted { app, hour: hour.clone(), blocks: blocks.len(), bytes: 0, unchanged: true });
            continue;
        }
        let hour = Hour { reader: &reader, config, hour, blocks: &blocks, generation };
        let (mergers, bad) = match hour.gather() {
            Err(error @ CompactError::Memory { .. }) => {
                tracing::warn!(%error, "an hour is left as it is");
                too_large = too_large.or(Some(error));
                continue;
            }
            gathered => gathered?,
        };
        for (app, merger) in mergers {
            done(hour.put(&app, &merger, &bad)?);
        }
        if config.app.is_none() {
            let name = layout::gathered(ALL, hour.hour, &hour.generation);
            reader.runtime.block_on(reader.remote.put(&name, b"{}".to_vec()))?;
            hour.clear_old(ALL)?;
        }
    }
    too_large.map_or(Ok(()), Err)
}

/// An hour that is being brought together.
struct Hour<'a> {
    reader: &'a Reader,
    config: &'a CompactConfig,
    hour: &'a str,
    blocks: &'a [BlockName],
    generation: String,
}

impl Hour<'_> {
    /// Writes an application's hour and puts it into the archive.
    fn put(&self, app: &str, merger: &Merger, bad: &HashSet<BlockName>) -> Result<Compacted, CompactError> {
        let dir = self.config.dir.join("made");
        let disk = |error: std::io::Error| CompactError::Disk { dir: dir.clone(), says: error.to_string() };
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).map_err(disk)?;
        let number = start_of(self.hour).map_or(0, |start| start.0 / 1_000_000_000);
        let mut compacted = Compacted {
            app: app.to_owned(),
            hour: self.hour.to_owned(),
            blocks: self.blocks.len() - bad.len(),
            bytes: 0,
            unchanged: false,
        };
        let Some(path) = merger.write(number, &dir)? else { return Ok(compacted) };
        let facts = BlockFacts::read(&path).map_err(disk)?;
        compacted.bytes = facts.bytes();
        let name = layout::part(app);
        let below = layout::gathered_files(&name, self.hour, &self.generation);
        let good = self.blocks.iter().filter(|block| !bad.contains(*block));
        let covers = good.map(|block| (block.host.clone(), block.block.clone())).collect();
        let manifest = String::from_utf8_lossy(&facts.manifest).into_owned();
        let index = serde_json::to_vec(&Index::new(covers, manifest));
        let index = index.map_err(|error| disk(error.into()))?;
        self.reader.runtime.block_on(async {
            let remote = &self.reader.remote;
            for (file, ..) in &facts.files {
                remote.put_file(&format!("{below}/{file}"), &path.join(file)).await?;
            }
            remote.put(&format!("{below}/{MANIFEST}"), facts.manifest.clone()).await?;
            remote.put(&layout::gathered(&name, self.hour, &self.generation), index).await
        })?;
        self.clear_old(&name)?;
        let _ = std::fs::remove_dir_all(&dir);
        Ok(compacted)
    }

    /// Older ones of the same hour go: first what tells of them.
    fn clear_old(&self, app: &str) -> Result<(), CompactError> {
        self.reader.runtime.block_on(async {
            let remote = &self.reader.remote;
            for object in remote.list(&layout::gathered_of(app), usize::MAX).await? {
                let Some((hour, generation)) = layout::gathered_name(&object.name) else { continue };
                if hour == self.hour && generation != self.generation {
                    remote.delete(&object.name).await?;
                    for file in
                        remote.list(&layout::gathered_files(app, &hour, &generation), usize::MAX).await?
                    {
                        remote.delete(&file.name).await?;
                    }
                }
            }
            Ok(())
        })
    }
}
