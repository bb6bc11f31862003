//! What applications are runs of, of all their processes on all nodes: a node that saw neither the driver nor its name knows
//! the application of an executor alone.
//!
//! In: a store and a range. Out: the job of each application, by the label `app_run` of whichever of its processes has it; and
//! a condition on that label as one on applications.

use crate::door::Store;
use crate::error::StoreError;
use emberscope_model::{
    Detail, FastMap, LabelKey, MatchOp, Matcher, Query, SampleKind, Selection, TimeRange, WallTime,
};
use std::sync::Arc;

/// The application of a driver whose id is not known yet: of any job.
const UNKNOWN: &str = "unknown";

/// The job of each application.
pub type ByApp = FastMap<Arc<str>, Arc<str>>;

/// What each application was a run of when it was last seen: a name may become sure only after a while. What slept has a line
/// in the ledger, imported ones have only samples.
///
/// # Errors
/// As [`Store::ledger`] and [`Store::totals`].
pub fn by_app(store: &dyn Store, range: TimeRange) -> Result<ByApp, StoreError> {
    let named = MatchOp::NotIn(vec![String::new()]);
    let selection = Selection { matchers: vec![Matcher { key: LabelKey::AppRun, op: named }] };
    let mut last: FastMap<Arc<str>, (WallTime, Arc<str>)> = FastMap::default();
    let mut saw = |app: &Arc<str>, run: &Arc<str>, seen: TimeRange| {
        let known = last.entry(app.clone()).or_insert_with(|| (seen.until, run.clone()));
        if known.0 < seen.until {
            *known = (seen.until, run.clone());
        }
    };
    for line in store.ledger(range, &selection, &[LabelKey::App, LabelKey::AppRun])? {
        if let [(_, app), (_, run)] = line.labels.as_slice() {
            saw(app, run, line.seen);
        }
    }
    let (kind, group, detail) = (SampleKind::Cpu, Vec::new(), Detail::default());
    for total in store.totals(&Query { range, selection, kind, group, detail })? {
        let [app, run] = [LabelKey::App, LabelKey::AppRun].map(|key| Arc::from(total.labels.get(key)));
        saw(&app, &run, total.seen);
    }
    let apps = last.into_iter().filter(|(app, _)| !app.is_empty() && **app != *UNKNOWN);
    Ok(apps.map(|(app, (_, run))| (app, run)).collect())
}

/// The selection with conditions on applications for those on what they are runs of.
///
/// # Errors
/// As [`by_app`].
pub fn on_apps(store: &dyn Store, range: TimeRange, selection: &Selection) -> Result<Selection, StoreError> {
    let of_runs = |matcher: &Matcher| matcher.key == LabelKey::AppRun;
    if !selection.matchers.iter().any(of_runs) {
        return Ok(selection.clone());
    }
    let runs = by_app(store, range)?;
    let on_apps = |matcher: &Matcher| {
        let apps = |wanted: bool| {
            let fulfil = runs.iter().filter(move |(_, run)| matcher.accepts(run) == wanted);
            fulfil.map(|(app, _)| app.to_string()).collect()
        };
        // What is no run of any job, and so all that belongs to no application.
        let op = if matcher.accepts("") { MatchOp::NotIn(apps(false)) } else { MatchOp::In(apps(true)) };
        Matcher { key: LabelKey::App, op }
    };
    let matchers = selection.matchers.iter();
    let matchers = matchers.map(|matcher| if of_runs(matcher) { on_apps(matcher) } else { matcher.clone() });
    Ok(Selection { matchers: matchers.collect() })
}
