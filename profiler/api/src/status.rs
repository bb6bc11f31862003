//! `/api/v1/status`: what the server tells of itself. What the daemon adds (JVMs, counters, the host) is an object whose
//! fields come and go with its rooms; docs/reference/http.md names them.

use crate::{Instant, Range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A daemon's own account of itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// What the daemon adds; the fields below go before it.
    #[serde(flatten)]
    pub daemon: Map<String, Value>,
    /// Whether all threads go on, and what is left alone.
    pub health: Health,
    /// The daemon's version.
    pub version: String,
    /// Host name of the node.
    pub node: String,
    /// When this was told.
    pub time: Instant,
    /// Whether sampling has begun.
    pub ready: bool,
    /// What is waited for until then.
    pub waiting_for: Option<String>,
    /// The stored windows.
    pub store: Store,
}

/// The stored windows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Store {
    /// Windows in memory.
    pub windows: u64,
    /// Bytes that they take there.
    pub bytes: u64,
    /// Windows dropped because of `memory-limit`.
    pub dropped_for_bytes: u64,
    /// Windows dropped since they were too old.
    pub dropped_for_age: u64,
    /// Windows dropped since the disk is full.
    pub dropped_for_full: u64,
    /// Times since start that something Spark said was kept with the windows.
    pub spark_facts: u64,
    /// The same for what was too long, or for which there was no room.
    pub spark_facts_refused: u64,
    /// Length of a window.
    pub window_seconds: f64,
    /// From the first window until the last; null where there is none.
    pub span: Option<Range>,
    /// What is on disk; null where nothing is kept there.
    pub disk: Option<Disk>,
}

/// What a store has on the disk, and how that goes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Disk {
    /// How many blocks.
    pub blocks: u64,
    /// Blocks by the length of their windows, the shortest first.
    pub resolutions: Vec<Resolution>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Of these, of journals.
    pub journal_bytes: u64,
    /// Bytes of records that wait in memory until the journal takes them.
    pub pending_bytes: u64,
    /// What fails now; empty while all goes well.
    pub failing: Vec<Failing>,
    /// Errors since the start, by what failed.
    pub errors: BTreeMap<Cow<'static, str>, u64>,
    /// Windows that are in memory alone, because the journal could not take them.
    pub unjournaled_windows: u64,
    /// Windows read from journals at the start.
    pub recovered_windows: u64,
    /// Bytes cut off torn journals at the start.
    pub cut_bytes: u64,
    /// Blocks and journals set aside since the start.
    pub set_aside: u64,
    /// The last of them.
    pub set_aside_files: Vec<SetAside>,
}

/// Blocks of one length of windows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resolution {
    /// Length of their windows, seconds.
    pub window_s: f64,
    /// How many blocks.
    pub blocks: u64,
    /// End of their last window.
    pub until: Instant,
}

/// Something that fails.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Failing {
    /// What: `journal`, `sync`, `block`, ...
    pub what: Cow<'static, str>,
    /// How it fails.
    pub says: String,
}

/// A file that was set aside as bad.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetAside {
    /// Where it was.
    pub path: String,
    /// Where it is now; null where it could not be moved.
    pub now: Option<String>,
    /// What is wrong with it.
    pub says: String,
}

/// How the daemon's threads go on, and what is left alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Health {
    /// Whether sampling goes on and windows are in time.
    pub healthy: bool,
    /// What is wrong; null while nothing is.
    pub says: Option<String>,
    /// What is missing while sampling goes on: a sentence for each thread that is stuck.
    pub degraded: Vec<String>,
    /// Time since the last window closed; null before the first.
    pub last_window_seconds: Option<f64>,
    /// All threads that say when they are busy.
    pub threads: Vec<ThreadHealth>,
    /// Panics that were outlived, by thread.
    pub panics: BTreeMap<Cow<'static, str>, u64>,
    /// What is left alone after it brought the daemon down.
    pub quarantine: Quarantine,
}

/// A thread of the daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadHealth {
    /// Its name.
    pub thread: Cow<'static, str>,
    /// How long it has been at one piece of work; null while it waits for one.
    pub busy_seconds: Option<f64>,
    /// How long it may be.
    pub limit_seconds: u64,
    /// It has been longer.
    pub stuck: bool,
    /// Without it there is no sampling.
    pub vital: bool,
}

/// What is left alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quarantine {
    /// For how long nothing at all is read, as the daemon came down too often; null else.
    pub careful_seconds: Option<u64>,
    /// Times that something was not read.
    pub refused: u64,
    /// Files and processes.
    pub entries: Vec<QuarantineEntry>,
}

/// A file or process that is left alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuarantineEntry {
    /// Path or process, for people.
    pub what: String,
    /// What tells it from others of its name.
    pub id: String,
    /// How many crashes it is held to be the cause of.
    pub strikes: u32,
    /// For how long still.
    pub left_seconds: u64,
}
