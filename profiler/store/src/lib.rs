//! Where closed windows are kept and merged: windows in, answers out.
//!
//! [`Store`] is the room's door. [`DiskStore`] keeps windows on disk, for the daemon; [`MemoryStore`] keeps them in
//! memory, for a recording and for tests, and both answer alike.

mod asking;
mod block;
mod cut;
mod disk;
mod door;
mod error;
mod facts;
mod files;
mod flat;
mod gaps;
mod imports;
mod jobs;
mod journal;
mod limits;
mod memory;
mod merger;
mod methods;
mod operators;
mod part;
#[cfg(test)]
mod plain;
mod pointer;
mod read;
mod shelf;
mod spark;
mod sums;
mod touch;
mod values;
mod view;

pub use block::{Fetch, ImportFacts};
pub use cut::cut;
pub use disk::{
    Chain, DiskStore, DiskStoreConfig, DiskStoreError, DiskUsage, KeepFree, RollUp, SetAside, WhenFull,
};
pub use door::{Store, StoreUsage};
pub use error::StoreError;
pub use files::{BlockFacts, JournalReader, MANIFEST, blocks_of, journals_of};
pub use imports::Importing;
pub use jobs::ByJob;
pub use journal::Fsync;
pub use limits::{AnswerLimits, NO_VALUE};
pub use memory::{MemoryStore, MemoryStoreConfig};
pub use merger::{MergeError, Merger};
pub use operators::{ByOperator, OperatorSum, operator_sums};
pub use shelf::{Shelf, ShelfStore, Volume};
pub use touch::{Needs, Touch};
pub use values::{LabelValue, LabelledSeries};
