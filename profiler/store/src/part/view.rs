//! A part as a query reads it.

use super::Part;
use crate::error::StoreError;
use crate::facts::{Facts, Stacks};
use crate::flat::Shape;
use crate::spark::SparkWords;
use crate::sums::Sums;
use crate::view::{LedgerRef, Pauses, Shared, UNSELECTED, View};
use emberscope_model::Detail;
use std::sync::Arc;

impl View for Part {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn stacks(&self) -> Result<Shared<'_, Stacks>, StoreError> {
        Ok(Shared::Lent(&self.stacks))
    }
    fn shape(&self, detail: Detail) -> Result<Arc<Shape>, StoreError> {
        Ok(self.shapes.of(&self.stacks, detail))
    }
    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError> {
        let mut sums = Sums::new(slots, self.stacks.stacks.len());
        for (group, slot) in of_group.iter().enumerate().filter(|(_, slot)| **slot != UNSELECTED) {
            for row in self.rows(group as u32) {
                sums.add(*slot, row.stack, row.count, row.weight);
            }
        }
        Ok(sums)
    }
    fn rows(&self) -> u64 {
        (0..self.facts.groups.len() as u32).map(|group| u64::from(self.row_count(group))).sum()
    }
    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError> {
        Ok(LedgerRef::Lent(&self.ledger))
    }
    fn pauses(&self) -> Result<Pauses<'_>, StoreError> {
        Ok(self.pauses.as_slice().into())
    }
    fn spark(&self) -> Result<Shared<'_, SparkWords>, StoreError> {
        Ok(Shared::Lent(&self.spark))
    }
}
