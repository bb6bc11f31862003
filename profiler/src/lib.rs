//! Emberscope's command line: asks a daemon or a store, and starts the daemon, a recording or a server of an archive.
//!
//! What these do is in the rooms beside this one, each a crate: `emberscope_pipeline` joins them, and docs/internals.md
//! follows a sample through all.

pub mod cli;
pub mod linked;
