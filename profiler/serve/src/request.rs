//! What a request asks of the store: time range, selection, kind, grouping.
//!
//! In: [`Params`] and what "now" is. Out: [`Asked`], and once the app's name is looked up, a [`Query`].
//! Rules (the same on every route): each label is a parameter; a key given twice means either; an empty
//! value selects what lacks the label; `query=` adds PromQL conditions, all must hold; absent times mean
//! the last hour. No I/O here; the app look-up is [`super::app`]'s.

use super::app::{self, Run};
use super::error::{ApiError, shown};
use super::params::{Params, nearest};
use super::selector::{self, SelectorError, UnknownLabels};
use super::time::parse_time;
use emberscope_api::route::param;
use emberscope_model::{
    Detail, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange, WallTime, grouped, implied,
};
use emberscope_store::Store;
use std::time::Duration;

/// What is answered when no time is given.
pub const DEFAULT_SPAN: Duration = Duration::from_secs(3600);

/// A request, read; the app is not looked up yet.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The time range as asked.
    pub range: TimeRange,
    /// Kind of samples that is asked for.
    pub kind: SampleKind,
    /// Labels that become prefix frames.
    pub group: Vec<LabelKey>,
    /// How finely frames are told apart.
    pub detail: Detail,
    /// Conditions but for the `app` parameters.
    selection: Selection,
    /// Ids or names of apps; empty means the whole node.
    apps: Vec<String>,
    /// Which run of the one app.
    run: Option<Run>,
    /// Whether the range was asked for.
    timed: bool,
}

impl Asked {
    /// Reads what every selecting route takes, and `group`, `lines` and `annotate`.
    ///
    /// # Errors
    /// 400 `bad_parameter`: a parameter has a value that it cannot have, or is given more often than it may.
    pub fn read(params: &Params, now: WallTime) -> Result<Self, ApiError> {
        let mut matchers = Vec::new();
        for &key in LabelKey::ASKED.iter().filter(|key| **key != LabelKey::App) {
            let values: Vec<String> = params.all(key.name()).map(str::to_owned).collect();
            if !values.is_empty() {
                matchers.push(Matcher { key, op: MatchOp::In(values) });
            }
        }
        if let Some(text) = params.one("query")? {
            matchers.extend(conditions(text)?);
        }
        let apps: Vec<String> = params.all(LabelKey::App.name()).map(str::to_owned).collect();
        let run = params.one("run")?.map(Run::read).transpose()?;
        if run.is_some() && (apps.len() != 1 || apps.iter().any(String::is_empty)) {
            let message = "`run` says which run of an application: name one, with `app=`.";
            return Err(ApiError::bad("run", message));
        }
        let kind = kind(params)?;
        matchers.extend(implied(kind, &matchers));
        Ok(Self {
            range: range(params, now)?,
            kind,
            group: grouped(kind, &matchers, labels(params, param::GROUP)?),
            detail: Detail { lines: params.flag(param::LINES)?, kinds: params.flag(param::ANNOTATE)? },
            selection: Selection { matchers },
            apps,
            run,
            timed: params.has("from") || params.has("until"),
        })
    }

    /// As [`Self::query`], but without times of all that is kept.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_of_all(&self, store: &dyn Store) -> Result<Query, ApiError> {
        let range = store.span().filter(|_| !self.timed).unwrap_or(self.range);
        Self { range, ..self.clone() }.query(store)
    }

    /// The question for one run of one app; without `run` the name's only one. Without times it is all of that run.
    ///
    /// # Errors
    /// 400 `bad_parameter`: no app is named, or several. Else as [`Self::query`].
    pub fn query_of_run(&self, store: &dyn Store) -> Result<Query, ApiError> {
        if self.apps.len() != 1 || self.apps.iter().any(String::is_empty) {
            let message = "A run is an application: name one on each side, by id or by name and run: `left.app=etl&left.run=-2`.";
            return Err(ApiError::bad(LabelKey::App.name(), message));
        }
        if self.timed || self.run.is_some() {
            return self.query(store);
        }
        let kept = store.span().unwrap_or(self.range);
        let apps = app::resolve(store, kept, self.kind, &self.apps)?;
        Self { apps, run: Some(Run::read("latest")?), ..self.clone() }.query(store)
    }

    /// The question to the store; looks the apps up there. Without times that of a run is the run's.
    ///
    /// # Errors
    /// 404 `unknown_app`, 404 `unknown_run`, 409 `ambiguous_app`: an app cannot be told by its name. What the store fails
    /// with.
    pub fn query(&self, store: &dyn Store) -> Result<Query, ApiError> {
        let mut selection = self.selection.clone();
        let mut range = self.range;
        let ids = match (self.run, self.apps.first()) {
            (_, None) => None,
            (None, Some(_)) => Some(app::resolve(store, range, self.kind, &self.apps)?),
            (Some(run), Some(value)) => {
                let kept = store.span().filter(|_| !self.timed).unwrap_or(range);
                let (id, seen) = app::run(store, kept, self.kind, value, run)?;
                if !self.timed {
                    range = seen;
                }
                Some(vec![id])
            }
        };
        if let Some(ids) = ids {
            selection.matchers.push(Matcher { key: LabelKey::App, op: MatchOp::In(ids) });
        }
        Ok(Query { range, selection, kind: self.kind, group: self.group.clone(), detail: self.detail })
    }
}

/// The kind that is asked for: CPU time unless told.
fn kind(params: &Params) -> Result<SampleKind, ApiError> {
    if let Some(kind) = params.one("type")?.and_then(SampleKind::asked) {
        return Ok(kind);
    }
    let kinds: Vec<(&str, SampleKind)> = SampleKind::ASKED.iter().map(|k| (k.slug(), *k)).collect();
    params.choice("type", &kinds, SampleKind::Cpu)
}

/// Refuses all kinds but CPU time, for what puts samples beside CPU time that is known exactly.
///
/// # Errors
/// 400 `bad_parameter`, of `type`: the kind is another.
pub fn of_time(kind: SampleKind) -> Result<(), ApiError> {
    if kind == SampleKind::Cpu {
        return Ok(());
    }
    let kind = kind.slug();
    let message = format!(
        "This is about CPU time and what the kernel tells beside it, waits included: ask without `type={kind}`, or ask for \
         its stages, tasks, flame graph, top, diff, series, labels, apps or executors."
    );
    Err(ApiError::bad("type", message))
}

/// `from` and `until`; absent, the last hour.
fn range(params: &Params, now: WallTime) -> Result<TimeRange, ApiError> {
    let read = |name| -> Result<Option<WallTime>, ApiError> {
        let Some(text) = params.one(name)? else { return Ok(None) };
        let time = parse_time(text, now);
        time.map(Some).map_err(|e| ApiError::bad(name, format!("`{name}={}`: {e}", shown(text))))
    };
    let until = read("until")?.unwrap_or(now);
    let from = read("from")?.unwrap_or_else(|| until.minus(DEFAULT_SPAN));
    let range = TimeRange { from, until };
    if range.is_empty() {
        let at_fault = if params.one("from")?.is_some() { "from" } else { "until" };
        let message = format!("`from` ({from}) must lie before `until` ({until})");
        return Err(ApiError::bad(at_fault, message));
    }
    Ok(range)
}

/// Reads a list of label names, each at most once.
///
/// # Errors
/// 400 `bad_parameter`: a name is no label's, or is given twice.
pub fn labels(params: &Params, parameter: &str) -> Result<Vec<LabelKey>, ApiError> {
    let mut keys = Vec::new();
    for name in params.list(parameter) {
        let key = label(name, parameter)?;
        if keys.contains(&key) {
            return Err(ApiError::bad(parameter, format!("`{parameter}` names `{key}` twice")));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// A label by name; `parameter` is where that was given.
///
/// # Errors
/// 400 `bad_parameter`: there is no such label; the error names the nearest.
pub fn label(name: &str, parameter: &str) -> Result<LabelKey, ApiError> {
    LabelKey::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = LabelKey::ASKED.iter().map(|key| key.name()).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}.", names.join(", ")),
        };
        ApiError::bad(parameter, format!("There is no label `{}`: {hint}", shown(name)))
            .with_choices(names.into_iter().map(str::to_owned).collect())
    })
}

/// The conditions of `query=`. A metric name before the braces means nothing here.
fn conditions(text: &str) -> Result<Vec<Matcher>, ApiError> {
    let read = selector::parse(text).and_then(|s| s.to_selection(UnknownLabels::Refuse));
    match read {
        Ok(selection) => Ok(selection.unwrap_or_default().matchers),
        Err(SelectorError::UnknownLabel { label: name }) => match label(&name, "query") {
            Err(error) => Err(error),
            Ok(_) => Ok(Vec::new()),
        },
        Err(error) => Err(ApiError::bad("query", format!("`query`: {}", shown_error(&error)))),
    }
}

fn shown_error(error: &SelectorError) -> String {
    match error {
        SelectorError::Regex { label, reason } => {
            format!("bad regular expression for `{}`: {}", shown(label), shown(reason))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
