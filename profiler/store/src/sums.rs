//! Counts and weights by slot and stack.
//!
//! A table where it is small, else a map: a flame graph of everything has one slot, one that is grouped by
//! task has thousands of which each holds few stacks.

use super::error::StoreError;
use super::pointer::PairMap;

/// Places of a table: 4 MiB.
const MAX_TABLE: usize = 256 << 10;

/// Pairs of slot and stack: with what sorts them some 250 MB. A tree of so many has more nodes than may be.
const MAX_PAIRS: usize = 4 << 20;

/// Slot, stack, count and weight.
pub(crate) type SlotSum = (u32, u32, u64, u64);

/// Counts and weights, by slot and stack.
#[derive(Debug)]
pub(crate) struct Sums {
    stacks: usize,
    table: Vec<(u64, u64)>,
    map: PairMap<(u32, u32), (u64, u64)>,
    /// There were more than fit.
    over: bool,
}

impl Sums {
    /// Sums of so many slots and stacks, all 0.
    pub fn new(slots: usize, stacks: usize) -> Self {
        let places = slots.saturating_mul(stacks);
        let table = if places <= MAX_TABLE { vec![(0, 0); places] } else { Vec::new() };
        Self { stacks, table, map: PairMap::default(), over: false }
    }

    /// Adds samples of a stack to a slot.
    pub fn add(&mut self, slot: u32, stack: u32, count: u64, weight: u64) {
        let sum = match self.table.is_empty() {
            true if self.map.len() >= MAX_PAIRS => {
                let known = self.map.get_mut(&(slot, stack));
                self.over |= known.is_none();
                known
            }
            true => Some(self.map.entry((slot, stack)).or_default()),
            false => self.table.get_mut(slot as usize * self.stacks + stack as usize),
        };
        if let Some(sum) = sum {
            sum.0 = sum.0.saturating_add(count);
            sum.1 = sum.1.saturating_add(weight);
        }
    }

    /// Whether all were added.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]: there were more than [`MAX_PAIRS`] pairs of slot and stack. The sums lack some then.
    pub fn fit(&self) -> Result<(), StoreError> {
        let too_large = StoreError::TooLarge { what: "stacks in its groups", limit: MAX_PAIRS };
        if self.over { Err(too_large) } else { Ok(()) }
    }

    /// Slot, stack, count and weight of all that is not zero, by slot.
    pub fn into_sorted(self) -> Vec<SlotSum> {
        let sum = |((slot, stack), (count, weight))| (slot, stack, count, weight);
        let mut out: Vec<SlotSum> = self.map.into_iter().map(sum).collect();
        out.sort_unstable();
        if !self.table.is_empty() {
            for (slot, stacks) in self.table.chunks(self.stacks.max(1)).enumerate() {
                let sums = stacks.iter().enumerate().filter(|(_, sum)| **sum != (0, 0));
                out.extend(sums.map(|(stack, (count, weight))| (slot as u32, stack as u32, *count, *weight)));
            }
        }
        out
    }
}
