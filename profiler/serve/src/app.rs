//! Which app is meant: the value of `app=` is an id, else a name or a job (label `app_run`), of which `run=` takes one of several runs.
//!
//! In: the values and the time range. Out: ids, or an error that names those there are, of one name with their times. An app that is
//! not in the range but elsewhere in the store is known: its answer is empty, not an error. Costs one
//! pass over the range's totals when every value is an id, two more at most when not; of a kind that holds no CPU time twice that.

use super::error::{ApiError, shown};
use super::params::nearest;
use axum::http::StatusCode;
use emberscope_model::{Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange};
use emberscope_store::Store;
use std::collections::{BTreeMap, BTreeSet};

/// Most apps that an error names.
const MAX_NAMED: usize = 20;
/// Most names that an unknown one is compared with.
const MAX_COMPARED: usize = 2000;

/// Ids, with what is known of each.
type Directory = BTreeMap<String, Known>;

/// What is known of an app.
struct Known {
    names: BTreeSet<String>,
    /// In whole windows, as far as they were looked at.
    seen: TimeRange,
}

/// Which of the runs of a name: how many before the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run(usize);

impl Run {
    /// Reads `latest`, `-1` (the same), `-2` (the run before) and so on.
    ///
    /// # Errors
    /// 400 `bad_parameter`: it is none of these.
    pub fn read(text: &str) -> Result<Self, ApiError> {
        let back = match text {
            "latest" => Some(0),
            _ => text.strip_prefix('-').and_then(|back| back.parse::<usize>().ok()?.checked_sub(1)),
        };
        back.map(Self).ok_or_else(|| {
            let message = format!(
                "`run={}`: must be latest, -1 (the same), -2 (the run before it) and so on",
                shown(text)
            );
            ApiError::bad("run", message)
        })
    }
}

/// One of the runs of an app's name, and when it was seen; an id is of one run.
///
/// # Errors
/// 404 `unknown_app`: no app has the value as its id or name in the range. 404 `unknown_run`: there are fewer runs. What
/// the store fails with.
pub fn run(
    store: &dyn Store,
    range: TimeRange,
    kind: SampleKind,
    value: &str,
    run: Run,
) -> Result<(String, TimeRange), ApiError> {
    let here = directory(store, range, kind, Selection::all())?;
    let ids = look_up(&here, value);
    if ids.is_empty() {
        return Err(unknown(value, range, &here, None));
    }
    let found = ids.len().checked_sub(run.0 + 1).and_then(|place| ids.get(place));
    match found.and_then(|id| Some((id.clone(), here.get(id)?.seen))) {
        Some(found) => Ok(found),
        None => Err(no_such_run(value, run, &here, ids)),
    }
}

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
            _ => {
                let apps = if found.iter().all(|id| here.contains_key(id)) {
                    Some(&here)
                } else {
                    everywhere.as_ref()
                };
                return Err(ambiguous(value, apps.unwrap_or(&here), found));
            }
        }
    }
    Ok(ids)
}

/// Apps with samples of a kind or of CPU time: one of which nothing of the kind was sampled is known all the same, and which run
/// is the last does not hang on the kind.
fn directory(
    store: &dyn Store,
    range: TimeRange,
    kind: SampleKind,
    selection: Selection,
) -> Result<Directory, ApiError> {
    let mut out = Directory::new();
    let mut query = Query { range, selection, kind, group: Vec::new(), detail: Detail::default() };
    let mut totals = store.totals(&query)?;
    if !kind.holds(SampleKind::Cpu) {
        query.kind = SampleKind::Cpu;
        totals.extend(store.totals(&query)?);
    }
    for total in totals {
        let id = total.labels.get(LabelKey::App);
        if !id.is_empty() {
            let known = out
                .entry(id.to_owned())
                .or_insert_with(|| Known { names: BTreeSet::new(), seen: total.seen });
            known.seen.cover(&total.seen);
            for name in [LabelKey::AppName, LabelKey::AppRun].map(|key| total.labels.get(key)) {
                if !name.is_empty() && !known.names.contains(name) {
                    known.names.insert(name.to_owned());
                }
            }
        }
    }
    Ok(out)
}

/// The app of an id, else those of a name, the first that was seen first.
fn look_up(apps: &Directory, value: &str) -> Vec<String> {
    if apps.contains_key(value) {
        return vec![value.to_owned()];
    }
    let mut of_name: Vec<_> = apps.iter().filter(|(_, known)| known.names.contains(value)).collect();
    of_name.sort_by_key(|(id, known)| (known.seen.from, *id));
    of_name.into_iter().map(|(id, _)| id.clone()).collect()
}

/// Runs with their times, the last ones.
fn with_times(apps: &Directory, ids: &[String]) -> String {
    let last = ids.iter().skip(ids.len().saturating_sub(MAX_NAMED));
    let each = last.filter_map(|id| {
        let seen = apps.get(id)?.seen;
        Some(format!("{} from {} until {}", shown(id), seen.from, seen.until))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn ambiguous(value: &str, apps: &Directory, ids: Vec<String>) -> ApiError {
    let list: Vec<String> = ids.iter().take(MAX_NAMED).map(|id| shown(id)).collect();
    let message = format!(
        "{} apps are named `{}`; ask for one by id: {}; or for the last by run=latest. They were seen: {}",
        ids.len(),
        shown(value),
        list.join(", "),
        with_times(apps, &ids)
    );
    ApiError::new(StatusCode::CONFLICT, "ambiguous_app", message)
        .of_parameter("app")
        .with_choices(ids.into_iter().take(MAX_NAMED).collect())
}

fn no_such_run(value: &str, Run(back): Run, apps: &Directory, ids: Vec<String>) -> ApiError {
    let message = format!(
        "`run=-{}`: of `{}` there are fewer runs: {}",
        back + 1,
        shown(value),
        with_times(apps, &ids)
    );
    ApiError::new(StatusCode::NOT_FOUND, "unknown_run", message)
        .of_parameter("run")
        .with_choices((1..=ids.len().min(MAX_NAMED)).map(|back| format!("-{back}")).collect())
}

fn unknown(value: &str, range: TimeRange, here: &Directory, everywhere: Option<&Directory>) -> ApiError {
    let (apps, place) = match everywhere {
        _ if !here.is_empty() => (here, format!("Between {} and {}", range.from, range.until)),
        Some(all) if !all.is_empty() => (all, "In the store (none in this time range)".to_owned()),
        _ => {
            let message = format!("There is no app `{}`: no app has been sampled yet.", shown(value));
            return ApiError::new(StatusCode::NOT_FOUND, "unknown_app", message).of_parameter("app");
        }
    };
    let named = apps.iter().take(MAX_NAMED).map(|(id, known)| match known.names.first() {
        Some(name) => format!("{} ({})", shown(id), shown(name)),
        None => shown(id),
    });
    let list = named.collect::<Vec<_>>().join(", ");
    let more = match apps.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let names = apps.iter().flat_map(|(id, known)| known.names.iter().chain([id]).map(String::as_str));
    let near = nearest(value, &names.take(MAX_COMPARED).collect::<Vec<_>>());
    let near = near.map(|near| format!("Did you mean `{}`? ", shown(near))).unwrap_or_default();
    let message = format!("There is no app `{}`. {near}{place} there are: {list}{more}.", shown(value));
    ApiError::new(StatusCode::NOT_FOUND, "unknown_app", message)
        .of_parameter("app")
        .with_choices(apps.keys().take(MAX_NAMED).cloned().collect())
}
