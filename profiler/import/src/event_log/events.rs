//! The events of a log that are read, as little of each as is kept.
//!
//! In: a line. Out: a change of the application's state ([`App`]). Fields are those of `JsonProtocol.scala` (core, 2.4 to
//! 4.3) and, of Spark SQL, of `SQLListener.scala` (sql/core), whose events are written with their class's name. An event
//! begins with its name: others are passed over without being read.

use super::app::App;
use super::graph::plan;
use emberscope_model::SparkFact;
use emberscope_target::spark_words::{Words, count};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

#[derive(Deserialize)]
pub struct AppStart {
    #[serde(rename = "App ID")]
    pub id: String,
    #[serde(rename = "App Name", default)]
    pub name: Words,
    #[serde(rename = "Timestamp", default, deserialize_with = "count")]
    pub at: u64,
}

#[derive(Deserialize)]
pub struct AppEnd {
    #[serde(rename = "Timestamp", default, deserialize_with = "count")]
    pub at: u64,
}

#[derive(Default, Deserialize)]
pub struct Properties {
    #[serde(rename = "spark.job.description", default)]
    pub description: Words,
    #[serde(rename = "spark.sql.execution.id", default)]
    pub sql: Words,
}

#[derive(Deserialize)]
pub struct StageInfo {
    #[serde(rename = "Stage ID")]
    pub id: u32,
    #[serde(rename = "Stage Attempt ID")]
    pub attempt: u32,
    #[serde(rename = "Stage Name", default)]
    pub name: Words,
    #[serde(rename = "Number of Tasks", default, deserialize_with = "count")]
    pub tasks: u64,
    #[serde(rename = "Submission Time", default, deserialize_with = "count")]
    pub submitted: u64,
    #[serde(rename = "Completion Time", default, deserialize_with = "count")]
    pub completed: u64,
    #[serde(rename = "Failure Reason", default)]
    pub failure: Words,
}

#[derive(Deserialize)]
pub struct Stage {
    #[serde(rename = "Stage Info")]
    pub info: StageInfo,
    #[serde(rename = "Properties", default)]
    pub properties: Option<Properties>,
}

#[derive(Deserialize)]
pub struct TaskEnd {
    #[serde(rename = "Stage ID")]
    pub stage: u32,
    #[serde(rename = "Stage Attempt ID")]
    pub attempt: u32,
    #[serde(rename = "Task Metrics", default)]
    pub metrics: Option<Metrics>,
}

#[derive(Deserialize)]
pub struct Metrics {
    #[serde(rename = "Executor CPU Time", default, deserialize_with = "count")]
    pub cpu: u64,
    #[serde(rename = "Executor Deserialize CPU Time", default, deserialize_with = "count")]
    pub deserialize: u64,
    #[serde(rename = "Executor Run Time", default, deserialize_with = "count")]
    pub run: u64,
}

#[derive(Deserialize)]
pub struct JobStart {
    #[serde(rename = "Job ID")]
    pub id: u32,
    #[serde(rename = "Submission Time", default, deserialize_with = "count")]
    pub at: u64,
    #[serde(rename = "Stage Infos", default)]
    pub infos: Vec<StageInfo>,
    #[serde(rename = "Stage IDs", default)]
    pub stages: Vec<u32>,
    #[serde(rename = "Properties", default)]
    pub properties: Option<Properties>,
}

#[derive(Deserialize)]
pub struct JobEnd {
    #[serde(rename = "Job ID")]
    pub id: u32,
    #[serde(rename = "Completion Time", default, deserialize_with = "count")]
    pub at: u64,
    #[serde(rename = "Job Result")]
    pub result: JobResult,
}

#[derive(Deserialize)]
pub struct JobResult {
    #[serde(rename = "Result")]
    pub result: Words,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqlStart {
    pub execution_id: u64,
    #[serde(default)]
    pub description: Words,
    #[serde(default, deserialize_with = "count")]
    pub time: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqlPlan {
    pub execution_id: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqlEnd {
    pub execution_id: u64,
    #[serde(default, deserialize_with = "count")]
    pub time: u64,
    #[serde(default)]
    pub error_message: Option<Words>,
}

#[derive(Deserialize)]
pub struct Executor {
    #[serde(rename = "Executor ID")]
    pub id: Words,
    #[serde(rename = "Timestamp", default, deserialize_with = "count")]
    pub at: u64,
    #[serde(rename = "Executor Info", default)]
    pub info: Option<ExecutorInfo>,
    #[serde(rename = "Removed Reason", default)]
    pub reason: Words,
}

#[derive(Deserialize)]
pub struct ExecutorInfo {
    #[serde(rename = "Total Cores", default, deserialize_with = "count")]
    pub cores: u64,
}

#[derive(Deserialize)]
pub struct BlockManager {
    #[serde(rename = "Block Manager ID")]
    pub id: BlockManagerId,
    #[serde(rename = "Timestamp", default, deserialize_with = "count")]
    pub at: u64,
}

#[derive(Deserialize)]
pub struct BlockManagerId {
    #[serde(rename = "Executor ID")]
    pub executor: Words,
    #[serde(rename = "Host", default)]
    pub host: Words,
    #[serde(rename = "Port", default, deserialize_with = "count")]
    pub port: u64,
}

/// What Spark's parts were told before they began: of its properties those that are kept.
#[derive(Deserialize)]
pub struct Environment {
    #[serde(rename = "Spark Properties", default)]
    pub settings: Settings,
}

/// Settings, each as a fact.
#[derive(Default)]
pub struct Settings(pub Vec<SparkFact>);

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Kept;
        impl<'de> Visitor<'de> for Kept {
            type Value = Settings;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("properties")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut kept = Vec::new();
                while let Some(name) = map.next_key::<Words>()? {
                    // A name that is none of them is looked at no further: its value may be a secret.
                    if !SparkFact::is_setting(&name.0) {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let value = map.next_value::<Words>()?;
                    kept.extend(SparkFact::setting(&name.0, &value.0));
                }
                Ok(Settings(kept))
            }
        }
        from.deserialize_map(Kept)
    }
}

/// Takes the event of a line.
///
/// # Errors
/// The line is no event, or one that is read and makes no sense.
pub fn take(line: &[u8], app: &mut App) -> Result<(), serde_json::Error> {
    let name = line.strip_prefix(b"{\"Event\":\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    let Some(name) = name.filter(|_| line.ends_with(b"}")) else {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "Event")]
            _event: Words,
        }
        // Of another order: it is no event that is read, or none at all.
        return serde_json::from_slice::<Named>(line).map(drop);
    };
    let name = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    match name.strip_prefix(b"SparkListener").unwrap_or_default() {
        b"ApplicationStart" => app.start(serde_json::from_slice(line)?),
        b"ApplicationEnd" => app.end(&serde_json::from_slice(line)?),
        b"StageSubmitted" => app.stage(serde_json::from_slice(line)?, false),
        b"StageCompleted" => app.stage(serde_json::from_slice(line)?, true),
        b"TaskEnd" => app.task(&serde_json::from_slice(line)?),
        b"JobStart" => app.job(serde_json::from_slice(line)?),
        b"JobEnd" => app.job_end(&serde_json::from_slice(line)?),
        b"SQLExecutionStart" => app.sql(serde_json::from_slice(line)?, plan(line)),
        b"SQLAdaptiveExecutionUpdate" => {
            let SqlPlan { execution_id } = serde_json::from_slice(line)?;
            app.sql_plan(execution_id, plan(line));
        }
        b"SQLExecutionEnd" => app.sql_end(&serde_json::from_slice(line)?),
        b"ExecutorAdded" => app.executor(serde_json::from_slice(line)?, false),
        b"ExecutorRemoved" => app.executor(serde_json::from_slice(line)?, true),
        b"EnvironmentUpdate" => app.environment(serde_json::from_slice(line)?),
        b"BlockManagerAdded" => app.block_manager(serde_json::from_slice(line)?),
        _ => {}
    }
    Ok(())
}
