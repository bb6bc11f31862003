//! A run, as it is compared: its tasks by stage, what Spark says of these, and where its samples are.
//!
//! In: a query of one application. Out: a [`Side`]. A stage's attempts are one stage. Which query a stage is of, and the
//! names, are Spark's word, now or as it was kept; stages of which nothing is told have their place in the run alone.

use crate::answer::{head, text};
use crate::error::ApiError;
use crate::figures::{Figures, Samples};
use crate::spark::{self, Asking, KeptWords, Words};
use crate::work::{self, Task, UNKNOWN};
use emberscope_api::{ComparedRun, SparkOrigin, SparkStage};
use emberscope_model::{
    Answer, LabelKey, MatchOp, Matcher, Query, SampleKind, SparkPlan, SparkSource, SparkStages, Summary,
    TimeRange,
};
use emberscope_store::{Store, operator_sums};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A stage of a run.
pub struct Stage {
    /// Its number, or `unknown`.
    pub id: String,
    /// What Spark says of it.
    pub told: Option<SparkStage>,
    /// Place of its query.
    pub query: Option<usize>,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// Its samples by operator.
    pub operators: BTreeMap<Cow<'static, str>, Samples>,
}

/// A query of a run.
pub struct RunQuery {
    /// Number of the execution.
    pub execution: u64,
    /// Its description.
    pub description: String,
    /// The operators of its plan, sorted; None: no plan is told.
    pub shape: Option<Vec<String>>,
}

/// A run.
pub struct Side {
    /// Its application's id.
    pub app: String,
    /// Its application's name.
    pub app_name: String,
    /// When it was seen.
    pub seen: Option<TimeRange>,
    /// What its tasks' samples rest on.
    pub summary: Summary,
    /// Its tasks' call tree, by stage.
    pub samples: Answer,
    /// Its stages, in the order of their numbers.
    pub stages: Vec<Stage>,
    /// Its queries, in the order of their numbers.
    pub queries: Vec<RunQuery>,
    /// What all of its threads used.
    pub all: Figures,
    /// Whom the names are from.
    pub spark: SparkOrigin,
    /// Settings that are kept of it.
    pub settings: BTreeMap<String, String>,
}

impl Side {
    /// Reads a run.
    ///
    /// # Errors
    /// What the store fails with.
    pub fn read(
        store: &dyn Store,
        query: &Query,
        source: Option<&dyn SparkSource>,
        joined: bool,
    ) -> Result<Self, ApiError> {
        let all = all(store, query)?;
        let mut of_tasks = Query { group: vec![LabelKey::Stage], kind: SampleKind::Cpu, ..query.clone() };
        let op = MatchOp::NotIn(vec![String::new()]);
        of_tasks.selection.matchers.push(Matcher { key: LabelKey::Stage, op });
        let samples = store.merge(&of_tasks)?;
        let summary = crate::answer::summary_of(&samples);
        let kept = KeptWords::of(store, query.range);
        let words = Words { source: source.filter(|_| joined), kept: joined.then_some(&kept) };
        let mut asking = Asking::<SparkStages>::new(words, spark::WAIT);
        let tasks = work::tasks(store, query)?;
        let app = tasks.first().map(|task| task.label(LabelKey::App).to_owned()).unwrap_or_default();
        let app_name = tasks.iter().map(|task| &*task.app_name).find(|name| !name.is_empty());
        let app_name = app_name.unwrap_or_default().to_owned();
        let mut stages = by_stage(tasks, &app, &mut asking);
        let place: BTreeMap<String, usize> =
            stages.iter().enumerate().map(|(at, stage)| (stage.id.clone(), at)).collect();
        for sum in operator_sums(&samples.tree, LabelKey::Stage) {
            if let Some(stage) = place.get(&sum.value).and_then(|at| stages.get_mut(*at)) {
                let of = stage.operators.entry(sum.operator.name()).or_default();
                of.add(sum.count, sum.weight);
            }
        }
        let queries = queries(&mut stages, &app, &mut asking);
        let settings = crate::runs::settings(&store.spark_facts(&app, query.range)?.facts);
        Ok(Self {
            app,
            app_name,
            seen: all.seen(),
            summary,
            samples,
            stages,
            queries,
            all,
            spark: asking.origin(),
            settings,
        })
    }

    /// For an answer.
    pub fn answer(&self, store: &dyn Store) -> ComparedRun {
        let unnamed = self.stages.iter().filter(|stage| stage.told.is_none() && stage.id != UNKNOWN);
        ComparedRun {
            basis: head(&self.summary, store).basis,
            app: self.app.clone(),
            app_name: text(&self.app_name),
            begun: self.seen.map(|seen| seen.from.into()),
            ended: self.seen.map(|seen| seen.until.into()),
            queries: self.queries.len() as u64,
            stages: self.stages.len() as u64,
            unnamed_stages: unnamed.count() as u64,
            spark: self.spark.clone(),
        }
    }

    /// Its samples by operator, of all stages.
    pub fn operators(&self) -> BTreeMap<Cow<'static, str>, Samples> {
        let mut sums: BTreeMap<Cow<'static, str>, Samples> = BTreeMap::new();
        for (operator, samples) in self.stages.iter().flat_map(|stage| &stage.operators) {
            sums.entry(operator.clone()).or_default().add(samples.count, samples.weight);
        }
        sums
    }
}

/// What all threads of an application used.
fn all(store: &dyn Store, query: &Query) -> Result<Figures, ApiError> {
    let mut all = Figures::default();
    for line in store.ledger(query.range, &query.selection, &[LabelKey::App])? {
        all.add_exact(&line);
    }
    for total in store.totals(query)? {
        all.add_samples(&total);
    }
    Ok(all)
}

/// Tasks come stage by stage and attempt by attempt; attempts are put together.
fn by_stage(tasks: Vec<Task>, app: &str, asking: &mut Asking<'_, SparkStages>) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for task in tasks {
        let id = task.label(LabelKey::Stage);
        if stages.last().is_none_or(|last| last.id != id) {
            let id = id.to_owned();
            stages.push(Stage { id, told: None, query: None, tasks: Vec::new(), operators: BTreeMap::new() });
        }
        let Some(stage) = stages.last_mut() else { continue };
        let attempt = task.label(LabelKey::StageAttempt).parse().ok();
        if stage.told.is_none()
            && let Some(row) = stage.id.parse().ok().zip(attempt)
            && stage
                .tasks
                .last()
                .is_none_or(|last| last.label(LabelKey::StageAttempt) != task.label(LabelKey::StageAttempt))
        {
            stage.told = asking.row(&app.to_owned(), &row);
        }
        stage.tasks.push(task);
    }
    stages
}

/// The queries that stages are of, which get their places.
fn queries(stages: &mut [Stage], app: &str, asking: &mut Asking<'_, SparkStages>) -> Vec<RunQuery> {
    let mut of_stage: BTreeMap<u64, String> = BTreeMap::new();
    for told in stages.iter().filter_map(|stage| stage.told.as_ref()) {
        if let Some(id) = told.sql_id {
            of_stage.entry(id).or_insert_with(|| told.sql_description.clone().unwrap_or_default());
        }
    }
    let place: BTreeMap<u64, usize> = of_stage.keys().enumerate().map(|(at, id)| (*id, at)).collect();
    for stage in stages {
        let id = stage.told.as_ref().and_then(|told| told.sql_id);
        stage.query = id.and_then(|id| place.get(&id).copied());
    }
    let query = |(execution, description)| {
        let plan = asking.plan(app, execution);
        let plan = plan.as_ref().and_then(SparkPlan::of_fact);
        let shape = plan.map(|(_, plan)| {
            let mut names: Vec<String> = plan.nodes().iter().map(|node| (*node.name).to_owned()).collect();
            names.sort_unstable();
            names
        });
        RunQuery { execution, description, shape }
    };
    of_stage.into_iter().map(query).collect()
}
