//! The calls about the samples themselves: merged stacks, in Pyroscope's forms, and sums over time.
//!
//! In: a profile type, a selector and a time range. Out: a flame graph, a pprof profile or series.
//! What the store cannot know (spans, traces, single profiles) finds nothing; what it could but does
//! not (call sites, DOT, Pyroscope's tree form, answers later) is `unimplemented`.

use super::connect::Sampled;
use super::error::CallError;
use super::levels::flame_graph;
use super::matching::{matched, range};
use super::pprof;
use super::profile::Profile;
use super::response::{
    FlameGraph, LabelPair, Point, PprofProfile, SelectMergeSpanProfileResponse,
    SelectMergeStacktracesResponse, SelectSeriesResponse, Series,
};
use super::select::{
    SelectMergeProfileRequest, SelectMergeSpanProfileRequest, SelectMergeStacktracesRequest,
    SelectSeriesRequest, StackTraceSelector,
};
use super::types::Type;
use crate::model::{Answer, Detail, LabelKey, Query, TimeRange};
use crate::store::{LabelledSeries, Store};
use std::time::Duration;

/// Bars of a flame graph when the request does not say, as Pyroscope's default.
pub const DEFAULT_NODES: usize = 8192;
/// Most bars that may be asked for.
pub const MAX_NODES: usize = 1 << 20;
/// Most steps of a time series: Prometheus' limit.
pub const MAX_STEPS: u64 = 11_000;

const UNSPECIFIED: i32 = 0;
const FLAMEGRAPH: i32 = 1;
const TREE: i32 = 2;
const DOT: i32 = 3;
const PPROF: i32 = 4;

/// `SelectMergeStacktraces`.
pub fn stacktraces(
    store: &dyn Store,
    request: SelectMergeStacktracesRequest,
) -> Result<Sampled<SelectMergeStacktracesResponse>, CallError> {
    if request.r#async.is_some_and(|a| a.r#type != 0 || !a.request_id.is_empty()) {
        return Err(CallError::unimplemented("asynchronous queries are not offered: ask without `async`"));
    }
    refuse_call_site(request.stack_trace_selector.as_ref())?;
    let nodes = max_nodes(request.max_nodes)?;
    let nowhere = !(request.profile_id_selector.is_empty()
        && request.trace_id_selector.is_empty()
        && request.span_selector.is_empty());
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let pprof = is_pprof(request.format)?;
    let found = if nowhere { None } else { asked.merge(store)? };
    let samples = samples(&found);
    let mut response = SelectMergeStacktracesResponse::default();
    if pprof {
        response.pprof = Some(PprofProfile { profile: Some(asked.pprof(found)?) });
    } else {
        response.flamegraph = asked.flame_graph(found, nodes);
    }
    Ok(Sampled { message: response, samples })
}

/// `SelectMergeSpanProfile`: no sample belongs to a span; without spans it is as stack traces.
pub fn spans(
    store: &dyn Store,
    request: SelectMergeSpanProfileRequest,
) -> Result<Sampled<SelectMergeSpanProfileResponse>, CallError> {
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let nodes = max_nodes(request.max_nodes)?;
    if is_pprof(request.format)? {
        return Err(CallError::unimplemented("spans are answered as a flame graph only"));
    }
    let found = if request.span_selector.is_empty() { asked.merge(store)? } else { None };
    let samples = samples(&found);
    let message = SelectMergeSpanProfileResponse { flamegraph: asked.flame_graph(found, nodes) };
    Ok(Sampled { message, samples })
}

/// `SelectMergeProfile`. The profile is whole: `max_nodes` is checked and not needed.
pub fn profile(store: &dyn Store, request: SelectMergeProfileRequest) -> Result<Sampled<Profile>, CallError> {
    refuse_call_site(request.stack_trace_selector.as_ref())?;
    max_nodes(request.max_nodes)?;
    let asked = Asked::new(&request.profile_type_id, &request.label_selector, request.start, request.end)?;
    let nowhere = !(request.profile_id_selector.is_empty() && request.trace_id_selector.is_empty());
    let found = if nowhere { None } else { asked.merge(store)? };
    let samples = samples(&found);
    Ok(Sampled { message: asked.pprof(found)?, samples })
}

/// What the answer rests on; nothing found is no samples.
fn samples(found: &Option<Answer>) -> Option<u64> {
    Some(found.as_ref().map_or(0, |answer| answer.quality.samples))
}

/// `SelectSeries`: a sum for each step that has samples. Steps begin at multiples of `step`; a step
/// that began before `start` holds, and is dated, from `start`.
pub fn series(
    store: &dyn Store,
    request: SelectSeriesRequest,
) -> Result<Sampled<SelectSeriesResponse>, CallError> {
    refuse_call_site(request.stack_trace_selector.as_ref())?;
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
    let point = |p: &crate::model::SeriesPoint| Point {
        value: of.value.of(p.count, p.weight) as f64,
        timestamp: i64::try_from(p.time_ms).unwrap_or(i64::MAX).max(start),
    };
    Series { labels, points: points.iter().map(point).filter(|p| p.value > 0.0).collect() }
}

/// A request's type, selector and times, read. Without a type or query it finds nothing.
struct Asked {
    of: Option<&'static Type>,
    query: Option<Query>,
    range: TimeRange,
}

impl Asked {
    fn new(type_id: &str, selector: &str, start: i64, end: i64) -> Result<Self, CallError> {
        let of = Type::find(type_id)?;
        let range = range(start, end)?;
        let matched = matched(selector)?;
        let query = of.filter(|of| matched.types.contains(of)).map(|of| Query {
            range,
            selection: matched.selection,
            kind: of.kind,
            group: Vec::new(),
            detail: Detail::default(),
        });
        Ok(Self { of, query, range })
    }
    fn merge(&self, store: &dyn Store) -> Result<Option<Answer>, CallError> {
        self.query.as_ref().map(|query| store.merge(query)).transpose().map_err(CallError::from)
    }
    fn flame_graph(&self, found: Option<Answer>, nodes: usize) -> Option<FlameGraph> {
        let (of, answer) = (self.of?, found?);
        flame_graph(&answer.tree, of.value, nodes)
    }
    fn pprof(&self, found: Option<Answer>) -> Result<Profile, CallError> {
        match (self.of, found) {
            (Some(of), Some(answer)) => pprof::profile(&answer.tree, answer.range, of),
            _ => Ok(Profile::default()),
        }
    }
}

fn max_nodes(asked: Option<i64>) -> Result<usize, CallError> {
    match usize::try_from(asked.unwrap_or(0)) {
        Ok(0) => Ok(DEFAULT_NODES),
        Ok(nodes) if nodes <= MAX_NODES => Ok(nodes),
        _ => Err(CallError::invalid(format!("max_nodes must be 0 to {MAX_NODES}"))),
    }
}

fn is_pprof(format: i32) -> Result<bool, CallError> {
    match format {
        UNSPECIFIED | FLAMEGRAPH => Ok(false),
        PPROF => Ok(true),
        TREE => {
            Err(CallError::unimplemented("Pyroscope's tree form is not offered: ask for FLAMEGRAPH or PPROF"))
        }
        DOT => Err(CallError::unimplemented("DOT is not offered: ask for PPROF and let pprof draw it")),
        other => Err(CallError::invalid(format!("there is no profile format {other}"))),
    }
}

fn refuse_call_site(selector: Option<&StackTraceSelector>) -> Result<(), CallError> {
    match selector {
        Some(s) if !s.call_site.is_empty() || s.go_pgo.is_some() => {
            Err(CallError::unimplemented("stack_trace_selector is not offered: ask without it"))
        }
        _ => Ok(()),
    }
}
