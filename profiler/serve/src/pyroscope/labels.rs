//! The calls about what there is: profile types, label names and values, series, statistics.
//!
//! In: a request's selectors and times. Out: names in order. A label set of the store stands for one
//! series of each profile type; the types' own labels (`__profile_type__`, ...) are added to it.

use super::error::CallError;
use super::matching::{any_matched, range_or_all};
use super::request::{
    GetProfileStatsRequest, LabelNamesRequest, LabelValuesRequest, ProfileTypesRequest, SeriesRequest,
};
use super::response::{
    GetProfileStatsResponse, LabelPair, Labels, NamesResponse, ProfileTypesResponse, SeriesResponse,
};
use super::types::{self, Type};
use emberscope_model::{Detail, LabelKey, LabelSet, Query, SampleKind, Selection, TimeRange, implied};
use emberscope_store::Store;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Answers `ProfileTypes`: those of CPU time, when anything is kept of that time, and those of other kinds of which
/// there are samples.
///
/// # Errors
/// `invalid_argument`: the times are wrong. What the store fails with.
pub fn profile_types(
    store: &dyn Store,
    request: ProfileTypesRequest,
) -> Result<ProfileTypesResponse, CallError> {
    let asked = range_or_all(store, request.start, request.end)?;
    let mut profile_types = Vec::new();
    if let Some((range, _)) = asked.zip(store.span()).filter(|(asked, kept)| asked.overlaps(kept)) {
        for &kind in SampleKind::ASKED {
            if kind == SampleKind::default() || store.summary(&every(kind, range))?.quality.samples > 0 {
                profile_types.extend(types::ALL.iter().filter(|of| of.kind == kind).map(Type::message));
            }
        }
    }
    Ok(ProfileTypesResponse { profile_types })
}

/// All samples of a kind.
fn every(kind: SampleKind, range: TimeRange) -> Query {
    let selection = Selection { matchers: implied(kind, &[]).into_iter().collect() };
    Query { range, selection, kind, group: Vec::new(), detail: Detail::default() }
}

/// Answers `LabelNames`.
///
/// # Errors
/// `invalid_argument`: a selector or the times make no sense. What the store fails with.
pub fn label_names(store: &dyn Store, request: LabelNamesRequest) -> Result<NamesResponse, CallError> {
    let found = series_of(store, &request.matchers, request.start, request.end)?;
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (_, labels) in &found {
        names.extend(types::LABELS);
        names.extend(labels.iter().map(|(key, _)| key.name()));
    }
    // What a stage is of, and what its samples' stacks tell.
    if names.contains(LabelKey::Stage.name()) {
        names.extend(LabelKey::TOLD.iter().map(|key| key.name()));
    }
    Ok(NamesResponse { names: names.into_iter().map(str::to_owned).collect() })
}

/// Answers `LabelValues`.
///
/// # Errors
/// As [`label_names`], and where the label's name is missing.
pub fn label_values(store: &dyn Store, request: LabelValuesRequest) -> Result<NamesResponse, CallError> {
    if request.name.is_empty() {
        return Err(CallError::invalid("name is missing: the label whose values are asked for"));
    }
    if let Some(key) = LabelKey::from_name(&request.name).filter(|key| LabelKey::TOLD.contains(key)) {
        return told_values(store, key, &request);
    }
    let found = series_of(store, &request.matchers, request.start, request.end)?;
    let values: BTreeSet<String> = found
        .iter()
        .filter_map(|(of, labels)| value(of, labels, &request.name))
        .filter(|value| !value.is_empty())
        .collect();
    Ok(NamesResponse { names: values.into_iter().collect() })
}

/// Values of a label that no set of labels has.
fn told_values(
    store: &dyn Store,
    key: LabelKey,
    request: &LabelValuesRequest,
) -> Result<NamesResponse, CallError> {
    let mut values = BTreeSet::new();
    if let Some(range) = range_or_all(store, request.start, request.end)? {
        for matched in any_matched(&request.matchers)? {
            for &kind in
                SampleKind::ASKED.iter().filter(|kind| matched.types.iter().any(|t| t.kind == **kind))
            {
                let query = Query { selection: matched.selection.clone(), ..every(kind, range) };
                values.extend(store.values(&query, key)?.into_iter().map(|known| known.value.to_string()));
            }
        }
    }
    Ok(NamesResponse { names: values.into_iter().collect() })
}

/// Answers `Series`: the distinct label sets, cut down to `label_names`.
///
/// # Errors
/// As [`label_names`].
pub fn series(store: &dyn Store, request: SeriesRequest) -> Result<SeriesResponse, CallError> {
    let found = series_of(store, &request.matchers, request.start, request.end)?;
    let all: Vec<String> =
        types::LABELS.into_iter().chain(LabelKey::ALL.iter().map(|k| k.name())).map(str::to_owned).collect();
    let mut names = if request.label_names.is_empty() { all } else { request.label_names };
    names.sort();
    names.dedup();
    let mut sets: BTreeSet<Vec<LabelPair>> = BTreeSet::new();
    for (of, labels) in &found {
        sets.insert(pairs(of, labels, &names));
    }
    sets.remove(&Vec::new());
    Ok(SeriesResponse { labels_set: sets.into_iter().map(|labels| Labels { labels }).collect() })
}

/// Answers `GetProfileStats`.
///
/// # Errors
/// None: the signature is that of all calls.
pub fn stats(store: &dyn Store, _: GetProfileStatsRequest) -> Result<GetProfileStatsResponse, CallError> {
    let millis = |t: emberscope_model::WallTime| i64::try_from(t.as_millis()).unwrap_or(i64::MAX);
    Ok(store.span().map_or_else(GetProfileStatsResponse::default, |span| GetProfileStatsResponse {
        data_ingested: true,
        oldest_profile_time: millis(span.from),
        newest_profile_time: millis(span.until),
    }))
}

fn value(of: &Type, labels: &LabelSet, name: &str) -> Option<String> {
    match LabelKey::from_name(name) {
        Some(key) => Some(labels.get(key).to_owned()),
        None => of.label(name),
    }
}

fn pairs(of: &Type, labels: &LabelSet, names: &[String]) -> Vec<LabelPair> {
    let pair = |name: &String| {
        let value = value(of, labels, name).filter(|value| !value.is_empty())?;
        Some(LabelPair { name: name.clone(), value })
    };
    names.iter().filter_map(pair).collect()
}

/// The series that any of the selectors finds.
fn series_of(
    store: &dyn Store,
    matchers: &[String],
    start: i64,
    end: i64,
) -> Result<Vec<(&'static Type, Arc<LabelSet>)>, CallError> {
    let selectors = any_matched(matchers)?;
    let mut found = Vec::new();
    let Some(range) = range_or_all(store, start, end)? else { return Ok(found) };
    for matched in selectors {
        for &kind in SampleKind::ASKED {
            let of_kind: Vec<_> = matched.types.iter().filter(|t| t.kind == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let query = Query {
                range,
                selection: matched.selection.clone(),
                kind,
                group: Vec::new(),
                detail: Detail::default(),
            };
            for total in store.totals(&query)? {
                found.extend(of_kind.iter().map(|t| (**t, total.labels.clone())));
            }
        }
    }
    Ok(found)
}
