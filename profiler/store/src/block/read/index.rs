//! What is kept of a block's small tables.

use super::super::order::Lane;
use crate::facts::{Facts, FlawCount, Packed, Set};
use std::sync::Arc;

/// A block's facts, and how its rows are laid out.
#[derive(Debug)]
pub(crate) struct Index {
    pub facts: Facts,
    pub(in super::super) lane_of: Packed,
    pub(in super::super) lanes: Vec<Lane>,
}

impl Index {
    /// Bytes of memory that the index takes, estimated.
    pub(super) fn bytes(&self) -> usize {
        let facts = &self.facts;
        // Two counters, the allocation's header, and what rounding costs.
        let text = |text: &Arc<str>| size_of::<Arc<str>>() + (text.len() + 24).next_multiple_of(16) + 8;
        facts.labels.texts.iter().map(text).sum::<usize>()
            + facts.labels.sets.len() * (size_of::<Set>() + 1)
            + facts.groups.bytes()
            + self.lane_of.bytes()
            + facts.flaws.len() * size_of::<FlawCount>()
            + facts.records.len() * 250
            + facts.windows.iter().map(|w| 160 + w.records.len() * 4).sum::<usize>()
    }
}
