//! What Spark itself says of an application's stages and tasks, and who can be asked for it.
//!
//! Pure data: filled from Spark's REST API (a driver's or a history server's), joined to answers that
//! rest on our own figures. Everything here may be absent, late or wrong; nothing of ours depends on it.
//! Fields are Spark's own (`StageData`, `TaskData` in core's status/api/v1/api.scala, Spark 3.5 and 4.x).

use super::WallTime;
pub use facts::{SparkFact, SparkFactKind, SparkFacts};
pub use plan::{PlanNode, PlanProblem, SparkPlan};
pub use settings::size_in_bytes;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

mod facts;
mod plan;
mod settings;

/// Longest base URL, in bytes.
const MAX_URL: usize = 256;

/// An execution of Spark SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlRef {
    /// Id of the execution, unique in the application.
    pub id: u64,
    /// Description of the execution: what the user set, else the call site.
    pub description: Arc<str>,
}

/// One attempt of a stage, as Spark counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkStage {
    /// Id of the stage.
    pub id: u32,
    /// Attempt of the stage, from 0.
    pub attempt: u32,
    /// Name: the call site, unless the job set one.
    pub name: Arc<str>,
    /// The job's description, where one was set.
    pub description: Option<Arc<str>>,
    /// Jobs that the stage belongs to, ascending.
    pub job_ids: Box<[u32]>,
    /// The SQL execution that the stage's job belongs to.
    pub sql: Option<SqlRef>,
    /// Spark's word for how the stage stands: `PENDING`, `ACTIVE`, `COMPLETE`, `FAILED`.
    pub status: Arc<str>,
    /// Tasks of the stage's task set; copies and retries are not counted again.
    pub tasks: u64,
    /// CPU time inside tasks, nanoseconds. Failed and killed tasks count as 0.
    pub executor_cpu_ns: u64,
    /// CPU time of reading tasks in, nanoseconds.
    pub deserialize_cpu_ns: u64,
    /// Wall time inside tasks, milliseconds.
    pub run_time_ms: u64,
    /// When the stage was submitted.
    pub submitted: Option<WallTime>,
    /// When the stage ended.
    pub completed: Option<WallTime>,
}

/// An application's stages, as one server told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkStages {
    /// Id of the application.
    pub app: String,
    /// Base URL of the server.
    pub source: String,
    /// Base URL of the server's pages of this application, for people.
    pub pages: String,
    /// When the server was asked.
    pub fetched: WallTime,
    /// The application has ended: nothing will change.
    pub completed: bool,
    /// The stages, sorted by id and attempt; skipped ones are not told: they ran no task.
    pub stages: Vec<SparkStage>,
    /// Jobs, SQL executions and executors.
    pub beside: Vec<SparkFact>,
    /// What is missing, a sentence each.
    pub notes: Vec<String>,
}

impl SparkStages {
    /// The attempt of a stage, if it was told.
    pub fn get(&self, id: u32, attempt: u32) -> Option<&SparkStage> {
        let at = self.stages.binary_search_by_key(&(id, attempt), |s| (s.id, s.attempt)).ok()?;
        self.stages.get(at)
    }
}

/// One attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkTask {
    /// Id of the task, unique in the application.
    pub tid: u64,
    /// Place of the task in its task set.
    pub index: u32,
    /// Attempt of the task, from 0.
    pub attempt: u32,
    /// Wall time from launch to end (or to now), milliseconds, as the driver saw it.
    pub duration_ms: Option<u64>,
    /// CPU time inside the task, nanoseconds; 0 for failed and killed ones.
    pub executor_cpu_ns: u64,
    /// CPU time of reading the task in, nanoseconds.
    pub deserialize_cpu_ns: u64,
    /// Spark's word for how the task stands: `RUNNING`, `SUCCESS`, `FAILED`, `KILLED`, ...
    pub status: Arc<str>,
    /// The attempt is a speculative copy.
    pub speculative: bool,
    /// Id of the executor that runs the task.
    pub executor: Arc<str>,
    /// Host of the executor.
    pub host: Arc<str>,
    /// When the driver launched the task.
    pub launched: Option<WallTime>,
}

/// The tasks of one attempt of a stage, as one server told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparkTasks {
    /// Id of the application.
    pub app: String,
    /// Base URL of the server.
    pub source: String,
    /// When the server was asked.
    pub fetched: WallTime,
    /// The application has ended: nothing will change.
    pub completed: bool,
    /// Id of the stage.
    pub stage: u32,
    /// Attempt of the stage, from 0.
    pub attempt: u32,
    /// The tasks, sorted by id.
    pub tasks: Vec<SparkTask>,
    /// What is missing, a sentence each.
    pub notes: Vec<String>,
}

impl SparkTasks {
    /// The task with this id, if it was told.
    pub fn get(&self, tid: u64) -> Option<&SparkTask> {
        self.tasks.get(self.tasks.binary_search_by_key(&tid, |t| t.tid).ok()?)
    }
}

/// What came of asking Spark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined<T> {
    /// Spark told.
    Ready(Arc<T>),
    /// Spark told earlier, and cannot be asked now, or has not answered yet; the text says which.
    Stale(Arc<T>, String),
    /// Spark told while the windows were made, which is kept with them, and tells nothing now; the text says why.
    Kept(Arc<T>, String),
    /// Spark was asked, and has not answered yet.
    Asking,
    /// Spark was asked without success; the text says why. It is asked again later.
    Unreachable(String),
    /// Nobody was asked; the text says why.
    NotAsked(String),
}

impl<T> Joined<T> {
    /// What Spark told, now or earlier.
    pub fn value(&self) -> Option<&Arc<T>> {
        match self {
            Self::Ready(value) | Self::Stale(value, _) | Self::Kept(value, _) => Some(value),
            Self::Asking | Self::Unreachable(_) | Self::NotAsked(_) => None,
        }
    }
    /// Stable name of the case.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Stale(..) => "stale",
            Self::Kept(..) => "kept",
            Self::Asking => "asking",
            Self::Unreachable(_) => "unreachable",
            Self::NotAsked(_) => "not-asked",
        }
    }
    /// A sentence for people; empty when all is well.
    pub fn says(&self) -> &str {
        match self {
            Self::Ready(_) => "",
            Self::Asking => "Spark has been asked and has not answered yet: ask again.",
            Self::Stale(_, says) | Self::Kept(_, says) | Self::Unreachable(says) | Self::NotAsked(says) => {
                says
            }
        }
    }
}

/// Somebody who asks Spark, at most once at a time for each thing, and remembers what it said.
pub trait SparkSource: Send + Sync {
    /// The stages of an application. Waits at most `wait` for an answer that is on its way.
    fn stages(&self, app: &str, wait: Duration) -> Joined<SparkStages>;
    /// The stages of an application as they were told last. Nobody is asked, and nothing is waited for.
    fn told_stages(&self, app: &str) -> Option<Arc<SparkStages>>;
    /// The tasks of one attempt of a stage.
    fn tasks(&self, app: &str, stage: u32, attempt: u32, wait: Duration) -> Joined<SparkTasks>;
}

/// Base URL of a driver's or history server's pages: `http://HOST[:PORT][/PATH]`, nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SparkUrl(String);

/// Why a text is no [`SparkUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("http://HOST:PORT of a history server or driver, as http://history:18080; no https, user or query")]
pub struct SparkUrlError;

impl SparkUrl {
    /// The URL, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The port of the server; 80 where the URL has none.
    pub fn port(&self) -> u16 {
        let rest = self.0.strip_prefix("http://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        // What stands in brackets is an address with colons of its own.
        let port = authority.rsplit(']').next().and_then(|text| text.rsplit_once(':'));
        port.and_then(|(_, port)| port.parse().ok()).unwrap_or(80)
    }
}

impl FromStr for SparkUrl {
    type Err = SparkUrlError;
    fn from_str(text: &str) -> Result<Self, SparkUrlError> {
        let text = text.trim().trim_end_matches('/');
        let rest = text.strip_prefix("http://").filter(|_| text.len() <= MAX_URL).ok_or(SparkUrlError)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
            Some((v6, rest)) => {
                v6.parse::<std::net::Ipv6Addr>().map_err(|_| SparkUrlError)?;
                ("v6", rest.strip_prefix(':').or(rest.is_empty().then_some("80")))
            }
            None => authority.split_once(':').map_or((authority, Some("80")), |(h, p)| (h, Some(p))),
        };
        let good_port = port.and_then(|p| p.parse::<u16>().ok()).is_some_and(|p| p != 0);
        let word = |text: &str, more: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c)) && !text.contains("..")
        };
        if host.is_empty() || !word(host, ".-_") || !good_port || !word(path, "/.-_~") {
            return Err(SparkUrlError);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SparkUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
