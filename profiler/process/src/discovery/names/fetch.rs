//! Which requests make one answer, and how Spark's jobs and SQL executions are joined to its stages.
//!
//! In: a [`Client`], a base URL, an application id. Out: [`SparkStages`] or [`SparkTasks`]. Stages are
//! needed, jobs, SQL executions and their plans only wished for: without them a note says so. On a history server an
//! application of YARN may have several attempts, and the newest is asked for. Everything that is kept
//! has a limit; what is over it is in the notes.

use super::beside::{Beside, executors, settings};
use super::client::{AskError, Client};
use super::plans;
use super::texts::Texts;
use super::wire::{App, Execution, First, Job, Stage, Task};
use crate::discovery::rest;
use emberscope_model::{
    SparkFact, SparkFactKind, SparkStage, SparkStages, SparkTask, SparkTasks, SparkUrl, SqlRef, WallTime,
};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Stage attempts kept, the newest; Spark itself keeps 1,000 (spark.ui.retainedStages).
pub const MAX_STAGES: usize = 2000;
/// Jobs looked at, the newest; Spark itself keeps 1,000 (spark.ui.retainedJobs).
pub const MAX_JOBS: usize = 2000;
/// Executions a page, and pages; Spark itself keeps 1,000 (spark.sql.ui.retainedExecutions).
const SQL_PAGE: usize = 500;
const SQL_PAGES: usize = 4;
/// Tasks a page, and pages: 10,000 tasks of a stage are kept.
const TASK_PAGE: usize = 1000;
const TASK_PAGES: usize = 10;
/// Jobs kept of one stage.
const MAX_JOBS_OF_STAGE: usize = 16;
/// Longest application or attempt id.
const MAX_ID: usize = 256;

/// An id that can stand in a URL as it is. Spark's own are letters, digits, `-` and `_`.
pub fn is_plain_id(id: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=MAX_ID).contains(&id.len()) && id.chars().all(good) && !id.starts_with('.')
}

/// The application on a server: its path there, and whether it has ended.
struct Found {
    path: String,
    completed: bool,
}

fn find(client: &Client, base: &SparkUrl, app: &str) -> Result<Found, AskError> {
    let told: App = client.get(base, app)?;
    if told.id != app {
        return Err(AskError::NotSpark("it is of another application".to_owned()));
    }
    let newest = told.attempts.items.iter().max_by_key(|attempt| attempt.start_time.time());
    let completed = newest.is_some_and(|attempt| attempt.completed);
    let path = match newest.and_then(|attempt| attempt.attempt_id.as_deref()) {
        Some(id) if is_plain_id(id) => format!("{app}/{id}"),
        Some(_) => return Err(AskError::NotSpark("an attempt's id is none".to_owned())),
        None => app.to_owned(),
    };
    Ok(Found { path, completed })
}

/// The stages of an application, with jobs, SQL executions, plans, executors and settings where these can be had. `before`:
/// the answer before, of which is taken what does not change any more.
///
/// # Errors
/// An [`AskError`] of the application or its stages. Where only jobs or SQL executions fail, a note says so.
pub fn stages(
    client: &Client,
    base: &SparkUrl,
    app: &str,
    before: Option<&SparkStages>,
) -> Result<SparkStages, AskError> {
    let fetched = WallTime::now();
    let Found { path, completed } = find(client, base, app)?;
    let mut texts = Texts::default();
    let mut notes = Vec::new();
    let told: First<Stage, MAX_STAGES> = client.get(base, &format!("{path}/stages?details=false"))?;
    if told.left_off > 0 {
        notes.push(format!("Of the stages the newest {MAX_STAGES} are joined, {} are not.", told.left_off));
    }
    let mut beside = Beside::new(app, base, fetched);
    let jobs = jobs_of_stages(client, base, &path, &mut texts, &mut beside).unwrap_or_else(|error| {
        notes.push(format!("Jobs are not joined: {error}."));
        HashMap::new()
    });
    let sql = sql_of_jobs(client, base, &path, &mut texts, &mut beside).unwrap_or_else(|error| {
        // A driver without Spark SQL has no such page, nor has Spark before 3.0.
        if error != AskError::NotFound {
            notes.push(format!("SQL executions are not joined: {error}."));
        }
        HashMap::new()
    });
    if let Err(error) = executors(client, base, &path, &mut texts, &mut beside) {
        notes.push(format!("Executors are not read: {error}."));
    }
    notes.extend(settings(client, base, &path, before, &mut beside));
    notes.extend(plans::read(client, base, &path, before, &mut beside));
    // One that comes twice is kept once.
    let mut stages = BTreeMap::new();
    for stage in told.items.into_iter().filter(|stage| stage.status.0 != "SKIPPED") {
        let job_ids = jobs.get(&stage.stage_id).cloned().unwrap_or_default();
        let sql = job_ids.iter().rev().find_map(|job| sql.get(job)).cloned();
        let stage = SparkStage {
            id: stage.stage_id,
            attempt: stage.attempt_id,
            name: texts.keep(&stage.name.0),
            description: stage.description.some().map(|text| texts.keep(text)),
            job_ids: job_ids.into(),
            sql,
            status: texts.keep(&stage.status.0),
            tasks: stage.num_tasks,
            executor_cpu_ns: stage.executor_cpu_time,
            deserialize_cpu_ns: stage.executor_deserialize_cpu_time,
            run_time_ms: stage.executor_run_time,
            submitted: stage.submission_time.time(),
            completed: stage.completion_time.time(),
        };
        stages.insert((stage.id, stage.attempt), stage);
    }
    let stages = stages.into_values().collect();
    let pages = pages(base, &path, completed);
    Ok(SparkStages {
        app: app.to_owned(),
        source: base.to_string(),
        pages,
        fetched,
        completed,
        stages,
        beside: beside.facts,
        notes,
    })
}

/// Where the pages of an application are: a driver's at the root of its server, a history server's below `/history`. A
/// driver's end with it. One that has a port of its own and is taken for a history server sends to its first page.
fn pages(base: &SparkUrl, path: &str, completed: bool) -> String {
    if !completed && rest::is_driver_ui(None, base.port()) {
        return base.to_string();
    }
    format!("{base}/history/{path}")
}

fn jobs_of_stages(
    client: &Client,
    base: &SparkUrl,
    path: &str,
    texts: &mut Texts,
    beside: &mut Beside,
) -> Result<HashMap<u32, Vec<u32>>, AskError> {
    let told: First<Job, MAX_JOBS> = client.get(base, &format!("{path}/jobs"))?;
    let mut jobs: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut newest_last = told.items;
    newest_last.sort_by_key(|job| job.job_id);
    newest_last.dedup_by_key(|job| job.job_id);
    for job in newest_last {
        beside.push(SparkFact {
            name: texts.keep(&job.name.0),
            description: job.description.some().map(|text| texts.keep(text)),
            status: texts.keep(&job.status.0),
            refs: job.stage_ids.items.as_slice().into(),
            count: job.num_tasks,
            begun: job.submission_time.time(),
            ended: job.completion_time.time(),
            ..beside.fact(SparkFactKind::Job, job.job_id.to_string())
        });
        for stage in job.stage_ids.items {
            let of_stage = jobs.entry(stage).or_default();
            if of_stage.len() < MAX_JOBS_OF_STAGE && of_stage.last() != Some(&job.job_id) {
                of_stage.push(job.job_id);
            }
        }
    }
    Ok(jobs)
}

fn sql_of_jobs(
    client: &Client,
    base: &SparkUrl,
    path: &str,
    texts: &mut Texts,
    beside: &mut Beside,
) -> Result<HashMap<u32, SqlRef>, AskError> {
    let mut sql = HashMap::new();
    for page in 0..SQL_PAGES {
        let offset = page * SQL_PAGE;
        let query = format!("details=false&planDescription=false&offset={offset}&length={SQL_PAGE}");
        let told: First<Execution, SQL_PAGE> = client.get(base, &format!("{path}/sql?{query}"))?;
        let last = told.items.len() < SQL_PAGE;
        for execution in told.items {
            let description = texts.keep(&execution.description.0);
            let lists = [execution.running_job_ids, execution.success_job_ids, execution.failed_job_ids];
            let mut jobs: Vec<u32> = lists.into_iter().flat_map(|list| list.items).collect();
            jobs.sort_unstable();
            for job in &jobs {
                sql.insert(*job, SqlRef { id: execution.id, description: description.clone() });
            }
            let begun = execution.submission_time.time();
            let is_running = execution.status.0 == "RUNNING";
            let ended = begun.map(|time| time.plus(Duration::from_millis(execution.duration)));
            beside.push(SparkFact {
                name: description,
                status: texts.keep(&execution.status.0),
                refs: jobs.into(),
                begun,
                ended: ended.filter(|_| !is_running),
                ..beside.fact(SparkFactKind::Sql, execution.id.to_string())
            });
        }
        if last {
            break;
        }
    }
    Ok(sql)
}

/// The tasks of one attempt of a stage.
///
/// # Errors
/// An [`AskError`] of the application or of any page of tasks. Nothing of the pages before is given.
pub fn tasks(
    client: &Client,
    base: &SparkUrl,
    app: &str,
    stage: u32,
    attempt: u32,
) -> Result<SparkTasks, AskError> {
    let fetched = WallTime::now();
    let Found { path, completed } = find(client, base, app)?;
    let mut texts = Texts::default();
    let mut tasks = BTreeMap::new();
    let mut notes = Vec::new();
    for page in 0..TASK_PAGES {
        let query = format!("offset={}&length={TASK_PAGE}&sortBy=ID", page * TASK_PAGE);
        let told: First<Task, TASK_PAGE> =
            client.get(base, &format!("{path}/stages/{stage}/{attempt}/taskList?{query}"))?;
        let last = told.items.len() < TASK_PAGE;
        for task in told.items {
            let metrics = task.task_metrics.unwrap_or_default();
            let task = SparkTask {
                tid: task.task_id,
                index: task.index,
                attempt: task.attempt,
                duration_ms: task.duration.and_then(|ms| u64::try_from(ms).ok()),
                executor_cpu_ns: metrics.executor_cpu_time,
                deserialize_cpu_ns: metrics.executor_deserialize_cpu_time,
                status: texts.keep(&task.status.0),
                speculative: task.speculative,
                executor: texts.keep(&task.executor_id.0),
                host: texts.keep(&task.host.0),
                launched: task.launch_time.time(),
            };
            tasks.insert(task.tid, task);
        }
        if last {
            break;
        }
        if page + 1 == TASK_PAGES {
            notes.push(format!("Of stage {stage} the first {} tasks are joined.", tasks.len()));
        }
    }
    let tasks = tasks.into_values().collect();
    let (app, source) = (app.to_owned(), base.to_string());
    Ok(SparkTasks { app, source, fetched, completed, stage, attempt, tasks, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_where_a_driver_or_a_history_server_has_them() {
        for (base, path, completed, want) in [
            ("http://n1:4041", "app-1", false, "http://n1:4041"),
            ("http://h:18080", "app-1", false, "http://h:18080/history/app-1"),
            ("http://h:18080/x", "application_1/2", true, "http://h:18080/x/history/application_1/2"),
            ("http://h:4040", "app-1", true, "http://h:4040/history/app-1"),
        ] {
            assert_eq!(pages(&base.parse().unwrap(), path, completed), want);
        }
    }
}
