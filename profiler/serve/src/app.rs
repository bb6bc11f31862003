//! Which app is meant: the value of `app=` is an id, else a name.
//!
//! In: the values and the time range. Out: ids, or an error that names those there are. An app that is
//! not in the range but elsewhere in the store is known: its answer is empty, not an error. Costs one
//! pass over the range's totals when every value is an id, two more at most when not.

use super::error::{ApiError, shown};
use axum::http::StatusCode;
use emberscope_model::{Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange};
use emberscope_store::Store;
use std::collections::{BTreeMap, BTreeSet};

/// Most apps that an error names.
const MAX_NAMED: usize = 20;

/// Ids and the names each goes by.
type Directory = BTreeMap<String, BTreeSet<String>>;

/// Turns ids and names into ids. An empty value stays: it selects what belongs to no app.
///
/// # Errors
/// 404 `unknown_app`: no app of the store has the value as its id or name. 409 `ambiguous_app`: several have it as
/// their name. What the store fails with.
pub fn resolve(
    store: &dyn Store,
    range: TimeRange,
    kind: SampleKind,
    values: &[String],
) -> Result<Vec<String>, ApiError> {
    let narrow =
        Selection { matchers: vec![Matcher { key: LabelKey::App, op: MatchOp::In(values.to_vec()) }] };
    let by_id = directory(store, range, kind, narrow)?;
    let is_id = |value: &String| value.is_empty() || by_id.contains_key(value);
    if values.iter().all(is_id) {
        return Ok(values.to_vec());
    }
    let here = directory(store, range, kind, Selection::all())?;
    let mut everywhere = None;
    let mut ids = Vec::with_capacity(values.len());
    for value in values {
        let mut found = if value.is_empty() { vec![String::new()] } else { look_up(&here, value) };
        if found.is_empty() {
            if everywhere.is_none() {
                everywhere = Some(match store.span() {
                    Some(span) => directory(store, span, kind, Selection::all())?,
                    None => Directory::new(),
                });
            }
            found = everywhere.as_ref().map(|all| look_up(all, value)).unwrap_or_default();
        }
        match found.len() {
            0 => return Err(unknown(value, range, &here, everywhere.as_ref())),
            1 => ids.append(&mut found),
            _ => return Err(ambiguous(value, found)),
        }
    }
    Ok(ids)
}

fn directory(
    store: &dyn Store,
    range: TimeRange,
    kind: SampleKind,
    selection: Selection,
) -> Result<Directory, ApiError> {
    let mut out = Directory::new();
    for total in
        store.totals(&Query { range, selection, kind, group: Vec::new(), detail: Detail::default() })?
    {
        let id = total.labels.get(LabelKey::App);
        if !id.is_empty() {
            let names = out.entry(id.to_owned()).or_default();
            let name = total.labels.get(LabelKey::AppName);
            if !name.is_empty() && !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
    }
    Ok(out)
}

fn look_up(apps: &Directory, value: &str) -> Vec<String> {
    if apps.contains_key(value) {
        return vec![value.to_owned()];
    }
    apps.iter().filter(|(_, names)| names.contains(value)).map(|(id, _)| id.clone()).collect()
}

fn ambiguous(value: &str, ids: Vec<String>) -> ApiError {
    let list: Vec<String> = ids.iter().take(MAX_NAMED).map(|id| shown(id)).collect();
    let message =
        format!("{} apps are named `{}`; ask for one by id: {}", ids.len(), shown(value), list.join(", "));
    ApiError::new(StatusCode::CONFLICT, "ambiguous_app", message)
        .of_parameter("app")
        .with_choices(ids.into_iter().take(MAX_NAMED).collect())
}

fn unknown(value: &str, range: TimeRange, here: &Directory, everywhere: Option<&Directory>) -> ApiError {
    let (apps, place) = match everywhere {
        _ if !here.is_empty() => (here, format!("between {} and {}", range.from, range.until)),
        Some(all) if !all.is_empty() => (all, "in the store (none in this time range)".to_owned()),
        _ => {
            let message = format!("There is no app `{}`: no app has been sampled yet.", shown(value));
            return ApiError::new(StatusCode::NOT_FOUND, "unknown_app", message).of_parameter("app");
        }
    };
    let named = apps.iter().take(MAX_NAMED).map(|(id, names)| match names.first() {
        Some(name) => format!("{} ({})", shown(id), shown(name)),
        None => shown(id),
    });
    let list = named.collect::<Vec<_>>().join(", ");
    let more = match apps.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let message = format!("There is no app `{}`; {place} there are: {list}{more}.", shown(value));
    ApiError::new(StatusCode::NOT_FOUND, "unknown_app", message)
        .of_parameter("app")
        .with_choices(apps.keys().take(MAX_NAMED).cloned().collect())
}
