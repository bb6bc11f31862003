//! `/api/v1/compare`: two runs of a job, and what makes the difference.
//!
//! In: two applications. Out: the whole, queries, stages, operators and methods of both, put side by side by what they are
//! ([`align`]), each with its difference and error ([`estimate`]); and with `fail_over` what grew by more than that. Times
//! are as they are, not scaled. Limits: the store's for each run, `limit` rows of each table.

mod align;
mod estimate;
mod judge;
mod rows;
mod side;
mod unlike;

use super::ServeState;
use super::answer::{head, headers, json};
use super::diff::asked;
use super::diff::table::{Compared as Trees, Side as TreeSide, whole};
use super::error::{ApiError, shown};
use super::params::Params;
use super::request::{Asked, of_time};
use super::run::{Rendered, Size};
use super::spark;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Compare, Compared, ComparedMethod, ComparedSetting, MethodOrder, Scale};
use emberscope_export::{Aligned, SIGNIFICANT};
use emberscope_model::{SampleKind, SparkSource};
use emberscope_store::Store;
use serde_json::json;
use side::Side;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is asked.
struct Question {
    sides: [Asked; 2],
    limit: usize,
    fail_over: Option<f64>,
    joined: bool,
    source: Option<Arc<dyn SparkSource>>,
}

/// Answers `/api/v1/compare`.
pub async fn compare(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let params = Params::of_route(raw.as_deref(), &route::COMPARE);
    let source = state.spark.clone();
    let read = move |params: &Params| read(params, source);
    state.ask(params, Size::Tree, read, |store, _, question| answer(store, question)).await
}

fn read(params: &Params, source: Option<Arc<dyn SparkSource>>) -> Result<Question, ApiError> {
    let sides = asked(params)?;
    for side in &sides {
        of_time(side.kind)?;
    }
    Ok(Question {
        sides,
        limit: params.number_of(&route::COMPARE, param::LIMIT)?,
        fail_over: params.one(param::FAIL_OVER)?.map(part).transpose()?,
        joined: spark::wanted(params)?,
        source,
    })
}

/// `10` or `10%`: a tenth.
fn part(text: &str) -> Result<f64, ApiError> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    number
        .ok()
        .filter(|percent| (0.0..=10_000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| {
            let message = format!("`fail_over={}`: must be a part in percent, as 10 or 10%", shown(text));
            ApiError::bad(param::FAIL_OVER, message)
        })
}

fn answer(store: &dyn Store, question: &Question) -> Result<Rendered, ApiError> {
    let side = |asked: &Asked| {
        let query = asked.query_of_run(store)?;
        let side = Side::read(store, &query, question.source.as_deref(), question.joined)?;
        if side.stages.is_empty() {
            let message = format!(
                "No task of that run was seen between {} and {}.",
                query.range.from, query.range.until
            );
            return Err(ApiError::new(StatusCode::NOT_FOUND, "no_tasks", message));
        }
        Ok(side)
    };
    let [left, right] = &question.sides;
    let [left, right] = [side(left)?, side(right)?];
    let lined_up = rows::LinedUp::new(&left, &right);
    let trees = Aligned::new(&left.samples.tree, &right.samples.tree);
    let methods = Trees {
        trees: &trees,
        left: TreeSide { kind: SampleKind::Cpu, factor: 1.0, whole: whole(&trees.left) },
        right: TreeSide { kind: SampleKind::Cpu, factor: 1.0, whole: whole(&trees.right) },
        scale: Scale::Absolute,
    };
    let (stages, queries, operators) = (lined_up.stages(), lined_up.queries(), lined_up.operators());
    let whole = lined_up.whole();
    let of_methods = methods.methods(MethodOrder::Own);
    let significant = whole.cpu.significant
        || queries.iter().any(|query| query.cpu.significant)
        || stages.iter().any(|stage| stage.cpu.significant)
        || methods.significant(&of_methods);
    let judged = question.fail_over.map(|allowed| judge::judge(allowed, &whole, &queries, &stages));
    let of_methods: Vec<ComparedMethod<'_>> = of_methods.iter().map(|row| method(methods.row(row))).collect();
    let limit = question.limit;
    let head = head(&right.summary, store);
    let content = Compare {
        held: head.held,
        left: left.answer(store),
        right: right.answer(store),
        whole,
        queries: table(queries, limit, |row| (row.cpu.significant, row.cpu.pair.difference)),
        stages: table(stages, limit, |row| (row.cpu.significant, row.cpu.pair.difference)),
        operators: table(operators, limit, |row| (row.cpu.significant, row.cpu.pair.difference)),
        methods: table(of_methods, limit, |row| (row.significant, row.method.own.difference)),
        significant,
        settings: settings(&left, &right),
        judged,
    };
    Ok(json(headers(&right.summary, store), &json!(content)))
}

/// Settings that differ. None where Spark told none of a run: they are not known then.
fn settings(left: &Side, right: &Side) -> Vec<ComparedSetting> {
    let (left, right) = (&left.settings, &right.settings);
    if left.is_empty() || right.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differ = names.into_iter().filter(|name| left.get(*name) != right.get(*name));
    let setting = |name: &String| ComparedSetting {
        name: name.clone(),
        left: left.get(name).cloned(),
        right: right.get(name).cloned(),
    };
    differ.map(setting).collect()
}

fn method(row: emberscope_api::DiffRow<'_>) -> ComparedMethod<'_> {
    let significant = row.own.is_beyond(SIGNIFICANT);
    ComparedMethod { method: row, significant }
}

/// Rows that differ before those within their error, the largest difference first.
fn table<T>(mut rows: Vec<T>, limit: usize, of: impl Fn(&T) -> (bool, Option<f64>)) -> Compared<T> {
    rows.sort_by(|a, b| {
        let size = |row: &T| {
            let (significant, difference) = of(row);
            (significant, difference.unwrap_or_default().abs())
        };
        let ((is_one, one), (is_other, other)) = (size(a), size(b));
        is_other.cmp(&is_one).then(other.total_cmp(&one))
    });
    let count = rows.len();
    rows.truncate(limit);
    Compared { count: count as u64, cut: (count - rows.len()) as u64, rows }
}
