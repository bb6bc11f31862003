//! Two profiles compared: `Diff`, and the older `GET /pyroscope/render-diff` that Grafana's app for profiles
//! calls.
//!
//! In: two selections of one profile type. Out: both call trees in one layout, seven numbers a bar; values
//! are as they are, nothing is scaled. render-diff takes `leftQuery`, `leftFrom`, `leftUntil`, the same with
//! `right`, and `maxNodes` (or `max-nodes`); other parameters are passed over, as Pyroscope does
//! (pkg/querier, `http.go`). What nobody measured is a graph of one empty bar.

use super::asked::{Asked, call_site, max_nodes};
use super::connect::Sampled;
use super::error::CallError;
use super::levels::flame_graph_diff;
use super::response::{DiffResponse, FlameGraphDiff};
use super::select::{DiffRequest, SelectMergeStacktracesRequest};
use super::types::Type;
use crate::params::pairs;
use crate::selector;
use crate::time::parse_time;
use emberscope_export::Unit;
use emberscope_model::{ValueFacts, WallTime};
use emberscope_store::Store;
use serde_json::{Value as Json, json};

/// Answers `Diff`. The left side says how many nodes.
///
/// # Errors
/// `invalid_argument`: a side is missing, the two are of different types, or as [`Asked::new`]. `unimplemented`: as
/// [`call_site`]. What the store fails with.
pub fn diff(store: &dyn Store, request: DiffRequest) -> Result<Sampled<DiffResponse>, CallError> {
    let missing = |side| CallError::invalid(format!("{side} is missing: a SelectMergeStacktracesRequest"));
    let left = request.left.ok_or_else(|| missing("left"))?;
    let right = request.right.ok_or_else(|| missing("right"))?;
    let (graph, samples) = compare(store, left, right)?;
    Ok(Sampled { message: DiffResponse { flamegraph: Some(graph) }, samples: Some(samples) })
}

fn compare(
    store: &dyn Store,
    left: SelectMergeStacktracesRequest,
    right: SelectMergeStacktracesRequest,
) -> Result<(FlameGraphDiff, u64), CallError> {
    if left.profile_type_id != right.profile_type_id {
        return Err(CallError::invalid("left and right must be of one profile type"));
    }
    let nodes = max_nodes(left.max_nodes)?;
    let value = Type::find(&left.profile_type_id)?.map_or(Unit::Weight, |of| of.unit);
    let mut found = Vec::with_capacity(2);
    for side in [left, right] {
        let nowhere = !(side.profile_id_selector.is_empty()
            && side.trace_id_selector.is_empty()
            && side.span_selector.is_empty());
        let asked = Asked::new(&side.profile_type_id, &side.label_selector, side.start, side.end)?;
        let site = call_site(side.stack_trace_selector)?;
        found.push(if nowhere { None } else { asked.merge(store, &site)? });
    }
    let samples = found.iter().flatten().map(|answer| answer.quality.samples).sum();
    let tree = |side: usize| found.get(side).and_then(|f| f.as_ref()).map(|answer| &answer.tree);
    Ok((flame_graph_diff([tree(0), tree(1)], value, nodes), samples))
}

/// A request to render-diff.
pub struct RenderDiff {
    left: SelectMergeStacktracesRequest,
    right: SelectMergeStacktracesRequest,
}

impl RenderDiff {
    /// Reads the query string.
    ///
    /// # Errors
    /// `invalid_argument`: the text cannot be decoded; a query is missing or names no type; a time or number makes no
    /// sense.
    pub fn read(raw: &str, now: WallTime) -> Result<Self, CallError> {
        let pairs = pairs(raw).map_err(|e| CallError::invalid(e.to_string()))?;
        let value =
            |name: &str| pairs.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str());
        let max_nodes = match value("maxNodes").or_else(|| value("max-nodes")) {
            None => None,
            Some(text) => {
                Some(text.parse().map_err(|_| CallError::invalid("maxNodes must be a whole number"))?)
            }
        };
        let side = |side: &str| -> Result<SelectMergeStacktracesRequest, CallError> {
            let time = |name: &str, usual: &str| {
                let name = format!("{side}{name}");
                let time = parse_time(value(&name).unwrap_or(usual), now)
                    .map_err(|e| CallError::invalid(format!("{name}: {e}")))?;
                Ok::<i64, CallError>(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
            };
            let name = format!("{side}Query");
            let query = value(&name)
                .ok_or_else(|| CallError::invalid(format!("{name} is missing: profile type and selector")))?;
            Ok(SelectMergeStacktracesRequest {
                profile_type_id: profile_type(query)?,
                label_selector: query.to_owned(),
                start: time("From", "now-1h")?,
                end: time("Until", "now")?,
                max_nodes,
                ..Default::default()
            })
        };
        Ok(Self { left: side("left")?, right: side("right")? })
    }

    /// The comparison as Pyroscope's flamebearer of two sides.
    ///
    /// # Errors
    /// As [`diff`].
    pub fn answer(self, store: &dyn Store) -> Result<Json, CallError> {
        let of = Type::find(&self.left.profile_type_id)?;
        let (graph, _) = compare(store, self.left, self.right)?;
        let levels: Vec<Vec<i64>> = graph.levels.into_iter().map(|level| level.values).collect();
        // Pyroscope tells nanoseconds of CPU as so many samples of a clock of 1 GHz.
        let (name, rate) = match of {
            Some(of) => match of.unit.facts(of.kind) {
                ValueFacts { name, unit: "nanoseconds" } => (name, 1_000_000_000),
                ValueFacts { name, .. } => (name, 100),
            },
            None => ("", 100),
        };
        Ok(json!({
            "version": 1,
            "flamebearer": {
                "names": graph.names, "levels": levels,
                "numTicks": graph.total, "maxSelf": graph.max_self,
            },
            "metadata": {
                "format": "double", "spyName": "", "sampleRate": rate, "units": "samples", "name": name,
            },
            "timeline": null, "groups": null, "heatmap": null,
            "leftTicks": graph.left_ticks, "rightTicks": graph.right_ticks,
        }))
    }
}

/// The type that a query names: before its braces, or by `__profile_type__`.
fn profile_type(query: &str) -> Result<String, CallError> {
    let selector = selector::parse(query)?;
    if !selector.metric.is_empty() {
        return Ok(selector.metric);
    }
    let named = selector
        .matchers
        .into_iter()
        .find(|m| m.name == "__profile_type__" && m.comparison == selector::Comparison::Equal);
    named.map(|m| m.value).ok_or_else(|| {
        CallError::invalid(
            "the query names no profile type: process_cpu:cpu:nanoseconds:cpu:nanoseconds{...}",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime(1_795_000_000_000_000_000);

    #[test]
    fn a_query_string_is_read_as_the_app_writes_it() {
        let raw = "leftQuery=process_cpu:cpu:nanoseconds:cpu:nanoseconds%7Bservice_name%3D%22a%22%7D&leftFrom=1000&leftUntil=2000\
                   &rightQuery=%7B__profile_type__%3D%22process_cpu%3Acpu%3Ananoseconds%3Acpu%3Ananoseconds%22%7D&rightFrom=now-15m&rightUntil=now&maxNodes=7&format=json";
        let read = RenderDiff::read(raw, NOW).expect("well formed");
        assert_eq!((read.left.start, read.left.end, read.left.max_nodes), (1_000_000, 2_000_000, Some(7)));
        assert_eq!(read.left.profile_type_id, read.right.profile_type_id);
        assert_eq!(read.right.end - read.right.start, 900_000);
        for bad in [
            "",
            "leftQuery={}",
            "leftQuery=x{}&rightQuery=x{}&maxNodes=a",
            "leftQuery=x{}&rightQuery=x{}&leftFrom=soon",
        ] {
            assert!(RenderDiff::read(bad, NOW).is_err(), "{bad}");
        }
    }
}
