//! What is told of a stage and of a task, and by what a row of an answer names them.

use super::KeptWords;
use emberscope_api as api;
use emberscope_model::{Joined, SparkSource, SparkStage, SparkStages, SparkTask, SparkTasks, WallTime};
use serde_json::Value;
use std::time::Duration;

/// What Spark told that belongs to rows of one kind.
pub trait Told: Sized {
    /// What Spark is asked about.
    type Key: Ord + Clone;
    /// What tells the rows of one key apart.
    type Row;
    /// What is told of a row.
    type Value: serde::Serialize;
    /// Key of the answer's rows in JSON.
    const ROWS: &'static str;
    /// What the keys are, for people, in the plural.
    const KEYS: &'static str;
    /// The key and what tells it of a row in JSON. None: it is none that Spark knows.
    fn key(row: &Value) -> Option<(Self::Key, Self::Row)>;
    /// Asks Spark about a key.
    fn ask(source: &dyn SparkSource, key: &Self::Key, wait: Duration) -> Joined<Self>;
    /// What is kept about a key.
    fn kept(kept: &KeptWords<'_>, key: &Self::Key) -> Option<Self>;
    /// What was told of a row.
    fn of_row(&self, row: &Self::Row) -> Option<Self::Value>;
    /// Who told it, when, and what is missing.
    fn origin(&self) -> (&str, WallTime, &[String]);
}

impl Told for SparkStages {
    type Key = String;
    type Row = (u32, u32);
    type Value = api::SparkStage;
    const ROWS: &'static str = "stages";
    const KEYS: &'static str = "applications";
    fn key(row: &Value) -> Option<(String, (u32, u32))> {
        // A stage without a number is none that Spark knows.
        Some((text(row, "app")?, (number(row, "stage")?, number(row, "stage_attempt")?)))
    }
    fn ask(source: &dyn SparkSource, app: &String, wait: Duration) -> Joined<Self> {
        source.stages(app, wait)
    }
    fn kept(kept: &KeptWords<'_>, app: &String) -> Option<Self> {
        kept.stages(app)
    }
    fn of_row(&self, (id, attempt): &(u32, u32)) -> Option<api::SparkStage> {
        self.get(*id, *attempt).map(|told| stage(told, &self.pages))
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

impl Told for SparkTasks {
    type Key = (String, u32, u32);
    type Row = u64;
    type Value = api::SparkTask;
    const ROWS: &'static str = "tasks";
    const KEYS: &'static str = "stages";
    fn key(row: &Value) -> Option<(Self::Key, u64)> {
        let key = (text(row, "app")?, number(row, "stage")?, number(row, "stage_attempt")?);
        Some((key, number(row, "task")?))
    }
    fn ask(source: &dyn SparkSource, (app, stage, attempt): &Self::Key, wait: Duration) -> Joined<Self> {
        source.tasks(app, *stage, *attempt, wait)
    }
    fn kept(_: &KeptWords<'_>, _: &Self::Key) -> Option<Self> {
        None
    }
    fn of_row(&self, tid: &u64) -> Option<api::SparkTask> {
        self.get(*tid).map(task)
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

fn text(row: &Value, key: &str) -> Option<String> {
    row.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A label that is a number.
fn number<N: std::str::FromStr>(row: &Value, key: &str) -> Option<N> {
    row.get(key)?.as_str()?.parse().ok()
}

fn stage(stage: &SparkStage, pages: &str) -> api::SparkStage {
    let page = |pages: &str| format!("{pages}/stages/stage/?id={}&attempt={}", stage.id, stage.attempt);
    api::SparkStage {
        // What is kept has no server behind it any more.
        page: if pages.is_empty() { String::new() } else { page(pages) },
        name: (*stage.name).to_owned(),
        description: stage.description.as_deref().map(str::to_owned),
        job_ids: stage.job_ids.to_vec(),
        sql_id: stage.sql.as_ref().map(|sql| sql.id),
        sql_description: stage.sql.as_ref().map(|sql| (*sql.description).to_owned()),
        status: (*stage.status).to_owned(),
        tasks: stage.tasks,
        cpu: cpu(stage.executor_cpu_ns, stage.deserialize_cpu_ns),
        run_time_ms: stage.run_time_ms,
        submitted: stage.submitted.map(Into::into),
        completed: stage.completed.map(Into::into),
    }
}

fn task(task: &SparkTask) -> api::SparkTask {
    api::SparkTask {
        duration_ms: task.duration_ms,
        cpu: cpu(task.executor_cpu_ns, task.deserialize_cpu_ns),
        status: (*task.status).to_owned(),
        speculative: task.speculative,
        attempt: task.attempt,
        host: (*task.host).to_owned(),
        launched: task.launched.map(Into::into),
    }
}

fn cpu(executor_ns: u64, deserialize_ns: u64) -> api::SparkCpu {
    api::SparkCpu { executor_cpu_ns: Some(executor_ns), deserialize_cpu_ns: Some(deserialize_ns) }
}
