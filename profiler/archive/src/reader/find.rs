//! Which blocks and open parts a question may touch: lists of the archive in, names out.
//!
//! An hour of the application that is asked for is read from the one block that it was brought together in, where that
//! can answer: not by task, nor by steps that are not whole minutes. What it does not cover is read as it is.

use super::super::catalog::{Gathered, hours_of};
use super::super::index::{GRAIN, Index, IndexError};
use super::super::layout::{self, BlockName};
use super::{MAX_COVERED, MAX_INDEXES, Reader, away, usage};
use emberscope_model::{LabelKey, MatchOp, Missing, WallTime};
use emberscope_store::{StoreError, Touch};
use std::collections::HashSet;
use std::sync::Arc;

/// A block that a question may touch.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Block(BlockName),
    Gathered { app: String, hour: Gathered },
    Open { host: String, block: String },
}

impl Wanted {
    /// By time, the newest last; what is not of one node counts as its hour's first.
    fn order(&self) -> (&str, &str) {
        match self {
            Self::Block(name) => (&name.block, &name.host),
            Self::Gathered { hour, .. } => (&hour.hour, ""),
            Self::Open { host, block } => (block, host),
        }
    }

    /// Its key: the directory in the cache, and the name under which it is set aside.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Block(BlockName { host, block, crc32 }) => format!("nodes/{host}/{block}.{crc32:08x}"),
            Self::Gathered { app, hour } => format!("apps/{app}/{}/{}", hour.hour, hour.generation),
            Self::Open { host, block } => format!("open/{host}/{block}"),
        }
    }
}

impl Reader {
    /// What a question may touch, the newest first.
    ///
    /// # Errors
    /// [`StoreError::Away`]: a list cannot be read and none is known from before.
    pub(super) async fn wanted(&self, touch: &Touch<'_>) -> Result<Vec<Wanted>, StoreError> {
        let mut wanted = self.listed(touch).await?;
        usage::lock(&self.aside).keep(&mut wanted, Wanted::key);
        wanted.sort_by(|a, b| b.order().cmp(&a.order()));
        Ok(wanted)
    }

    /// What a question's range lacks: what nodes have not sent, what lists were read without, and what was set aside, the
    /// newest first. Costs a list a minute while nothing is.
    ///
    /// # Errors
    /// As for [`Self::wanted`].
    pub(super) async fn lacking(&self, touch: &Touch<'_>) -> Result<Missing, StoreError> {
        let mut missing = Missing::default();
        let beats = self.catalog.heartbeats().await;
        let now = WallTime::now();
        beats.iter().filter_map(|beat| beat.lack(&touch.range, now)).for_each(|part| missing.add(part));
        self.catalog.left_out(&touch.range).await.into_iter().for_each(|part| missing.add(part));
        if usage::lock(&self.aside).is_empty() {
            return Ok(missing);
        }
        let mut listed = self.listed(touch).await?;
        listed.extend(self.alone(touch).await?);
        listed.sort_by(|a, b| b.order().cmp(&a.order()));
        let aside = usage::lock(&self.aside);
        // A node's hour that is passed over is one part, however many blocks it has.
        let mut named = HashSet::new();
        let bad = listed.iter().filter_map(|wanted| aside.get(&wanted.key()));
        bad.filter(|part| part.range.overlaps(&touch.range) && named.insert(part.name.as_str()))
            .for_each(|part| missing.add(part.clone()));
        Ok(missing)
    }

    /// The application's hours that are nowhere but brought together.
    async fn alone(&self, touch: &Touch<'_>) -> Result<Vec<Wanted>, StoreError> {
        let Some(app) = app_of(touch).map(|app| layout::part(&app)) else { return Ok(Vec::new()) };
        let (first, last) = hours_of(&touch.range);
        let there = self.catalog.hours_in(&touch.range).await.map_err(away)?;
        let list = self.catalog.gathered(&app).await.map_err(away)?;
        let alone = list.iter().filter(|hour| hour.hour >= first && hour.hour <= last);
        let alone = alone.filter(|hour| !there.contains(&hour.hour));
        Ok(alone.map(|hour| Wanted::Gathered { app: app.clone(), hour: hour.clone() }).collect())
    }

    /// What lies in the range by the archive's lists, in any order.
    async fn listed(&self, touch: &Touch<'_>) -> Result<Vec<Wanted>, StoreError> {
        let (first, last) = hours_of(&touch.range);
        let gathered = self.gathered(touch).await?;
        let mut wanted = Vec::new();
        let mut known: HashSet<(String, String)> = HashSet::new();
        let mut hours = self.catalog.hours_in(&touch.range).await.map_err(away)?;
        // An hour that is nowhere but brought together: the nodes' blocks may have gone.
        hours.extend(gathered.iter().map(|(_, hour, _)| hour.hour.clone()));
        hours.sort();
        hours.dedup();
        for hour in hours {
            let blocks = self.catalog.blocks(&hour).await.map_err(away)?;
            let whole = gathered.iter().find(|(_, known, _)| known.hour == hour);
            let whole = whole.filter(|(_, _, index)| !is_old(index, &blocks));
            for name in blocks.iter() {
                known.insert((name.host.clone(), name.block.clone()));
                let block = (name.host.clone(), name.block.clone());
                if !whole.is_some_and(|(_, _, index)| index.covers.contains(&block)) {
                    wanted.push(Wanted::Block(name.clone()));
                }
            }
            if let Some((app, hour, _)) = whole {
                wanted.push(Wanted::Gathered { app: app.clone(), hour: hour.clone() });
            }
        }
        for (host, block) in self.catalog.open().await.map_err(away)?.keys() {
            let hour = layout::hour(block);
            let there = known.contains(&(host.clone(), block.clone()));
            if !there && hour >= first.as_str() && hour <= last.as_str() {
                wanted.push(Wanted::Open { host: host.clone(), block: block.clone() });
            }
        }
        Ok(wanted)
    }

    /// The hours in range that are one block of the application that is asked for, each with the blocks that it covers.
    async fn gathered(&self, touch: &Touch<'_>) -> Result<Vec<(String, Gathered, Arc<Index>)>, StoreError> {
        let fits =
            !touch.of_tasks && touch.step.is_none_or(|step| step.as_nanos().is_multiple_of(GRAIN.as_nanos()));
        let Some(app) = app_of(touch).filter(|_| fits) else { return Ok(Vec::new()) };
        let app = layout::part(&app);
        let (first, last) = hours_of(&touch.range);
        let list = self.catalog.gathered(&app).await.map_err(away)?;
        let in_range = list.iter().filter(|hour| hour.hour >= first && hour.hour <= last);
        let mut all = Vec::new();
        for hour in in_range {
            let wanted = Wanted::Gathered { app: app.clone(), hour: hour.clone() };
            if usage::lock(&self.aside).has(&wanted.key()) {
                continue;
            }
            let name = layout::gathered(&app, &hour.hour, &hour.generation);
            match self.index(&name).await {
                Ok(Some(index)) => all.push((app.clone(), hour.clone(), index)),
                Ok(None) => {}
                Err(IndexError::Remote(error)) => return Err(away(error)),
                Err(IndexError::Bad(says)) => usage::lock(&self.aside).add(&wanted.key(), None, &says),
            }
        }
        Ok(all)
    }

    /// What an application's hour says of itself.
    ///
    /// # Errors
    /// `IndexError`: what tells of the hour does not come, or makes no sense. It is not kept then.
    pub(super) async fn index(&self, name: &str) -> Result<Option<Arc<Index>>, IndexError> {
        if let Some(index) = usage::lock(&self.indexes).get(name) {
            return Ok(Some(index.clone()));
        }
        let Some(index) = Index::read(&self.remote, name).await?.map(Arc::new) else { return Ok(None) };
        let mut indexes = usage::lock(&self.indexes);
        let covered = |index: &Arc<Index>| index.covers.len();
        if indexes.len() >= MAX_INDEXES
            || indexes.values().map(covered).sum::<usize>() + covered(&index) > MAX_COVERED
        {
            indexes.clear();
        }
        indexes.insert(name.to_owned(), index.clone());
        Ok(Some(index))
    }
}

/// Whether what was brought together covers blocks of a node that others took the place of since (they were merged
/// there), so that these would be counted twice.
fn is_old(index: &Index, blocks: &[BlockName]) -> bool {
    let listed: HashSet<(&str, &str)> =
        blocks.iter().map(|name| (name.host.as_str(), name.block.as_str())).collect();
    let gone = index.covers.iter().filter(|(host, block)| !listed.contains(&(host.as_str(), block.as_str())));
    let gone: HashSet<&str> = gone.map(|(host, _)| host.as_str()).collect();
    let covered = |name: &BlockName| index.covers.contains(&(name.host.clone(), name.block.clone()));
    blocks.iter().any(|name| gone.contains(name.host.as_str()) && !covered(name))
}

/// The one application that a question is about.
fn app_of(touch: &Touch<'_>) -> Option<String> {
    touch.selection.matchers.iter().find_map(|matcher| match (&matcher.op, matcher.key) {
        (MatchOp::In(values), LabelKey::App) => match values.as_slice() {
            [app] if !app.is_empty() => Some(app.clone()),
            _ => None,
        },
        _ => None,
    })
}
