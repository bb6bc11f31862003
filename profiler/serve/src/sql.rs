//! `/api/v1/sql`: queries of Spark SQL by what their tasks did, and the operators of one.
//!
//! In: sums of samples by stage, and what Spark says of these stages ([`super::spark`]), now or as it was kept. Out: a row
//! for each execution, and one for tasks of which no query is told; with `execution` that row alone, its operators and its
//! plan ([`operators`]). Limits: `limit` rows; [`spark::MAX_ASKED`] applications of which Spark is asked.

use super::ServeState;
use super::answer::{head, headers, json, text, whole};
use super::error::ApiError;
use super::figures::{self, Samples};
use super::spark::{self, Asking, KeptWords, Words};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{self as api, SparkStage, SqlQuery};
use emberscope_model::{LabelKey, LabelTotal, MatchOp, Matcher, SampleKind, SparkStages};
use exact::{ByStage, Used, by_stage};
use operators::PlanTold;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod exact;
mod operators;

/// Most executions that an error names.
const MAX_NAMED: usize = 20;

/// An attempt of a stage.
struct Stage {
    app: String,
    app_name: String,
    stage: String,
    sum: Samples,
    used: Used,
    spark: Option<SparkStage>,
}

/// `/api/v1/sql`
pub async fn sql(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let source = state.spark.clone();
    let answered = state.select(raw, &route::SQL, move |store, params, query| {
        let joined = spark::wanted(params)?;
        let source = source.as_deref().filter(|_| joined);
        let limit = params.number_of(&route::SQL, param::LIMIT)?;
        let execution = params.one(param::EXECUTION)?.map(number).transpose()?;
        let mut query = query.clone();
        let in_stages = Matcher { key: LabelKey::Stage, op: MatchOp::NotIn(vec![String::new()]) };
        query.selection.matchers.push(in_stages);
        let summary = store.summary(&query)?;
        let totals = store.totals(&query)?;
        let seen = totals.iter().map(|total| (total.labels.get(LabelKey::App), total.seen));
        let kept = KeptWords::of(store, summary.range).seen(seen);
        let words = Words { source, kept: joined.then_some(&kept) };
        let mut asking = Asking::<SparkStages>::new(words, spark::WAIT);
        let stages = stages(&totals, by_stage(store, &query)?, &mut asking);
        let all: u64 = stages.iter().map(|stage| stage.sum.count).fold(0, u64::saturating_add);
        let mut queries = queries(&stages, query.kind, all);
        let (mut operators, mut plan) = (None, None);
        if let Some(id) = execution {
            let found = one(&queries, id, &stages)?;
            let told = asking.plan(found.app.as_deref().unwrap_or_default(), id);
            let costs = operators::costs(store, &query, found, PlanTold::of(told.as_ref()))?;
            (operators, plan) = (Some(costs.0), Some(costs.1));
            queries.retain(|query| query.execution == Some(id));
        }
        let count = queries.len();
        queries.truncate(limit);
        let cut = (count - queries.len()) as u64;
        let content =
            api::Sql { count: count as u64, cut, queries, operators, plan, spark: Some(asking.origin()) };
        Ok(json(headers(&summary, store), &Value::Object(whole(head(&summary, store), content))))
    });
    answered.await
}

fn number(text: &str) -> Result<u64, ApiError> {
    let error = || ApiError::bad(param::EXECUTION, "`execution` is the number of an execution of Spark SQL");
    text.parse().map_err(|_| error())
}

/// The stages that tasks were sampled of, with what they used and what Spark says of them.
fn stages(totals: &[LabelTotal], mut used: ByStage, asking: &mut Asking<'_, SparkStages>) -> Vec<Stage> {
    let mut sums: BTreeMap<[String; 3], (String, Samples)> = BTreeMap::new();
    for total in totals {
        let key = [LabelKey::App, LabelKey::Stage, LabelKey::StageAttempt];
        let (name, sum) = sums.entry(key.map(|key| total.labels.get(key).to_owned())).or_default();
        sum.add(total.count, total.weight);
        if name.is_empty() {
            total.labels.get(LabelKey::AppName).clone_into(name);
        }
    }
    let stage = |(key, (app_name, sum)): ([String; 3], (String, Samples))| {
        let used = used.remove(&key).unwrap_or_default();
        let [app, stage, attempt] = key;
        // One without a number is none that Spark knows.
        let row = stage.parse().ok().zip(attempt.parse().ok()).filter(|_| !app.is_empty());
        let spark = row.and_then(|row| asking.row(&app, &row));
        Stage { app, app_name, stage, sum, used, spark }
    };
    // Of more applications than are asked about those that began last are told: ids have the time.
    let mut stages: Vec<Stage> = sums.into_iter().rev().map(stage).collect();
    stages.reverse();
    stages
}

/// A row for each execution, the largest first.
fn queries(stages: &[Stage], kind: SampleKind, all: u64) -> Vec<SqlQuery> {
    let mut sorted: BTreeMap<(&str, Option<u64>), Vec<&Stage>> = BTreeMap::new();
    for stage in stages {
        let id = stage.spark.as_ref().and_then(|spark| spark.sql_id);
        sorted.entry((&stage.app, id)).or_default().push(stage);
    }
    let row = |((app, execution), stages): ((&str, Option<u64>), Vec<&Stage>)| {
        let mut sum = Samples::default();
        let mut used = Used::default();
        for stage in &stages {
            sum.add(stage.sum.count, stage.sum.weight);
            used.add(&stage.used);
        }
        let told = || stages.iter().filter_map(|stage| stage.spark.as_ref());
        let of_query = execution.is_some();
        let ended = told().map(|spark| spark.completed.clone()).collect::<Option<Vec<_>>>();
        SqlQuery {
            app: text(app),
            app_name: stages.iter().find_map(|stage| text(&stage.app_name)),
            execution,
            description: told().find_map(|spark| spark.sql_description.clone()),
            jobs: BTreeSet::from_iter(told().flat_map(|spark| spark.job_ids.iter().copied()))
                .into_iter()
                .collect(),
            stages: ids(&stages),
            begun: told()
                .filter_map(|spark| spark.submitted.clone())
                .min_by(|a, b| a.0.cmp(&b.0))
                .filter(|_| of_query),
            ended: ended.and_then(|all| all.into_iter().max_by(|a, b| a.0.cmp(&b.0))).filter(|_| of_query),
            cost: sum.cost(kind, all),
            exact: used.figures.exact.as_ref().map(figures::exact),
            waited: used.waits.answer(used.figures.exact.as_ref()),
        }
    };
    let mut rows: Vec<SqlQuery> = sorted.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.cost.amount.samples));
    rows
}

/// Ids of the stages that have one, ascending.
fn ids(stages: &[&Stage]) -> Vec<u32> {
    let ids: BTreeSet<u32> = stages.iter().filter_map(|stage| stage.stage.parse().ok()).collect();
    ids.into_iter().collect()
}

/// The execution with this number.
///
/// # Errors
/// 404 `unknown_execution`: no application has it. 409 `ambiguous_execution`: several have.
fn one<'q>(queries: &'q [SqlQuery], id: u64, stages: &[Stage]) -> Result<&'q SqlQuery, ApiError> {
    let mut found = queries.iter().filter(|query| query.execution == Some(id));
    let error = |status, code, message: String| {
        let known = queries.iter().filter_map(|query| query.execution);
        let known: Vec<String> = known.take(MAX_NAMED).map(|id| id.to_string()).collect();
        ApiError::new(status, code, message).of_parameter(param::EXECUTION).with_choices(known)
    };
    match (found.next(), found.next()) {
        (Some(query), None) => Ok(query),
        (None, _) => {
            let known: BTreeSet<u64> = queries.iter().filter_map(|query| query.execution).collect();
            let names: Vec<String> = known.iter().take(MAX_NAMED).map(u64::to_string).collect();
            let there = match (names.len(), stages.len()) {
                (0, 0) => "no task was sampled.".to_owned(),
                (0, n) => format!("none of the {n} stages that were sampled has a known query."),
                _ => format!("there are: {}.", names.join(", ")),
            };
            let message = format!("No task of the execution {id} was sampled; {there}");
            Err(error(StatusCode::NOT_FOUND, "unknown_execution", message))
        }
        (Some(_), Some(_)) => {
            let message = format!("Several applications have an execution {id}: name one, with `app=`.");
            Err(error(StatusCode::CONFLICT, "ambiguous_execution", message))
        }
    }
}
