//! Brings an application's hour of all nodes together as one block, so that it is few reads.
//!
//! In: an archive, hours that are over. Out: for each application of an hour `v1/apps/APP/HOUR/COUNT-CRC/` and, when
//! its files are there, `v1/gathered/APP/HOUR.COUNT-CRC`, which has the manifest and names the blocks that it covers.
//! Sums are unchanged; windows are [`GRAIN`] long, and tasks are summed up to their stage: who asks for tasks reads the
//! nodes' blocks. Done again over the same blocks it does nothing; blocks that came or changed since make a new one,
//! and the old one goes. A bad block is named, left out, and not covered. Limit: [`CompactConfig::memory_bytes`].

use super::cache::{self, Cached};
use super::catalog::{hour_of, start_of};
use super::index::{GRAIN, Index};
use super::layout::{self, BlockName};
use super::reader::{Reader, ReaderConfig, Wanted};
use super::remote::RemoteError;
use emberscope_model::{LabelKey, MatchOp, Matcher, Selection, TimeRange, WallTime};
use emberscope_store::{BlockFacts, MANIFEST, MergeError, Merger, Needs, StoreError};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// How long after an hour its blocks are surely there.
const SETTLED: Duration = Duration::from_secs(300);
/// Blocks that are brought at once.
const AT_ONCE: usize = 16;
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
/// The first [`CompactError`] ends it; what `done` was told of stays. A bad block is left out, and ends nothing.
pub fn compact(config: &CompactConfig, mut done: impl FnMut(Compacted)) -> Result<(), CompactError> {
    let reader = Reader::open(ReaderConfig {
        cache_bytes: config.dir_bytes,
        ..ReaderConfig::new(config.url.clone(), config.dir.clone())
    })?;
    let now = hour_of(WallTime::now().minus(SETTLED));
    let hours = reader.runtime.block_on(reader.catalog.hours_in(&config.range))?;
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
        let (mergers, bad) = hour.gather()?;
        for (app, merger) in mergers {
            done(hour.put(&app, &merger, &bad)?);
        }
        if config.app.is_none() {
            let name = layout::gathered(ALL, hour.hour, &hour.generation);
            reader.runtime.block_on(reader.remote.put(&name, b"{}".to_vec()))?;
            hour.clear_old(ALL)?;
        }
    }
    Ok(())
}

/// An hour that is being brought together.
struct Hour<'a> {
    reader: &'a Reader,
    config: &'a CompactConfig,
    hour: &'a str,
    blocks: &'a [BlockName],
    generation: String,
}

/// Why the nodes' blocks of an hour were not brought together.
enum GatherError {
    /// One of them is bad: it is left out, and the others are brought together without it.
    Bad(BlockName, String),
    Other(CompactError),
}

impl<E: Into<CompactError>> From<E> for GatherError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Hour<'_> {
    /// By application what its nodes have, and the blocks that are bad.
    fn gather(&self) -> Result<(BTreeMap<String, Merger>, HashSet<BlockName>), CompactError> {
        let mut bad = HashSet::new();
        // Each time round there is one block less.
        loop {
            match self.gather_without(&bad) {
                Ok(mergers) => return Ok((mergers, bad)),
                Err(GatherError::Other(error)) => return Err(error),
                Err(GatherError::Bad(name, says)) => {
                    self.reader.refuse(&Wanted::Block(name.clone()).key(), &says);
                    bad.insert(name);
                }
            }
        }
    }

    fn gather_without(&self, bad: &HashSet<BlockName>) -> Result<BTreeMap<String, Merger>, GatherError> {
        let mut mergers: BTreeMap<String, Merger> = BTreeMap::new();
        let good: Vec<&BlockName> = self.blocks.iter().filter(|name| !bad.contains(*name)).collect();
        for some in good.chunks(AT_ONCE) {
            let cached = self.reader.runtime.block_on(async {
                let mut cached = Vec::new();
                for name in some {
                    match self.reader.block(&Wanted::Block((*name).clone())).await? {
                        Some(block) => cached.push(block),
                        None => return Err(GatherError::Bad((*name).clone(), "it was set aside".to_owned())),
                    }
                }
                match cache::bring(&cached, Needs::All).await?.into_iter().next() {
                    None => Ok(cached),
                    Some((bringer, says)) => {
                        let is = |name: &&&BlockName| Wanted::Block((**name).clone()).key() == bringer.key();
                        let name = some.iter().find(is).map(|name| (*name).clone());
                        let unreadable =
                            StoreError::Unreadable { path: bringer.key().into(), says: says.clone() };
                        Err(name.map_or(unreadable.into(), |name| GatherError::Bad(name, says)))
                    }
                }
            })?;
            for (name, block) in some.iter().zip(cached) {
                // After a panic nothing that was added up is used: all begins anew without the block.
                let added = AssertUnwindSafe(|| self.add(&block, &mut mergers));
                let unreadable = match catch_unwind(added) {
                    Err(_) => Some("makes the reader panic".to_owned()),
                    Ok(Err(
                        CompactError::Store(StoreError::Unreadable { says, .. })
                        | CompactError::Merge(MergeError::Store(StoreError::Unreadable { says, .. })),
                    )) => Some(says),
                    Ok(other) => {
                        other?;
                        None
                    }
                };
                if let Some(says) = unreadable {
                    return Err(match block.bringer.take_away() {
                        Some(says) => StoreError::Away { says }.into(),
                        None => GatherError::Bad((*name).clone(), says),
                    });
                }
                if mergers.values().map(Merger::bytes).sum::<usize>() > self.config.memory_bytes {
                    let limit = self.config.memory_bytes;
                    return Err(CompactError::Memory { hour: self.hour.to_owned(), limit }.into());
                }
            }
        }
        Ok(mergers)
    }

    /// Adds what a block has to its applications.
    fn add(&self, block: &Cached, mergers: &mut BTreeMap<String, Merger>) -> Result<(), CompactError> {
        let mut values = block.volume.values(LabelKey::App)?;
        values.extend(block.volume.apps_of_facts()?);
        let mut apps: Vec<String> = values.iter().map(|app| app.to_string()).collect();
        apps.retain(|app| self.config.app.as_ref().is_none_or(|only| only == app));
        for app in apps {
            let op = MatchOp::In(vec![app.clone()]);
            let selection = Selection { matchers: vec![Matcher { key: LabelKey::App, op }] };
            mergers.entry(app).or_insert_with(|| Merger::new(GRAIN)).add(&block.volume, &selection)?;
        }
        block.volume.let_go();
        Ok(())
    }

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
