//! The store's door: answers over open part, sealed parts and blocks.

use super::super::asking::{Parts, asked_of_parts};
use super::super::door::{Store, StoreUsage};
use super::super::facts;
use super::super::read::{Merge, Merged, MethodSums, Summing};
use super::super::values::{LabelValue, LabelledSeries};
use super::*;
use emberscope_model::{
    Answer, LabelKey, LabelTotal, LedgerTotal, MethodAnswer, ProcessRecord, Query, Selection, SparkFact,
    Summary,
};
use std::collections::BTreeMap;

/// An answer over all views, several at a time.
fn summed<'q, S: Summing<'q>>(shared: &Shared, query: &'q Query) -> Result<S::Answer, StoreError> {
    let mut answer = shared.answer(|| {
        let limits = &shared.config.answers;
        let all = Mutex::new(S::new(query, limits));
        shared.each_at_once(&query.range, |view| {
            // Without the lock: only the sum waits for the others.
            let mut own = S::new(query, limits);
            own.add(view)?;
            lock(&all).join(own)
        })?;
        let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(all.finish(shared.config.window_length))
    })?;
    S::quality(&mut answer).missing = shared.missing_in(&query.range);
    Ok(answer)
}

impl DiskStore {
    fn merged(&self, query: &Query) -> Result<Merged, StoreError> {
        summed::<Merge<'_>>(&self.shared, query)
    }
}

impl Store for DiskStore {
    fn append(&self, window: Window) {
        self.shared.append(&window);
    }

    fn span(&self) -> Option<TimeRange> {
        let held = read(&self.shared.held);
        let open = read(&self.shared.open);
        let parts = held.sealed.iter().filter_map(|(_, part)| part.facts.span());
        let blocks = held.blocks.iter().map(|block| block.range());
        facts::span(parts.chain(blocks).chain(open.part.facts.span()))
    }

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        Ok(self.merged(query)?.whole())
    }

    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        Ok(self.merged(query)?.largest(max_nodes))
    }

    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        summed::<MethodSums<'_>>(&self.shared, query)
    }

    asked_of_parts!(.shared);

    fn learn(&self, facts: &[SparkFact]) -> bool {
        self.shared.learn(facts)
    }

    fn relabel(&self, from: &LabelSet, to: &Arc<LabelSet>) {
        self.shared.change(Task::Relabel { from: from.clone(), to: to.clone() });
    }

    fn forget(&self, labels: &LabelSet) {
        self.shared.change(Task::Forget { labels: labels.clone() });
    }

    fn usage(&self) -> StoreUsage {
        let held = read(&self.shared.held);
        let open = read(&self.shared.open);
        let parts = || held.sealed.iter().map(|(_, part)| &**part).chain([&open.part]);
        let cached: usize = held.blocks.iter().map(|block| block.kept_bytes()).sum();
        let of_blocks: u64 = held.blocks.iter().map(|block| block.windows()).sum();
        let health = lock(&self.shared.health);
        StoreUsage {
            windows: parts().map(|part| part.facts.windows.len()).sum::<usize>() + of_blocks as usize,
            bytes: parts().map(Part::bytes).sum::<usize>() + cached,
            dropped_for_bytes: health.dropped_windows_for_bytes,
            dropped_for_age: health.dropped_windows_for_age,
            dropped_for_full: health.dropped_windows_for_full,
            facts: health.facts,
            facts_refused: health.facts_refused,
        }
    }

    fn disk(&self) -> Option<DiskUsage> {
        let mut resolutions: BTreeMap<Duration, (usize, WallTime)> = BTreeMap::new();
        let (blocks, bytes) = {
            let held = read(&self.shared.held);
            for block in &held.blocks {
                let length = block.window_length().unwrap_or(self.shared.config.window_length);
                let known = resolutions.entry(length).or_default();
                *known = (known.0 + 1, known.1.max(block.range().until));
            }
            (held.blocks.len(), held.blocks.iter().map(|block| block.bytes()).sum())
        };
        let (journal_bytes, pending_bytes) = self.shared.journal_bytes();
        let health = lock(&self.shared.health);
        let resolutions = resolutions.into_iter().map(|(length, (blocks, until))| (length, blocks, until));
        let usage = health.usage(blocks, bytes, journal_bytes, pending_bytes);
        Some(DiskUsage { resolutions: resolutions.collect(), ..usage })
    }
}
