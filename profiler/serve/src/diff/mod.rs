//! `/api/v1/diff`: what one selection has and another has not.
//!
//! In: two selections (each parameter for one side as `left.` and `right.`, else for both), or a stage
//! whose slow tasks are held against its usual ones. Out: a differential flame graph, folded stacks with
//! two counts, or methods by what they add to the difference, of any kind of samples. Sides are made comparable by `scale`, and
//! the answer says how. Limits: the store's for each side, `limit` methods.

mod locks;
mod slow;
pub mod table;
mod times;

use super::ServeState;
use super::answer::{head, headers, json, summary_of};
use super::error::ApiError;
use super::figures::seconds;
use super::flamegraph::{SVG_POLICY, shape, title};
use super::params::{Params, SIDES};
use super::request::Asked;
use super::run::{Rendered, Size};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{
    self as api, Amount, Diff, MethodName, MethodOrder, Scale, SlowBy, SlowSide, Word as _,
};
use emberscope_export::{Aligned, DiffOptions, Format, Shape, cause, render_diff};
use emberscope_model::{Answer, Query, SampleKind, Summary, WallTime};
use emberscope_store::Store;
use serde_json::json;
use slow::{By, Group};
use std::sync::Arc;
use table::{Compared, Side, whole};

/// What makes two sides of a kind comparable, for people.
fn says(scale: Scale, kind: SampleKind) -> String {
    let unit = kind.facts().unit;
    let (one, many) = if kind.is_time() { ("time", "times") } else { (unit, unit) };
    match scale {
        Scale::Equal => "the left side scaled to the right one's total".to_owned(),
        Scale::Absolute => format!("{many} as they are"),
        Scale::Task => format!("{one} for each task"),
    }
}

/// What a request compares, and how.
struct Question {
    /// One request for each side; with `slow`, the stage's on both.
    sides: [Asked; 2],
    slow: bool,
    /// What makes tasks slow; None: what they stand out by.
    by: Option<By>,
    format: Format,
    shape: Shape,
    scale: Scale,
    sort: MethodOrder,
    limit: usize,
    nodes: bool,
}

/// Answers `/api/v1/diff`.
pub async fn diff(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    let params = Params::of_route(raw.as_deref(), &route::DIFF);
    state.ask(params, Size::Tree, read, |store, _, question| answer(store, question)).await
}

fn read(params: &Params) -> Result<Question, ApiError> {
    let slow = params.flag(param::SLOW)?;
    if slow {
        slow::check(params)?;
    } else if params.sided().is_none() {
        let message =
            "Both sides are the same: say what differs, as left.KEY= and right.KEY=, or ask for slow=1.";
        return Err(ApiError { parameter: None, ..ApiError::bad("", message) });
    }
    let by = match params.word(param::BY, SlowBy::Auto)? {
        SlowBy::Auto => None,
        SlowBy::Cpu => Some(By::Cpu),
        SlowBy::Wall => Some(By::Wall),
    };
    if by.is_some() && !slow {
        return Err(ApiError::bad(param::BY, "`by` says what makes tasks slow: ask for them with `slow=1`."));
    }
    let formats: Vec<(&str, Format)> = Format::COMPARED.iter().map(|f| (f.slug(), *f)).collect();
    let scales = Scale::ALL.iter().filter(|scale| slow || **scale != Scale::Task);
    let scales: Vec<(&str, Scale)> = scales.map(|scale| (scale.word(), *scale)).collect();
    Ok(Question {
        sides: asked(params)?,
        slow,
        by,
        format: params.choice(param::FORMAT, &formats, Format::Svg)?,
        shape: shape(params)?,
        scale: params.choice(param::SCALE, &scales, if slow { Scale::Task } else { Scale::Equal })?,
        sort: params.word(param::SORT, MethodOrder::Own)?,
        limit: params.number_of(&route::DIFF, param::LIMIT)?,
        nodes: params.flag(param::NODES)?,
    })
}

/// What is asked of the left and the right side.
///
/// # Errors
/// 400 `bad_parameter`: as [`Asked::read`], with the parameter as it was given.
pub fn asked(params: &Params) -> Result<[Asked; 2], ApiError> {
    let now = WallTime::now();
    let side = |side| Asked::read(&params.side(side), now).map_err(|error| of_side(error, params, side));
    let [left, right] = SIDES;
    Ok([side(left)?, side(right)?])
}

/// Names the parameter as it was given.
fn of_side(error: ApiError, params: &Params, side: &str) -> ApiError {
    let sided = error.parameter.as_ref().map(|name| format!("{side}{name}"));
    match sided.filter(|name| params.has(name)) {
        Some(name) => error.of_parameter(name),
        None => error,
    }
}

fn answer(store: &dyn Store, question: &Question) -> Result<Rendered, ApiError> {
    let [left, right] = &question.sides;
    let (queries, slow) = if question.slow {
        let query = right.query(store)?;
        let slow = slow::groups(store, &query, question.by)?;
        ([slow.median.query(&query), slow.slow.query(&query)], Some((query, slow)))
    } else {
        ([left.query(store)?, right.query(store)?], None)
    };
    let [left, right] = &queries;
    let kind = right.kind;
    let shaped =
        |query| store.merge(query).map(|answer| Answer { tree: question.shape.of(answer.tree), ..answer });
    let (left, right) = (shaped(left)?, shaped(right)?);
    let trees = Aligned::new(&left.tree, &right.tree);
    let (whole_left, whole_right) = (whole(&trees.left), whole(&trees.right));
    let factors = match (question.scale, &slow) {
        (Scale::Task, Some((_, slow))) => [&slow.median, &slow.slow].map(|g| 1.0 / g.count.max(1) as f64),
        (Scale::Equal, _) if whole_left.weight > 0 && whole_right.weight > 0 => {
            [whole_right.weight as f64 / whole_left.weight as f64, 1.0]
        }
        _ => [1.0, 1.0],
    };
    let [left_factor, right_factor] = factors;
    let compared = Compared {
        trees: &trees,
        left: Side { kind, factor: left_factor, whole: whole_left },
        right: Side { kind, factor: right_factor, whole: whole_right },
        scale: question.scale,
    };
    let summaries = [summary_of(&left), summary_of(&right)];
    let mut headers = both_headers(store, &summaries);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(question.format.content_type()));
    if question.format == Format::Json {
        let groups = slow.as_ref().map(|(_, slow)| [&slow.median, &slow.slow]);
        let sides = sides(store, &summaries, &compared, groups);
        let slow = slow.as_ref().map(|(_, slow)| slow.answer.clone());
        return Ok(json(headers, &json!(difference(sides, slow, question, &compared))));
    }
    if question.format == Format::Svg {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SVG_POLICY));
    }
    let options = DiffOptions {
        kind,
        left_factor,
        right_factor,
        title: match &slow {
            Some((query, slow)) => headline(query, &slow.slow, &slow.median),
            None => {
                let [left, right] = queries.each_ref().map(title);
                format!("{right} against {left}")
            }
        },
        subtitle: subtitle(&says(question.scale, kind), &left, &right),
    };
    let body = render_diff(question.format, &trees, &options)?;
    Ok(Rendered { headers, body: body.into() })
}

fn headline(query: &Query, slow: &Group, median: &Group) -> String {
    format!("{}: {} slow tasks against {} usual ones", title(query), slow.count, median.count)
}

fn subtitle(scaled: &str, left: &Answer, right: &Answer) -> String {
    let side = |answer: &Answer| {
        let (samples, error) = (answer.quality.samples, answer.quality.sampling_error());
        let error = error.map_or(String::new(), |e| format!(" (error {:.1} %)", e * 100.0));
        format!("{} to {}, {samples} samples{error}", answer.range.from, answer.range.until)
    };
    let kind = right.quality.kind;
    let more = if kind.is_time() { String::new() } else { format!(" {}", kind.facts().unit) };
    format!("red: more{more}; {scaled}; right: {}; left: {}", side(right), side(left))
}

/// The right side's headers, and the left side's under names of their own.
fn both_headers(store: &dyn Store, [left, right]: &[Summary; 2]) -> HeaderMap {
    let mut out = headers(right, store);
    for (name, value) in headers(left, store) {
        let name = name.as_ref().and_then(|name| name.as_str().strip_prefix("x-emberscope-"));
        let name = name.and_then(|name| HeaderName::try_from(format!("x-emberscope-left-{name}")).ok());
        if let Some(name) = name {
            out.insert(name, value);
        }
    }
    out
}

/// Both sides, and what there is to be asked for.
fn sides(
    store: &dyn Store,
    summaries: &[Summary; 2],
    compared: &Compared<'_>,
    groups: Option<[&Group; 2]>,
) -> (api::Held, [api::Side; 2]) {
    let side = |summary: &Summary, side: table::Side, group: Option<&Group>| {
        let api::Head { basis, note, .. } = head(summary, store);
        let amount = Amount::new(summary.quality.kind, side.whole.count, side.whole.weight);
        let slow = group.map(|group| SlowSide {
            name: group.name.into(),
            tasks: group.listed.clone(),
            task_count: group.count as u64,
            task_cpu_seconds: Some(seconds(group.cpu_ns)),
        });
        api::Side { basis, note, amount, factor: side.factor, slow }
    };
    let [left, right] = summaries;
    let [median, slow] = groups.map_or([None, None], |groups| groups.map(Some));
    let held = head(right, store).held;
    (held, [side(left, compared.left, median), side(right, compared.right, slow)])
}

/// The whole answer: the cause, the methods, and the tree where it was asked for.
fn difference<'a>(
    (held, [left, right]): (api::Held, [api::Side; 2]),
    mut slow: Option<api::Slow>,
    question: &Question,
    compared: &Compared<'a>,
) -> Diff<'a> {
    let mut rows = compared.methods(question.sort);
    let significant = compared.significant(&rows);
    let is_of_cpu = compared.right.kind.holds(SampleKind::Cpu);
    if let Some(slow) = slow.as_mut().filter(|_| is_of_cpu && !significant) {
        // What the ledger tells to the nanosecond is no reason either, if no sample of CPU time bears it out.
        slow.because.retain(|more| more.of != "cpu");
    }
    let cause = cause(compared.trees, compared.left.factor, compared.right.factor);
    let place = cause.and_then(|c| rows.iter().position(|row| row.name() == (c.name, c.module)));
    if let Some(place) = place.filter(|_| question.sort == MethodOrder::Own)
        && let Some(front) = rows.get_mut(..=place)
    {
        front.rotate_right(1);
    }
    let count = rows.len();
    rows.truncate(question.limit);
    Diff {
        held,
        scale: compared.scale.word().into(),
        left,
        right,
        slow,
        total: compared.total(),
        significant: Some(significant),
        cause: cause.map(|c| MethodName { name: c.name.into(), module: c.module.into() }),
        sort: question.sort.word().into(),
        methods: count as u64,
        cut: (count - rows.len()) as u64,
        diff: rows.iter().map(|row| compared.row(row)).collect(),
        nodes: question.nodes.then(|| compared.nodes()),
    }
}
