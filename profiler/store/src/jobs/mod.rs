//! The labels `spark_job`, `sql` and `app_run`: what a sample's stage is of, and what its application is a run of.
//!
//! In: a store, and questions that name [`LabelKey::SparkJob`], [`LabelKey::Sql`] or [`LabelKey::AppRun`] among the labels
//! that select or group. Out: the answers. Of stages by what Spark said of them and the store keeps as facts, so that windows
//! of any age can be asked, with the driver gone: a condition becomes one on stages; what is grouped is asked by application
//! and stage, and put together. What Spark said last may not be kept yet: where
//! somebody here asks it, that counts as well. A stage of which it said nothing is `unknown`: REST is off, or the stage is
//! younger than the last time that Spark was asked. Of applications by their drivers ([`runs`]). Questions that do not name
//! these go to the store as they are. Limit: [`MAX_APPS`].

use super::disk::DiskUsage;
use super::door::{Store, StoreUsage, passed_on};
use super::error::StoreError;
use super::values::{LabelValue, LabelledSeries, prefix_value, sort_values};
use emberscope_model::{
    Answer, Detail, Frame, LabelKey, LabelSet, LabelTotal, LedgerTotal, MatchOp, Matcher, MethodAnswer,
    Pauses, ProcessRecord, Query, SampleKind, Selection, SeriesPoint, SparkFact, SparkFacts, SparkSource,
    Summary, TimeRange, Window,
};
use known::Known;
use regroup::Regroup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

mod known;
mod regroup;
mod runs;
mod tree;

/// Applications of an answer that is grouped by job or execution: what is kept of each is read.
const MAX_APPS: usize = 64;

/// A store that can be asked for jobs and executions, too.
pub struct ByJob<'a>(&'a dyn Store, Option<&'a dyn SparkSource>);

/// Values of labels, in the order of their keys.
type Labels = Vec<(LabelKey, Arc<str>)>;

impl<'a> ByJob<'a> {
    /// The same store. `source` is who asks Spark for answers that say its words as they are now: what a table names
    /// can be asked for at once. Spark is not asked here.
    pub fn new(store: &'a dyn Store, source: Option<&'a dyn SparkSource>) -> Self {
        Self(store, source)
    }

    /// What Spark said of an application's stages, as it is kept, and later.
    fn known(&self, app: &str, range: TimeRange) -> Result<Known, StoreError> {
        let later = self.1.and_then(|source| source.told_stages(app));
        Known::of(self.0, app, range, later.as_deref())
    }

    /// The applications of a selection: those that only slept have a line in the ledger, imported ones only samples.
    fn apps(&self, range: TimeRange, selection: &Selection) -> Result<Vec<Arc<str>>, StoreError> {
        let named = selection.matchers.iter().find_map(|matcher| match &matcher.op {
            MatchOp::In(apps) if matcher.key == LabelKey::App => Some(apps),
            _ => None,
        });
        if let Some(apps) = named {
            return Ok(apps.iter().map(|app| app.as_str().into()).collect());
        }
        let of_apps = selection.matchers.iter().filter(|matcher| matcher.key == LabelKey::App);
        let selection = Selection { matchers: of_apps.cloned().collect() };
        let lines = self.0.ledger(range, &selection, &[LabelKey::App])?;
        let apps = lines.into_iter().filter_map(|line| line.labels.into_iter().next());
        let mut apps: BTreeSet<Arc<str>> = apps.map(|(_, app)| app).collect();
        let (kind, group, detail) = (SampleKind::Cpu, Vec::new(), Detail::default());
        let query = Query { range, selection, kind, group, detail };
        apps.extend(self.0.values(&query, LabelKey::App)?.into_iter().map(|known| known.value));
        apps.remove("");
        Ok(apps.into_iter().collect())
    }

    /// The selection with conditions on applications and stages for those on what they are of.
    fn on_stages(&self, range: TimeRange, selection: &Selection) -> Result<Selection, StoreError> {
        let selection = &runs::on_apps(self.0, range, selection)?;
        let told = |matcher: &&Matcher| matcher.key.is_told_by_stage();
        let Some(first) = selection.matchers.iter().find(told) else { return Ok(selection.clone()) };
        let (of_stages, mut matchers): (Vec<_>, Vec<_>) =
            selection.matchers.iter().cloned().partition(|matcher| told(&matcher));
        let apps = self.apps(range, &Selection { matchers: matchers.clone() })?;
        match apps.as_slice() {
            [] => matchers.extend(of_stages.iter().map(|matcher| Known::default().on_stages(matcher))),
            [app] => {
                let known = self.known(app, range)?;
                matchers.extend(of_stages.iter().map(|matcher| known.on_stages(matcher)));
            }
            // Grafana's "All" is a condition that all fulfil.
            several => {
                for app in several.get(..MAX_APPS).unwrap_or(several) {
                    let known = self.known(app, range)?;
                    if !of_stages.iter().all(|matcher| known.all_fulfil(matcher)) {
                        return Err(StoreError::OfWhichApp { key: first.key });
                    }
                }
            }
        }
        Ok(Selection { matchers })
    }

    fn of_stages(&self, query: &Query) -> Result<Query, StoreError> {
        Ok(Query { selection: self.on_stages(query.range, &query.selection)?, ..query.clone() })
    }

    /// None: the labels are all of those that the store has.
    fn regroup(
        &self,
        range: TimeRange,
        selection: &Selection,
        outer: &[LabelKey],
    ) -> Result<Option<Regroup>, StoreError> {
        if !outer.iter().any(|key| key.is_joined()) {
            return Ok(None);
        }
        let mut regroup = Regroup::new(outer);
        if outer.contains(&LabelKey::AppRun) {
            regroup.runs = runs::by_app(self.0, range)?;
        }
        if regroup.is_by_stage() {
            let apps = self.apps(range, selection)?;
            if apps.len() > MAX_APPS {
                return Err(StoreError::TooLarge { what: "applications", limit: MAX_APPS });
            }
            let known = apps.into_iter().map(|app| Ok((app.clone(), self.known(&app, range)?)));
            regroup.known = known.collect::<Result<_, StoreError>>()?;
        }
        Ok(Some(regroup))
    }

    fn merged(
        &self,
        query: &Query,
        merge: impl FnOnce(&Query) -> Result<Answer, StoreError>,
    ) -> Result<Answer, StoreError> {
        let query = self.of_stages(query)?;
        let Some(regroup) = self.regroup(query.range, &query.selection, &query.group)? else {
            return merge(&query);
        };
        let mut answer = merge(&Query { group: regroup.inner.clone(), ..query })?;
        let labels = |path: &[&Frame]| {
            let value = |(key, frame): (&LabelKey, &&Frame)| match prefix_value(frame, *key) {
                None | Some(super::limits::NO_VALUE) => Arc::default(),
                Some(value) => Arc::from(value),
            };
            regroup.labels(&regroup.inner.iter().zip(path).map(value).collect::<Vec<_>>())
        };
        answer.tree = tree::regrouped(&answer.tree, regroup.inner.len(), labels);
        Ok(answer)
    }
}

impl Store for ByJob<'_> {
    // Processes too: they have no stage, so a condition on one is not asked of them.
    passed_on!();

    fn merge(&self, query: &Query) -> Result<Answer, StoreError> {
        self.merged(query, |query| self.0.merge(query))
    }
    fn merge_largest(&self, query: &Query, max_nodes: usize) -> Result<(Answer, usize), StoreError> {
        if query.group.iter().any(|key| key.is_joined()) {
            return Ok(super::cut::cut(self.merge(query)?, max_nodes));
        }
        self.0.merge_largest(&self.of_stages(query)?, max_nodes)
    }
    fn methods(&self, query: &Query) -> Result<MethodAnswer, StoreError> {
        self.0.methods(&Query { group: Vec::new(), ..self.of_stages(query)? })
    }
    fn summary(&self, query: &Query) -> Result<Summary, StoreError> {
        self.0.summary(&Query { group: Vec::new(), ..self.of_stages(query)? })
    }
    fn totals(&self, query: &Query) -> Result<Vec<LabelTotal>, StoreError> {
        self.0.totals(&Query { group: Vec::new(), ..self.of_stages(query)? })
    }
    fn values(&self, query: &Query, key: LabelKey) -> Result<Vec<LabelValue>, StoreError> {
        let query = self.of_stages(query)?;
        if !key.is_told_by_stage() {
            // Of what applications are runs of, too: who knows it is enough for a list.
            return self.0.values(&query, key);
        }
        let Some(regroup) = self.regroup(query.range, &query.selection, &[key])? else {
            return Ok(Vec::new());
        };
        let mut sums: BTreeMap<Arc<str>, (u64, u64)> = BTreeMap::new();
        for (app, known) in &regroup.known {
            let mut query = query.clone();
            let op = MatchOp::In(vec![app.to_string()]);
            query.selection.matchers.push(Matcher { key: LabelKey::App, op });
            for stage in self.0.values(&query, LabelKey::Stage)? {
                let sum = sums.entry(known.value(key, &stage.value)).or_default();
                *sum = (sum.0.saturating_add(stage.count), sum.1.saturating_add(stage.weight));
            }
        }
        sums.remove("");
        let value = |(value, (count, weight))| LabelValue { value, count, weight };
        let mut values: Vec<LabelValue> = sums.into_iter().map(value).collect();
        sort_values(&mut values);
        Ok(values)
    }
    fn series(
        &self,
        query: &Query,
        step: Duration,
        by: &[LabelKey],
    ) -> Result<Vec<LabelledSeries>, StoreError> {
        let query = self.of_stages(query)?;
        let Some(regroup) = self.regroup(query.range, &query.selection, by)? else {
            return self.0.series(&query, step, by);
        };
        let mut sums: BTreeMap<Labels, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
        for (labels, points) in self.0.series(&query, step, &regroup.inner)? {
            let series = sums.entry(regroup.labels(&values_of(labels))).or_default();
            for SeriesPoint { time_ms, count, weight } in points {
                let sum = series.entry(time_ms).or_default();
                *sum = (sum.0.saturating_add(count), sum.1.saturating_add(weight));
            }
        }
        let point = |(time_ms, (count, weight))| SeriesPoint { time_ms, count, weight };
        let line = |(labels, points): (_, BTreeMap<u64, (u64, u64)>)| {
            (labels, points.into_iter().map(point).collect())
        };
        Ok(sums.into_iter().map(line).collect())
    }
    fn ledger(
        &self,
        range: TimeRange,
        selection: &Selection,
        by: &[LabelKey],
    ) -> Result<Vec<LedgerTotal>, StoreError> {
        let selection = self.on_stages(range, selection)?;
        let Some(regroup) = self.regroup(range, &selection, by)? else {
            return self.0.ledger(range, &selection, by);
        };
        let mut sums: BTreeMap<Labels, LedgerTotal> = BTreeMap::new();
        for LedgerTotal { labels, sums: more, seen } in self.0.ledger(range, &selection, &regroup.inner)? {
            let labels = regroup.labels(&values_of(labels));
            match sums.get_mut(&labels) {
                Some(known) => {
                    known.sums.add(&more);
                    let (from, until) = (known.seen.from.min(seen.from), known.seen.until.max(seen.until));
                    known.seen = TimeRange { from, until };
                }
                None => {
                    sums.insert(labels.clone(), LedgerTotal { labels, sums: more, seen });
                }
            }
        }
        Ok(sums.into_values().collect())
    }
    fn pauses(&self, range: TimeRange, selection: &Selection) -> Result<Pauses, StoreError> {
        self.0.pauses(range, &self.on_stages(range, selection)?)
    }
}

fn values_of(labels: Labels) -> Vec<Arc<str>> {
    labels.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests;
