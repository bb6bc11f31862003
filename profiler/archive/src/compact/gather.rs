//! What the blocks of an hour's nodes have, by application: without what is bad, and without a node that takes all the memory.
//!
//! In: the hour's blocks. Out: [`Merger`]s, and the blocks that are not in them, each named in the log. Every time that
//! something has to be left out all begins anew, so a node may do that a few times only ([`MAX_BAD`]), and few nodes may
//! ([`MAX_LARGE`]). Queries read what is left out from the nodes' own blocks.

use super::super::cache::{self, Cached};
use super::super::index::GRAIN;
use super::super::layout::BlockName;
use super::super::reader::Wanted;
use super::{CompactError, Hour};
use emberscope_model::{LabelKey, MatchOp, Matcher, Selection};
use emberscope_store::{MergeError, Merger, Needs, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Blocks that are brought at once.
const AT_ONCE: usize = 16;
/// Bad blocks of a node, after which all that it has in the hour is left out.
const MAX_BAD: usize = 3;
/// Nodes that are left out for their size, before the hour takes too much memory as a whole.
const MAX_LARGE: usize = 3;

/// Why the nodes' blocks of an hour were not brought together.
enum GatherError {
    /// One of them is bad: it is left out, and the others are brought together without it.
    Bad(BlockName, String),
    /// They take more memory than there is, and this node's the most.
    Large(String),
    Other(CompactError),
}

impl<E: Into<CompactError>> From<E> for GatherError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Hour<'_> {
    /// By application what its nodes have, and the blocks that were left out.
    pub(super) fn gather(&self) -> Result<(BTreeMap<String, Merger>, HashSet<BlockName>), CompactError> {
        let (mut out, mut large) = (HashSet::new(), 0);
        // Each time round there is one block less.
        loop {
            match self.gather_without(&out) {
                Ok(mergers) => return Ok((mergers, out)),
                Err(GatherError::Other(error)) => return Err(error),
                Err(GatherError::Bad(name, says)) => {
                    self.reader.refuse(&Wanted::Block(name.clone()).key(), &says);
                    let host = name.host.clone();
                    out.insert(name);
                    if out.iter().filter(|name| name.host == host).count() >= MAX_BAD {
                        self.leave_out(&host, "several of its blocks are bad", &mut out);
                    }
                }
                Err(GatherError::Large(host)) => {
                    large += 1;
                    let others = self.blocks.iter().any(|name| name.host != host && !out.contains(name));
                    if large > MAX_LARGE || !others {
                        let limit = self.config.memory_bytes;
                        return Err(CompactError::Memory { hour: self.hour.to_owned(), limit });
                    }
                    self.leave_out(&host, "its blocks take most of the memory that is allowed", &mut out);
                }
            }
        }
    }

    /// Leaves out all that a node has in the hour.
    fn leave_out(&self, host: &str, says: &str, out: &mut HashSet<BlockName>) {
        tracing::warn!(hour = self.hour, node = host, says, "left out: queries read this node's own blocks");
        out.extend(self.blocks.iter().filter(|name| name.host == host).cloned());
    }

    fn gather_without(&self, out: &HashSet<BlockName>) -> Result<BTreeMap<String, Merger>, GatherError> {
        let mut mergers: BTreeMap<String, Merger> = BTreeMap::new();
        let (mut held, mut grown): (usize, BTreeMap<&str, usize>) = (0, BTreeMap::new());
        let good: Vec<&BlockName> = self.blocks.iter().filter(|name| !out.contains(*name)).collect();
        for some in good.chunks(AT_ONCE) {
            for (name, block) in some.iter().zip(self.bring(some)?) {
                self.add_or_name(name, &block, &mut mergers)?;
                let now = mergers.values().map(Merger::bytes).sum::<usize>();
                *grown.entry(name.host.as_str()).or_default() += now.saturating_sub(held);
                held = now;
                if held > self.config.memory_bytes {
                    let largest = grown.iter().max_by_key(|(_, bytes)| **bytes).map(|(host, _)| *host);
                    return Err(GatherError::Large(largest.unwrap_or(&name.host).to_owned()));
                }
            }
        }
        Ok(mergers)
    }

    /// Some blocks with all their files.
    fn bring(&self, some: &[&BlockName]) -> Result<Vec<Cached>, GatherError> {
        self.reader.runtime.block_on(async {
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
        })
    }

    /// Adds what a block has to its applications. After a panic nothing that was added up is used: all begins anew without the
    /// block.
    fn add_or_name(
        &self,
        name: &BlockName,
        block: &Cached,
        mergers: &mut BTreeMap<String, Merger>,
    ) -> Result<(), GatherError> {
        let added = AssertUnwindSafe(|| self.add(block, mergers));
        let says = match catch_unwind(added) {
            Err(_) => "makes the reader panic".to_owned(),
            Ok(Err(
                CompactError::Store(StoreError::Unreadable { says, .. })
                | CompactError::Merge(MergeError::Store(StoreError::Unreadable { says, .. })),
            )) => says,
            Ok(other) => {
                other?;
                return Ok(());
            }
        };
        Err(match block.bringer.take_away() {
            Some(says) => StoreError::Away { says }.into(),
            None => GatherError::Bad(name.clone(), says),
        })
    }

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
}
