//! `/api/v1/sql`: queries of Spark SQL by what their tasks did, and the operators of one.
//!
//! In: sums of samples by stage, and what Spark says of these stages ([`super::spark`]), now or as it was kept. Out: a row
//! for each execution, and one for tasks of which no query is told; with `execution` that row alone, and one for each
//! operator that its samples are put to ([`emberscope_model::Operator`]). What a Python worker did is its stage's Python
//! operator's where the stage has one alone. Limits: `limit` rows; [`spark::MAX_ASKED`] applications of which Spark is asked.

use super::ServeState;
use super::answer::{head, headers, json, share, share_error, text, whole};
use super::error::ApiError;
use super::spark::{self, KeptWords, Words};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{self as api, Amount, Cost, SparkOrigin, SparkStage, SqlOperator, SqlQuery};
use emberscope_model::{LabelKey, MatchOp, Matcher, Operator, Query, SampleKind, SparkSource, Tree};
use emberscope_store::{Store, prefix_value};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most executions that an error names.
const MAX_NAMED: usize = 20;

/// Samples and their weight.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    weight: u64,
}

impl Sum {
    fn add(&mut self, count: u64, weight: u64) {
        self.count = self.count.saturating_add(count);
        self.weight = self.weight.saturating_add(weight);
    }

    fn cost(self, kind: SampleKind, all: u64) -> Cost {
        Cost {
            amount: Amount::new(kind, self.count, self.weight),
            share: share(self.count, all),
            share_error: share_error(self.count, all),
        }
    }
}

/// An attempt of a stage.
struct Stage {
    app: String,
    app_name: String,
    stage: String,
    sum: Sum,
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
        let kept = KeptWords { store, range: summary.range };
        let (stages, spark) = stages(store, &query, source, joined.then_some(&kept))?;
        let all: u64 = stages.iter().map(|stage| stage.sum.count).fold(0, u64::saturating_add);
        let mut queries = queries(&stages, query.kind, all);
        let mut operators = None;
        if let Some(id) = execution {
            let found = one(&queries, id, &stages)?;
            operators = Some(operators_of(store, &query, found)?);
            queries.retain(|query| query.execution == Some(id));
        }
        let count = queries.len();
        queries.truncate(limit);
        let cut = (count - queries.len()) as u64;
        let content = api::Sql { count: count as u64, cut, queries, operators, spark };
        Ok(json(headers(&summary, store), &Value::Object(whole(head(&summary, store), content))))
    });
    answered.await
}

fn number(text: &str) -> Result<u64, ApiError> {
    let error = || ApiError::bad(param::EXECUTION, "`execution` is the number of an execution of Spark SQL");
    text.parse().map_err(|_| error())
}

/// The stages that tasks were sampled of, with what Spark says of them.
fn stages(
    store: &dyn Store,
    query: &Query,
    source: Option<&dyn SparkSource>,
    kept: Option<&KeptWords<'_>>,
) -> Result<(Vec<Stage>, Option<SparkOrigin>), ApiError> {
    let mut sums: BTreeMap<[String; 3], (String, Sum)> = BTreeMap::new();
    for total in store.totals(query)? {
        let key = [LabelKey::App, LabelKey::Stage, LabelKey::StageAttempt];
        let (name, sum) = sums.entry(key.map(|key| total.labels.get(key).to_owned())).or_default();
        sum.add(total.count, total.weight);
        if name.is_empty() {
            total.labels.get(LabelKey::AppName).clone_into(name);
        }
    }
    let rows = sums
        .keys()
        .map(|[app, stage, attempt]| json!({ "app": app, "stage": stage, "stage_attempt": attempt }));
    let mut told = Map::from_iter([("stages".to_owned(), Value::Array(rows.collect()))]);
    spark::join_stages(&mut told, Words { source, kept }, spark::WAIT);
    let origin = told.remove("spark").and_then(|origin| serde_json::from_value(origin).ok());
    let Some(Value::Array(rows)) = told.remove("stages") else { return Ok((Vec::new(), origin)) };
    let stages = sums.into_iter().zip(rows).map(|(([app, stage, _], (app_name, sum)), mut row)| {
        let spark = row.get_mut("spark").map(Value::take);
        let spark = spark.and_then(|spark| serde_json::from_value(spark).ok());
        Stage { app, app_name, stage, sum, spark }
    });
    Ok((stages.collect(), origin))
}

/// A row for each execution, the largest first.
fn queries(stages: &[Stage], kind: SampleKind, all: u64) -> Vec<SqlQuery> {
    let mut sorted: BTreeMap<(&str, Option<u64>), Vec<&Stage>> = BTreeMap::new();
    for stage in stages {
        let id = stage.spark.as_ref().and_then(|spark| spark.sql_id);
        sorted.entry((&stage.app, id)).or_default().push(stage);
    }
    let row = |((app, execution), stages): ((&str, Option<u64>), Vec<&Stage>)| {
        let mut sum = Sum::default();
        stages.iter().for_each(|stage| sum.add(stage.sum.count, stage.sum.weight));
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
                (0, n) => format!("of none of the {n} stages that were sampled a query is told."),
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

/// The operators of a query, the largest first. `unknown` is always told.
fn operators_of(store: &dyn Store, query: &Query, of: &SqlQuery) -> Result<Vec<SqlOperator>, ApiError> {
    let mut query = Query { group: vec![LabelKey::Stage, LabelKey::Operator], ..query.clone() };
    let is = |key, values| Matcher { key, op: MatchOp::In(values) };
    query.selection.matchers.push(is(LabelKey::App, vec![of.app.clone().unwrap_or_default()]));
    query.selection.matchers.push(is(LabelKey::Stage, of.stages.iter().map(u32::to_string).collect()));
    let mut sums: BTreeMap<String, (Sum, BTreeSet<u32>)> = BTreeMap::new();
    sums.entry(Operator::UNKNOWN.to_owned()).or_default();
    let mut all = 0_u64;
    for (stage, mut operators) in by_stage(&store.merge(&query)?.tree) {
        python_to_its_operator(&mut operators);
        for (operator, sum) in operators {
            let (of_all, stages) = sums.entry(operator).or_default();
            of_all.add(sum.count, sum.weight);
            stages.extend(stage.parse::<u32>().ok());
            all = all.saturating_add(sum.count);
        }
    }
    let row = |(operator, (sum, stages)): (String, (Sum, BTreeSet<u32>))| SqlOperator {
        of: kind_of(&operator).into(),
        operator,
        stages: stages.into_iter().collect(),
        cost: sum.cost(query.kind, all),
    };
    let mut rows: Vec<SqlOperator> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.cost.amount.samples));
    Ok(rows)
}

/// What kind of value of the label an operator is.
fn kind_of(operator: &str) -> &'static str {
    match operator {
        Operator::UNKNOWN => "unknown",
        _ if operator.starts_with('(') => "around",
        _ if operator.starts_with("WholeStageCodegen (") => "codegen",
        _ => "operator",
    }
}

/// The two levels of labels of a tree: stages, and in each of them operators with their sums.
fn by_stage(tree: &Tree) -> BTreeMap<&str, BTreeMap<String, Sum>> {
    let mut stages: BTreeMap<&str, BTreeMap<String, Sum>> = BTreeMap::new();
    for node in tree.nodes.iter().filter(|node| node.parent != 0) {
        let above = tree.nodes.get(node.parent as usize).filter(|above| above.parent == 0);
        let stage = above.and_then(|above| prefix_value(&above.frame, LabelKey::Stage));
        let (Some(stage), Some(operator)) = (stage, prefix_value(&node.frame, LabelKey::Operator)) else {
            continue;
        };
        let sum = stages.entry(stage).or_default().entry(operator.to_owned()).or_default();
        sum.add(node.total_count, node.total_weight);
    }
    stages
}

/// What a stage's Python workers did is its Python operator's, where it has one alone.
fn python_to_its_operator(operators: &mut BTreeMap<String, Sum>) {
    let mut names = operators.keys().filter(|name| Operator::is_python(name)).cloned();
    let (Some(name), None) = (names.next(), names.next()) else { return };
    drop(names);
    if let Some(workers) = operators.remove(Operator::PYTHON) {
        operators.entry(name).or_default().add(workers.count, workers.weight);
    }
}
