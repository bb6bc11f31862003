//! Who a process is: /proc, cgroups, environments in; labels out.
//!
//! [`Registry`] is the door: keyed by (pid, start time), filled by a scan and by kernel events, asked for
//! each sample. It reads /proc through `procfs`, takes [`facts`] of a process, works out its
//! [`identity`] by pure functions, asks drivers for what only they know (`discovery`, a thread of its
//! own), and says which processes the user wants kept ([`keep`]). Limits stand at the head of each file.

mod cgroup;
mod claims;
mod discovery;
mod environ;
pub mod facts;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod identity;
mod java;
pub mod keep;
mod labels;
#[cfg(test)]
mod live_spark;
mod procfs;
mod properties;
mod registry;
mod stat;
mod text;
pub mod threads;
mod users;

#[cfg(debug_assertions)]
pub use discovery::fuzzed as spark_rest;
pub use discovery::{NamesConfig, NamesCounters, Places, SparkNames};
pub use facts::ProcessFacts;
pub use identity::{Identity, plain_name};
pub use keep::{AppFilter, ExecutorFilter, Fraction, Keep, KeepError};
pub use procfs::{ProcRoot, ReadError};
pub use registry::{Conflict, Counters, Limits, Process, Registry, RegistryConfig, Relabel};
pub use threads::{
    Booking, Limits as ThreadLimits, Occupation, Owner, OwnerKind, ThreadCounters, Threads, class_of,
    occupation, without_task,
};
