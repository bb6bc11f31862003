//! Blocks and open parts that a question reads: opened by their manifests, with the files that it surely needs.

use super::super::cache::{self, BringError, Cached};
use super::super::index::IndexError;
use super::super::layout::{self, BlockName};
use super::find::Wanted;
use super::{Reader, away, usage};
use emberscope_store::{BlockFacts, StoreError, Touch, Volume};
use futures_util::{StreamExt, stream};
use std::sync::Arc;

/// Manifests that are read at once.
const AT_ONCE: usize = 32;
/// A manifest has 2 KB; one that names what it took the place of has some more.
const MAX_MANIFEST: u64 = 1 << 20;

/// What a question holds while it reads.
#[derive(Clone, Debug)]
pub(super) enum Volumes {
    Block(Cached),
    Open(String, Arc<Volume>),
}

impl Volumes {
    pub fn volume(&self) -> &Volume {
        match self {
            Self::Block(cached) => &cached.volume,
            Self::Open(_, volume) => volume,
        }
    }
    fn block(&self) -> Option<&Cached> {
        match self {
            Self::Block(cached) => Some(cached),
            Self::Open(..) => None,
        }
    }
}

impl Reader {
    /// Opens a block: from the cache, or by its manifest. None: it went meanwhile, or is bad and was set aside.
    ///
    /// # Errors
    /// [`StoreError::Away`]: the archive does not answer, or the cache's disk. [`StoreError::Unreadable`]: what was
    /// listed is not there any more, or what was brought together is bad; asked again, the question does without it.
    pub(in super::super) async fn block(&self, wanted: &Wanted) -> Result<Option<Cached>, StoreError> {
        let key = wanted.key();
        if let Some(cached) = self.cache.known(&key) {
            return Ok(Some(cached));
        }
        let (manifest, name, below) = match wanted {
            Wanted::Block(BlockName { host, block, crc32 }) => {
                let index = layout::index(host, block, *crc32);
                let read = self.remote.get(&index, MAX_MANIFEST).await;
                if let Err(error) = &read
                    && self.remote.is_of_object(error).await
                {
                    usage::lock(&self.aside).add(&key, None, &format!("its manifest: {error}"));
                    return Ok(None);
                }
                let below = format!("{}/{block}", layout::blocks(host));
                (read.map_err(away)?.map(|bytes| bytes.to_vec()), block.clone(), below)
            }
            Wanted::Gathered { app, hour } => {
                let index = layout::gathered(app, &hour.hour, &hour.generation);
                let manifest = match self.index(&index).await {
                    Ok(index) => index.map(|index| index.manifest.clone().into_bytes()),
                    Err(IndexError::Remote(error)) => return Err(away(error)),
                    Err(IndexError::Bad(_)) => None,
                };
                let below = layout::gathered_files(app, &hour.hour, &hour.generation);
                (manifest, format!("{}-{}", hour.hour, hour.generation), below)
            }
            Wanted::Open { .. } => return Ok(None),
        };
        let Some(manifest) = manifest else {
            // The list is old: what it named was put anew under another name. The question begins again.
            self.catalog.stale().await;
            usage::lock(&self.aside).add(&key, None, "is listed and not there");
            return Err(StoreError::Unreadable {
                path: key.into(),
                says: "is not there any more".to_owned(),
            });
        };
        let bad = |says: String| {
            usage::lock(&self.aside).add(&key, None, &says);
            match wanted {
                // Asked again: the blocks that it covers may be there.
                Wanted::Gathered { .. } => Err(StoreError::Unreadable { path: key.as_str().into(), says }),
                _ => Ok(None),
            }
        };
        match BlockFacts::of(&name, manifest) {
            Err(error) => bad(error.to_string()),
            Ok(facts) if matches!(wanted, Wanted::Block(name) if name.crc32 != facts.crc32()) => {
                bad("its manifest is not as it was written".to_owned())
            }
            Ok(facts) => match self.cache.add(&key, below, facts) {
                Ok(cached) => Ok(Some(cached)),
                Err(BringError::Bad(says)) => bad(says),
                Err(error) => Err(StoreError::Away { says: error.to_string() }),
            },
        }
    }

    /// The blocks and open parts of some names, with the files that are surely read.
    ///
    /// # Errors
    /// As for [`Self::block`]; a file that is bad sets its block aside and is [`StoreError::Unreadable`].
    pub(super) async fn bring(&self, some: &[Wanted], touch: &Touch<'_>) -> Result<Vec<Volumes>, StoreError> {
        let opened = stream::iter(some.iter().map(|wanted| async move {
            match wanted {
                Wanted::Open { host, block } => {
                    let pieces = self.catalog.open().await.map_err(away)?;
                    let pieces = pieces.get(&(host.clone(), block.clone())).cloned().unwrap_or_default();
                    let volume = self.open.bring(&self.remote, &wanted.key(), &pieces).await;
                    let volume = match volume {
                        Err(BringError::Bad(says)) => {
                            usage::lock(&self.aside).add(&wanted.key(), None, &says);
                            None
                        }
                        other => Some(other.map_err(|error| StoreError::Away { says: error.to_string() })?),
                    };
                    Ok(volume.map(|volume| Volumes::Open(wanted.key(), volume)))
                }
                _ => Ok(self.block(wanted).await?.map(Volumes::Block)),
            }
        }));
        let opened: Vec<Result<Option<Volumes>, StoreError>> = opened.buffered(AT_ONCE).collect().await;
        let mut volumes = opened.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        volumes.retain(|volume| volume.volume().range().is_some_and(|range| range.overlaps(&touch.range)));
        let blocks: Vec<Cached> = volumes.iter().filter_map(Volumes::block).cloned().collect();
        let bad = cache::bring(&blocks, touch.needs).await?;
        for (bringer, says) in &bad {
            self.refuse(bringer.key(), says);
        }
        match bad.into_iter().next() {
            None => Ok(volumes),
            // Asked again, with the lists of now: its labels may have been written anew.
            Some((bringer, says)) => {
                self.catalog.stale().await;
                Err(StoreError::Unreadable { path: bringer.key().into(), says })
            }
        }
    }
}
