//! `/api/v1/flamegraph`: a selection's merged stacks, as a picture, folded lines, JSON, pprof, Parquet or JFR.
//!
//! In: `format` (absent: svg), `unit`, `annotate`, `lines`, `group`, `fold`, `only`, `max_nodes`, `columns`. Out: what
//! [`emberscope_export`] writes, with the answer's range and quality in headers; JSON also has them inside. The SVG is
//! written to be opened on its own: its script may run, in a sandbox without our origin, so that even a name that got
//! through the escaping could read nothing here.

use super::ServeState;
use super::answer::{head_of_tree, headers, summary_of};
use super::error::ApiError;
use super::params::Params;
use super::run::Rendered;
use super::text::Writer;
use super::wall;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_export::{ExportError, ExportOptions, Format, Shape, Unit, write, write_columns};
use emberscope_model::{LabelKey, MatchOp, Query, SampleKind};
use emberscope_store::{Store, cut};
use std::sync::Arc;

/// inferno's picture has its script, style and event attributes inline.
pub const SVG_POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; sandbox allow-scripts";

/// Answers `/api/v1/flamegraph`.
pub async fn flamegraph(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state.select(raw, &route::FLAMEGRAPH, tree).await
}

fn tree(store: &dyn Store, params: &Params, query: &Query) -> Result<Rendered, ApiError> {
    let formats: Vec<(&str, Format)> = Format::ALL.iter().map(|f| (f.slug(), *f)).collect();
    let columns = params.flag(param::COLUMNS)?;
    let format = params.choice(param::FORMAT, &formats, if columns { Format::Json } else { Format::Svg })?;
    let units = Unit::ALL.map(|unit| (unit.slug(query.kind), unit));
    let options = ExportOptions {
        unit: params.choice(param::UNIT, &units, Unit::usual(query.kind))?,
        annotate: params.flag(param::ANNOTATE)?,
        title: title(query),
    };
    let shape = shape(params)?;
    // The store has a limit of its own.
    let max_nodes = params.number_of(&route::FLAMEGRAPH, param::MAX_NODES)?;
    if columns && format != Format::Json {
        return Err(ApiError::bad(param::COLUMNS, "`columns=1` goes with `format=json` only"));
    }
    let (mut answer, gone) = match query.kind {
        SampleKind::Wall => {
            let mut answer = store.merge(query)?;
            wall::complete(store, query, &mut answer.tree)?;
            cut(answer, max_nodes)
        }
        _ => store.merge_largest(query, max_nodes)?,
    };
    answer.tree = shape.of(answer.tree);
    let summary = summary_of(&answer);
    let mut text = match format {
        Format::Json => Writer::after(&head_of_tree(store, &summary, gone)),
        _ => Writer::default(),
    };
    match columns {
        true => write_columns(&answer, options.unit, &mut text)?,
        false => write(format, &answer, &options, &mut text)?,
    }
    let mut headers = headers(&summary, store);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(HeaderName::from_static("x-emberscope-cut-nodes"), HeaderValue::from(gone));
    if format == Format::Svg {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SVG_POLICY));
    }
    Ok(Rendered { headers, body: text.finish() })
}

/// The shape that is asked for.
pub fn shape(params: &Params) -> Result<Shape, ApiError> {
    let only = Shape::beginnings(params.all(param::ONLY)).map_err(|many| {
        let message = format!("`only`: at most {} beginnings of names, not {many}", Shape::MAX_ONLY);
        ApiError::bad(param::ONLY, message)
    })?;
    Ok(Shape { fold: params.flag(param::FOLD)?, only })
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::TooLarge { .. } | ExportError::Frames(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "answer_too_large", error.to_string())
            }
            ExportError::Write { .. } => Self::internal(error.to_string()),
        }
    }
}

/// What the picture shows, from the plain conditions: `app app-1, stage 3`.
pub fn title(query: &Query) -> String {
    let parts = query.selection.matchers.iter().filter_map(|matcher| match &matcher.op {
        MatchOp::In(values) => Some(format!("{} {}", matcher.key, values.join(" or "))),
        _ => None,
    });
    let mut parts: Vec<String> = parts.collect();
    if !query.selection.matchers.iter().any(|m| m.key == LabelKey::App) {
        parts.insert(0, "whole node".to_owned());
    }
    // A headline, not a list of tasks.
    let title: String = parts.join(", ").chars().take(200).collect();
    format!("{title} ({})", query.kind.slug())
}
