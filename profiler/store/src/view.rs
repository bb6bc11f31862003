//! What holds windows, as a query reads it: a part in memory, a block on the disk.

use super::error::StoreError;
use super::facts::{Facts, LedgerLine, PauseLine, Stacks};
use super::flat::Shape;
use super::spark::SparkWords;
use super::sums::Sums;
use emberscope_model::Detail;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// No slot: the group is not selected.
pub(super) const UNSELECTED: u32 = u32::MAX;

/// Something that holds windows.
pub(super) trait View {
    /// What is known of the windows.
    fn facts(&self) -> &Facts;
    /// The stacks of its rows.
    fn stacks(&self) -> Result<Shared<'_, Stacks>, StoreError>;
    /// The tree of all its stacks.
    fn shape(&self, detail: Detail) -> Result<Arc<Shape>, StoreError> {
        Ok(Arc::new(Shape::of(&*self.stacks()?, detail)))
    }
    /// The rows of all groups with a slot, by slot and stack. A slot for each group; `slots` in all.
    fn sums(&self, of_group: &[u32], slots: usize) -> Result<Sums, StoreError>;
    /// How many rows the view has.
    fn rows(&self) -> u64;
    /// The lines of the ledger.
    fn ledger(&self) -> Result<LedgerRef<'_>, StoreError>;
    /// Pauses of JVMs.
    fn pauses(&self) -> Result<Pauses<'_>, StoreError>;
    /// What Spark says of the applications.
    fn spark(&self) -> Result<Shared<'_, SparkWords>, StoreError>;
}

/// What is lent, or held together.
pub(super) enum Shared<'a, T> {
    Lent(&'a T),
    Held(Arc<T>),
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match self {
            Self::Lent(lent) => lent,
            Self::Held(held) => held,
        }
    }
}

/// Pauses that are lent, or were read for this query.
pub(super) type Pauses<'a> = Cow<'a, [PauseLine]>;

/// A ledger that is lent, or was read for this query.
pub(super) enum LedgerRef<'a> {
    Lent(&'a [LedgerLine]),
    Read(Vec<LedgerLine>),
}

impl Deref for LedgerRef<'_> {
    type Target = [LedgerLine];
    fn deref(&self) -> &[LedgerLine] {
        match self {
            Self::Lent(lines) => lines,
            Self::Read(lines) => lines,
        }
    }
}
