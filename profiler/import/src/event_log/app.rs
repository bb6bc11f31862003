//! The state of an application, as its events tell it: what Spark's `AppStatusListener` and `SQLAppStatusListener` (3.5)
//! make of the same events, which is what its REST API answers with.
//!
//! In: events in the order in which they were written. Out: facts. Limits: [`Bounds::each`] stages, jobs and executions,
//! [`Bounds::operators`] of all plans; what comes after them is counted, and a remark says so.

use super::events::{
    AppEnd, AppStart, BlockManager, Environment, Executor, JobEnd, JobStart, SqlEnd, SqlStart, Stage, TaskEnd,
};
use super::{Bounds, EventLogFacts};
use emberscope_model::{SparkFact, SparkFactKind, SparkPlan, WallTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Jobs kept of one stage.
const MAX_JOBS_OF_STAGE: usize = 16;
/// Ids that a fact refers to.
const MAX_REFS: usize = 1000;
/// Longest id of an application.
const MAX_ID: usize = 256;
/// 1980 and 2100, in milliseconds: Spark writes no time before or after.
const TIMES: std::ops::Range<u64> = 315_532_800_000..4_102_444_800_000;

/// What is known of an application.
#[derive(Default)]
pub struct App {
    bounds: Bounds,
    id: Arc<str>,
    name: String,
    ended: bool,
    /// The first and the last time that was told, milliseconds.
    span: Option<(u64, u64)>,
    stages: BTreeMap<(u32, u32), SparkFact>,
    jobs: BTreeMap<u32, SparkFact>,
    sql: BTreeMap<u64, Sql>,
    executors: BTreeMap<String, SparkFact>,
    settings: BTreeMap<Arc<str>, SparkFact>,
    operators: usize,
    left_out: u64,
}

/// An SQL execution.
struct Sql {
    fact: SparkFact,
    has_failed: bool,
    plan: Result<SparkPlan, String>,
}

impl App {
    /// Nothing is known.
    pub fn within(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Whether the application's end was told.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// A time in milliseconds; None: Spark has none, or it makes no sense.
    fn time(&mut self, ms: u64) -> Option<WallTime> {
        let ms = Some(ms).filter(|ms| TIMES.contains(ms))?;
        let (first, last) = self.span.unwrap_or((ms, ms));
        self.span = Some((first.min(ms), last.max(ms)));
        Some(WallTime::from_millis(ms))
    }

    /// Whether one more fits, where there are so many.
    fn fits(&mut self, known: bool, count: usize) -> bool {
        let fits = known || count < self.bounds.each;
        self.left_out += u64::from(!fits);
        fits
    }

    pub fn start(&mut self, event: AppStart) {
        self.time(event.at);
        // A later one is of no other application: a rolling log begins each file with the same.
        if self.id.is_empty() && event.id.len() <= MAX_ID && !event.id.contains(char::is_control) {
            (self.id, self.name) = (event.id.into(), event.name.0);
        }
    }

    pub fn end(&mut self, event: &AppEnd) {
        self.time(event.at);
        self.ended = true;
    }

    pub fn stage(&mut self, event: Stage, is_end: bool) {
        let (key, info) = ((event.info.id, event.info.attempt), event.info);
        let (begun, ended) = (self.time(info.submitted), self.time(info.completed));
        if !self.fits(self.stages.contains_key(&key), self.stages.len()) {
            return;
        }
        let empty =
            || SparkFact { attempt: key.1, ..SparkFact::new(SparkFactKind::Stage, key.0.to_string()) };
        let stage = self.stages.entry(key).or_insert_with(empty);
        (stage.name, stage.count) = (info.name.0.into(), info.tasks);
        if let Some(properties) = event.properties {
            stage.description = properties.description.some().map(Arc::from);
        }
        stage.begun = begun.or(stage.begun);
        stage.ended = ended.or(stage.ended);
        let status = match (is_end, info.failure.some(), stage.begun) {
            (false, ..) => "ACTIVE",
            (true, Some(_), _) => "FAILED",
            (true, None, Some(_)) => "COMPLETE",
            (true, None, None) => "SKIPPED",
        };
        stage.status = status.into();
    }

    pub fn task(&mut self, event: &TaskEnd) {
        let stage = self.stages.get_mut(&(event.stage, event.attempt));
        if let (Some(stage), Some(metrics)) = (stage, &event.metrics) {
            stage.executor_cpu_ns = stage.executor_cpu_ns.saturating_add(metrics.cpu);
            stage.deserialize_cpu_ns = stage.deserialize_cpu_ns.saturating_add(metrics.deserialize);
            stage.run_time_ms = stage.run_time_ms.saturating_add(metrics.run);
        }
    }

    pub fn job(&mut self, event: JobStart) {
        let begun = self.time(event.at);
        if !self.fits(self.jobs.contains_key(&event.id), self.jobs.len()) {
            return;
        }
        let last = event.infos.iter().max_by_key(|info| info.id);
        let name = last.map_or("(Unknown Stage Name)", |info| &info.name.0);
        // Stages that are done already are of an earlier job.
        let tasks = event.infos.iter().filter(|info| info.completed == 0).map(|info| info.tasks);
        let properties = event.properties.unwrap_or_default();
        let job = SparkFact {
            name: name.into(),
            description: properties.description.some().map(Arc::from),
            status: "RUNNING".into(),
            refs: event.stages.into_iter().take(MAX_REFS).collect(),
            count: tasks.fold(0, u64::saturating_add),
            begun,
            ..SparkFact::new(SparkFactKind::Job, event.id.to_string())
        };
        self.jobs.insert(event.id, job);
        if let Some(sql) = properties.sql.0.parse().ok().and_then(|id: u64| self.sql.get_mut(&id))
            && sql.fact.refs.len() < MAX_REFS
            && !sql.fact.refs.contains(&event.id)
        {
            let mut jobs = std::mem::take(&mut sql.fact.refs).into_vec();
            jobs.push(event.id);
            sql.fact.refs = jobs.into();
        }
    }

    pub fn job_end(&mut self, event: &JobEnd) {
        let ended = self.time(event.at);
        if let Some(job) = self.jobs.get_mut(&event.id) {
            job.ended = ended;
            job.status = if event.result.result.0 == "JobSucceeded" { "SUCCEEDED" } else { "FAILED" }.into();
        }
    }

    pub fn sql(&mut self, event: SqlStart, plan: Result<SparkPlan, String>) {
        let begun = self.time(event.time);
        if !self.fits(self.sql.contains_key(&event.execution_id), self.sql.len()) {
            return;
        }
        let name = event.description.0.into();
        let fact =
            SparkFact { name, begun, ..SparkFact::new(SparkFactKind::Sql, event.execution_id.to_string()) };
        let empty = Err("it was not told".to_owned());
        self.sql.insert(event.execution_id, Sql { fact, has_failed: false, plan: empty });
        self.sql_plan(event.execution_id, plan);
    }

    pub fn sql_plan(&mut self, id: u64, plan: Result<SparkPlan, String>) {
        let size = |plan: &Result<SparkPlan, String>| plan.as_ref().map_or(0, |plan| plan.nodes().len());
        let Some(sql) = self.sql.get_mut(&id) else { return };
        let others = self.operators - size(&sql.plan);
        let fits = others + size(&plan) <= self.bounds.operators;
        sql.plan = if fits { plan } else { Err("the log has more plans than are kept".to_owned()) };
        self.operators = others + size(&sql.plan);
    }

    pub fn sql_end(&mut self, event: &SqlEnd) {
        let ended = self.time(event.time);
        if let Some(sql) = self.sql.get_mut(&event.execution_id) {
            sql.fact.ended = ended;
            sql.has_failed = event.error_message.as_ref().is_some_and(|says| says.some().is_some());
        }
    }

    /// An executor that came or went; None: there are too many.
    fn executor_of(&mut self, id: String, begun: Option<WallTime>) -> Option<&mut SparkFact> {
        if !self.fits(self.executors.contains_key(&id), self.executors.len()) {
            return None;
        }
        let empty =
            || SparkFact { status: "ACTIVE".into(), begun, ..SparkFact::new(SparkFactKind::Executor, &*id) };
        Some(self.executors.entry(id.clone()).or_insert_with(empty))
    }

    pub fn executor(&mut self, event: Executor, is_end: bool) {
        let at = self.time(event.at);
        let Some(executor) = self.executor_of(event.id.0, at) else { return };
        if is_end {
            (executor.status, executor.ended) = ("REMOVED".into(), at);
            executor.description = event.reason.some().map(Arc::from);
        } else if let Some(info) = event.info {
            executor.count = info.cores;
        }
    }

    /// Settings: of a closed list, so they have no limit of their own.
    pub fn environment(&mut self, event: Environment) {
        self.settings.extend(event.settings.0.into_iter().map(|setting| (setting.id.clone(), setting)));
    }

    pub fn block_manager(&mut self, event: BlockManager) {
        let at = self.time(event.at);
        if let Some(executor) = self.executor_of(event.id.executor.0, at) {
            executor.name = format!("{}:{}", event.id.host.0, event.id.port).into();
        }
    }

    /// All that is known, as of the last event. None: no event said which application it is.
    pub fn finish(self, log: &str, mut remarks: Vec<String>) -> Option<EventLogFacts> {
        let Self { id, name, span, mut stages, jobs, sql, executors, settings, left_out, ended, .. } = self;
        let (first, last) = span.filter(|_| !id.is_empty())?;
        for (number, job) in &jobs {
            for stage in &job.refs {
                for (_, stage) in stages.range_mut((*stage, 0)..=(*stage, u32::MAX)) {
                    if stage.refs.len() < MAX_JOBS_OF_STAGE && stage.refs.last() != Some(number) {
                        stage.refs = stage.refs.iter().copied().chain([*number]).collect();
                    }
                }
            }
        }
        let mut facts: Vec<SparkFact> =
            stages.into_values().filter(|stage| &*stage.status != "SKIPPED").collect();
        for Sql { mut fact, has_failed, plan } in sql.into_values() {
            fact.refs.sort_unstable();
            let is_failed = |job: &u32| jobs.get(job).is_some_and(|job| &*job.status == "FAILED");
            let status = match fact.ended {
                None => "RUNNING",
                Some(_) if has_failed || fact.refs.iter().any(is_failed) => "FAILED",
                Some(_) => "COMPLETED",
            };
            fact.status = status.into();
            if !fact.refs.is_empty() {
                facts.push(SparkPlan::fact(plan.as_ref().map_err(Clone::clone), &fact));
            }
            facts.push(fact);
        }
        facts.extend(jobs.into_values().chain(executors.into_values()).chain(settings.into_values()));
        let told = facts.len();
        let (source, fetched): (Arc<str>, _) =
            (format!("event log {log}").into(), WallTime::from_millis(last));
        for fact in &mut facts {
            (fact.app, fact.source, fact.fetched) = (id.clone(), source.clone(), fetched);
        }
        facts.retain(SparkFact::is_bounded);
        let left_out = left_out + (told - facts.len()) as u64;
        if left_out > 0 {
            remarks.push(format!("{left_out} of what it tells are over the limits, and are not kept."));
        }
        let first = WallTime::from_millis(first);
        let (app, has_ended) = (id.to_string(), ended);
        Some(EventLogFacts { app, name, facts, first, last: fetched, has_ended, remarks })
    }
}
