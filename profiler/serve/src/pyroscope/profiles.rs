//! The calls about the samples themselves: merged stacks, in Pyroscope's forms, and sums over time.
//!
//! In: a profile type, a selector and a time range. Out: a flame graph, Pyroscope's tree form, a pprof
//! profile or series. What the store cannot know (spans, traces, single profiles) finds nothing; what it
//! could but does not (DOT, Go's PGO form, call sites of series, answers later) is `unimplemented`.

use super::asked::{Asked, call_site, max_nodes};
use super::connect::Sampled;
use super::error::CallError;
use super::response::{
    LabelPair, Point, PprofProfile, SelectMergeSpanProfileResponse, SelectMergeStacktracesResponse,
    SelectSeriesResponse, Series,
};
use super::select::{
    SelectMergeProfileRequest, SelectMergeSpanProfileRequest, SelectMergeStacktracesRequest,
    SelectSeriesRequest,
};
use super::types::Type;
use emberscope_export::pprof::Profile;
use emberscope_model::{Answer, LabelKey};
use emberscope_store::{LabelledSeries, Store};
use std::time::Duration;

/// Most steps of a time series: Prometheus' limit.
pub const MAX_STEPS: u64 = 11_000;

/// querier.v1.ProfileFormat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    FlameGraph,
    Tree,
    Pprof,
}

/// Answers `SelectMergeStacktraces`.
///
/// # Errors
/// `invalid_argument`: as [`Asked::new`] and [`max_nodes`], or there is no such format. `unimplemented`: an answer
/// later, DOT or Go's PGO form. `resource_exhausted`: as [`Asked::pprof`]. What the store fails with.
pub fn stacktraces(
    store: &dyn Store,
    request: SelectMergeStacktracesRequest,
) -> Result<Sampled<SelectMergeStacktracesResponse>, CallError> {
    if request.r#async.is_some_and(|a| a.r#type != 0 || !a.request_id.is_empty()) {
        return Err(CallError::unimplemented("asynchronous queries are not offered: ask without `async`"));
    }
    let site = call_site(request.stack_trace_selector)?;
    let nodes = max_nodes(request.max_nodes)?;
    let nowhere = !(request.profile_id_selector.is_empty()
        && request.trace_id_selector.is_empty()
        && request.span_selector.is_empty());
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let format = format(request.format)?;
    let found = if nowhere { None } else { asked.merge(store, &site)? };
    let samples = samples(&found);
    let mut response = SelectMergeStacktracesResponse::default();
    match format {
        Format::FlameGraph => response.flamegraph = asked.flame_graph(found, nodes),
        Format::Tree => response.tree = asked.tree(found, nodes),
        Format::Pprof => response.pprof = Some(PprofProfile { profile: Some(asked.pprof(found)?) }),
    }
    Ok(Sampled { message: response, samples })
}

/// Answers `SelectMergeSpanProfile`: no sample belongs to a span; without spans it is as stack traces.
///
/// # Errors
/// As [`stacktraces`]; pprof is `unimplemented` too.
pub fn spans(
    store: &dyn Store,
    request: SelectMergeSpanProfileRequest,
) -> Result<Sampled<SelectMergeSpanProfileResponse>, CallError> {
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let nodes = max_nodes(request.max_nodes)?;
    let format = format(request.format)?;
    let found = if request.span_selector.is_empty() { asked.merge(store, &[])? } else { None };
    let samples = samples(&found);
    let mut message = SelectMergeSpanProfileResponse::default();
    match format {
        Format::FlameGraph => message.flamegraph = asked.flame_graph(found, nodes),
        Format::Tree => message.tree = asked.tree(found, nodes),
        Format::Pprof => {
            return Err(CallError::unimplemented("spans have no pprof form: ask for FLAMEGRAPH or TREE"));
        }
    }
    Ok(Sampled { message, samples })
}

/// Answers `SelectMergeProfile`. The profile is whole: `max_nodes` is checked and not needed.
///
/// # Errors
/// As [`stacktraces`].
pub fn profile(store: &dyn Store, request: SelectMergeProfileRequest) -> Result<Sampled<Profile>, CallError> {
    let site = call_site(request.stack_trace_selector)?;
    max_nodes(request.max_nodes)?;
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let nowhere = !(request.profile_id_selector.is_empty() && request.trace_id_selector.is_empty());
    let found = if nowhere { None } else { asked.merge(store, &site)? };
    let samples = samples(&found);
    Ok(Sampled { message: asked.pprof(found)?, samples })
}

/// What the answer rests on; nothing found is no samples.
fn samples(found: &Option<Answer>) -> Option<u64> {
    Some(found.as_ref().map_or(0, |answer| answer.quality.samples))
}

/// Answers `SelectSeries`: a sum for each step that has samples. Steps begin at multiples of `step`; a step that began
/// before `start` holds, and is dated, from `start`.
///
/// # Errors
/// `invalid_argument`: as [`Asked::new`], or the step is none or gives more than [`MAX_STEPS`] steps. `unimplemented`:
/// a call site, or another aggregation than SUM. What the store fails with.
pub fn series(
    store: &dyn Store,
    request: SelectSeriesRequest,
) -> Result<Sampled<SelectSeriesResponse>, CallError> {
    if !call_site(request.stack_trace_selector)?.is_empty() {
        return Err(CallError::unimplemented("a series of a call site is not offered: ask for its profile"));
    }
    if request.aggregation.is_some_and(|a| a != 0) {
        return Err(CallError::unimplemented("only the aggregation SUM is offered"));
    }
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let step = Duration::try_from_secs_f64(request.step)
        .ok()
        .filter(|step| *step >= Duration::from_millis(1))
        .ok_or_else(|| {
            CallError::invalid(format!("step ({}) must be seconds, at least 0.001", request.step))
        })?;
    let steps = asked.range.duration().as_nanos() / step.as_nanos();
    if steps > u128::from(MAX_STEPS) {
        return Err(CallError::invalid(format!("more than {MAX_STEPS} steps: take a longer step")));
    }
    let (Some(of), Some(query)) = (asked.of, &asked.query) else {
        return Ok(Sampled { message: SelectSeriesResponse::default(), samples: Some(0) });
    };
    let by: Vec<LabelKey> = request.group_by.iter().filter_map(|name| LabelKey::from_name(name)).collect();
    let found = store.series(query, step, &by)?;
    let samples = found.iter().flat_map(|(_, points)| points).map(|p| p.count).fold(0, u64::saturating_add);
    let mut series: Vec<Series> = found
        .into_iter()
        .map(|one| labelled(of, &request.group_by, one, request.start))
        .filter(|one| !one.points.is_empty())
        .collect();
    series.sort_by(|a, b| a.labels.cmp(&b.labels));
    if let Some(limit) = request.limit.and_then(|l| usize::try_from(l).ok()).filter(|l| *l > 0) {
        let sum = |s: &Series| s.points.iter().map(|p| p.value).sum::<f64>();
        series.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        series.truncate(limit);
    }
    Ok(Sampled { message: SelectSeriesResponse { series }, samples: Some(samples) })
}

fn labelled(of: &Type, group_by: &[String], (labels, points): LabelledSeries, start: i64) -> Series {
    let value = |name: &str| match LabelKey::from_name(name) {
        Some(key) => labels.iter().find(|(k, _)| *k == key).map(|(_, v)| v.to_string()),
        None => of.label(name),
    };
    let pair = |name: &String| {
        let value = value(name).filter(|v| !v.is_empty())?;
        Some(LabelPair { name: name.clone(), value })
    };
    let mut labels: Vec<LabelPair> = group_by.iter().filter_map(pair).collect();
    labels.sort();
    labels.dedup();
    let point = |p: &emberscope_model::SeriesPoint| Point {
        value: of.unit.of(p.count, p.weight) as f64,
        timestamp: i64::try_from(p.time_ms).unwrap_or(i64::MAX).max(start),
    };
    Series { labels, points: points.iter().map(point).filter(|p| p.value > 0.0).collect() }
}

fn format(number: i32) -> Result<Format, CallError> {
    match number {
        0 | 1 => Ok(Format::FlameGraph),
        2 => Ok(Format::Tree),
        3 => Err(CallError::unimplemented("DOT is not offered: ask for PPROF and let pprof draw it")),
        4 => Ok(Format::Pprof),
        other => Err(CallError::invalid(format!("there is no profile format {other}"))),
    }
}
