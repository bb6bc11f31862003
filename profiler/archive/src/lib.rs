//! The archive: blocks and open parts of many nodes in an object store.
//!
//! In: a store's directory, which [`Archiver`] copies and follows; an archive's URL, which [`Reader`] answers
//! from without state and [`compact`] brings together by application and hour. Out: objects named by `layout`; answers by
//! [`emberscope_store::Store`]. docs/archive.md has the layout and what happens when.

mod cache;
mod catalog;
mod compact;
mod copy;
mod heartbeat;
mod index;
mod layout;
mod reader;
mod remote;
#[cfg(test)]
mod tests;

pub use compact::{CompactConfig, CompactError, Compacted, compact};
pub use copy::{ArchiveUsage, Archiver, ArchiverConfig};
pub use heartbeat::State as NodeState;
pub use reader::{Reader, ReaderConfig, ReaderUsage};
pub use remote::{DownloadError, Object, Remote, RemoteError};
