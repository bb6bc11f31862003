//! `/api/v1/apps` and `/api/v1/executors`: who was sampled.
//!
//! In: the store's sums by label set, and its processes. Out: one row for each app, or for each executor
//! (a row for its JVM and one for its Python workers: `role` tells). Labels are those that the samples
//! carry; what is not known is null.

use super::ServeState;
use super::answer::{table, text};
use super::error::ApiError;
use super::run::Rendered;
use super::spark;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::{Amount, App, Apps, Executor, Executors, Jvm, SparkExecutor, route};
use emberscope_model::{
    JvmFacts, LabelKey, LabelTotal, ProcessRecord, Query, Role, Selection, SparkFactKind, TimeRange,
};
use emberscope_store::Store;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sums over the label sets of one row.
pub struct Sum {
    samples: u64,
    weight: u64,
    /// From the first window to the last.
    pub seen: TimeRange,
    /// Samples of each value.
    values: BTreeMap<LabelKey, BTreeMap<String, u64>>,
    user_of_driver: Option<String>,
    pids: BTreeSet<u32>,
    executors: BTreeSet<String>,
    drivers: BTreeSet<u32>,
}

impl Sum {
    fn new(seen: TimeRange) -> Self {
        Self {
            samples: 0,
            weight: 0,
            seen,
            values: BTreeMap::new(),
            user_of_driver: None,
            pids: BTreeSet::new(),
            executors: BTreeSet::new(),
            drivers: BTreeSet::new(),
        }
    }

    fn add(&mut self, total: &LabelTotal) {
        self.samples = self.samples.saturating_add(total.count);
        self.weight = self.weight.saturating_add(total.weight);
        self.seen.cover(&total.seen);
        for key in [LabelKey::AppName, LabelKey::AppRun, LabelKey::User, LabelKey::Deploy, LabelKey::Node] {
            let value = total.labels.get(key);
            if !value.is_empty() {
                let values = self.values.entry(key).or_default();
                match values.get_mut(value) {
                    Some(samples) => *samples = samples.saturating_add(total.count),
                    None => drop(values.insert(value.to_owned(), total.count)),
                }
            }
        }
        let pid: Option<u32> = total.labels.get(LabelKey::Pid).parse().ok();
        let role = total.labels.get(LabelKey::Role);
        let user = total.labels.get(LabelKey::User);
        if role == Role::Driver.slug() && !user.is_empty() {
            // A standalone application's executors run as the Worker's user, its driver as its own.
            self.user_of_driver = Some(user.to_owned());
        }
        self.pids.extend(pid);
        if role == Role::Driver.slug() {
            self.drivers.extend(pid);
        }
        let executor = total.labels.get(LabelKey::Executor);
        if role == Role::Executor.slug() && !executor.is_empty() {
            self.executors.insert(executor.to_owned());
        }
    }

    /// The value of a label that all of it has, or most: the name, the user. A process that ended before the application's name
    /// was known keeps the name that its command line had.
    pub fn value(&self, key: LabelKey) -> Option<String> {
        let most =
            || self.values.get(&key)?.iter().max_by_key(|(value, samples)| (*samples, Reverse(*value)));
        match (key, &self.user_of_driver) {
            (LabelKey::User, Some(user)) => Some(user.clone()),
            _ => most().map(|(value, _)| value.clone()),
        }
    }
}

/// The samples of a query, by what `key` makes of their labels.
///
/// # Errors
/// What the store fails with.
pub fn sums<K: Ord>(
    store: &dyn Store,
    query: &Query,
    key: impl Fn(&LabelTotal) -> Option<K>,
) -> Result<BTreeMap<K, Sum>, ApiError> {
    let mut out = BTreeMap::new();
    for total in store.totals(query)? {
        if let Some(key) = key(&total) {
            out.entry(key).or_insert_with(|| Sum::new(total.seen)).add(&total);
        }
    }
    Ok(out)
}

/// `/api/v1/apps`
pub async fn apps(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state.select(raw, &route::APPS, |store, _, query| app_rows(store, query)).await
}

fn app_rows(store: &dyn Store, query: &Query) -> Result<Rendered, ApiError> {
    let summary = store.summary(query)?;
    let sums = sums(store, query, |total| text(total.labels.get(LabelKey::App)))?;
    let rows = sums.into_iter().map(|(id, sum)| App {
        id,
        name: sum.value(LabelKey::AppName),
        user: sum.value(LabelKey::User),
        deploy: sum.value(LabelKey::Deploy),
        executors: sum.executors.len() as u64,
        amount: Amount::new(query.kind, sum.samples, sum.weight),
        first_seen: sum.seen.from.into(),
        last_seen: sum.seen.until.into(),
        drivers: sum.drivers,
    });
    Ok(table(&summary, store, Apps { apps: rows.collect() }))
}

/// Answers `/api/v1/executors`.
pub async fn executors(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state.select(raw, &route::EXECUTORS, |store, _, query| executor_rows(store, query)).await
}

fn executor_rows(store: &dyn Store, query: &Query) -> Result<Rendered, ApiError> {
    let summary = store.summary(query)?;
    let sums = sums(store, query, |total| {
        let executor = text(total.labels.get(LabelKey::Executor))?;
        let role = total.labels.get(LabelKey::Role);
        // A shell or a compiler that an executor starts is its child, not an executor.
        let rows = [Role::Driver, Role::Executor, Role::Python];
        rows.iter().find(|known| known.slug() == role)?;
        Some((total.labels.get(LabelKey::App).to_owned(), executor, role.to_owned()))
    })?;
    // All of them: a condition on a thread's label would leave every process out.
    let processes = store.processes(query.range, &Selection::all());
    let told = told(store, query, sums.keys().map(|(app, ..)| app.as_str()))?;
    let rows = sums.into_iter().map(|((app, executor, role), sum)| {
        let own: Vec<&Arc<ProcessRecord>> = processes
            .iter()
            .filter(|p| {
                let is = |key, value: &str| p.labels.get(key) == value;
                is(LabelKey::App, &app) && is(LabelKey::Executor, &executor) && is(LabelKey::Role, &role)
            })
            .collect();
        Executor {
            app_name: sum.value(LabelKey::AppName),
            node: sum.value(LabelKey::Node),
            host: own.iter().find_map(|p| text(&p.host)),
            cores: own.iter().map(|p| p.cores).find(|cores| *cores > 0),
            jvm: own.iter().find_map(|p| p.jvm.as_ref()).map(jvm),
            amount: Amount::new(query.kind, sum.samples, sum.weight),
            first_seen: sum.seen.from.into(),
            last_seen: sum.seen.until.into(),
            spark: told
                .get(&(app.clone(), executor.clone()))
                .filter(|_| role != Role::Python.slug())
                .cloned(),
            app,
            executor,
            role,
            pids: sum.pids,
        }
    });
    Ok(table(&summary, store, Executors { executors: rows.collect() }))
}

/// What Spark said of the executors of some applications, by application and executor. Of more than
/// [`spark::MAX_ASKED`] nothing is told, as Spark is not asked about more of them either.
fn told<'a>(
    store: &dyn Store,
    query: &Query,
    apps: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<(String, String), SparkExecutor>, ApiError> {
    let apps: BTreeSet<&str> = apps.filter(|app| !app.is_empty()).collect();
    let mut told = BTreeMap::new();
    for app in apps.into_iter().take(spark::MAX_ASKED) {
        let facts = store.spark_facts(app, query.range)?.facts;
        for fact in facts.into_iter().filter(|fact| fact.kind == SparkFactKind::Executor) {
            let executor = SparkExecutor {
                status: (*fact.status).to_owned(),
                added: fact.begun.map(Into::into),
                removed: fact.ended.map(Into::into),
                reason: fact.description.as_deref().map(str::to_owned),
                fetched: Some(fact.fetched.into()),
            };
            told.insert((app.to_owned(), (*fact.id).to_owned()), executor);
        }
    }
    Ok(told)
}

/// What is known of a JVM.
pub fn jvm(facts: &JvmFacts) -> Jvm {
    Jvm {
        version: facts.version.clone(),
        names: facts.names.slug().into(),
        names_detail: facts.names.says().to_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{LabelSetBuilder, WallTime};

    #[test]
    fn an_application_is_called_as_most_of_it_is() {
        let seen = TimeRange { from: WallTime(0), until: WallTime(9) };
        let total = |name: &str, role: &str, user: &str, count: u64| {
            let set = LabelSetBuilder::new().set(LabelKey::AppName, name).set(LabelKey::Role, role);
            let labels = Arc::new(set.set(LabelKey::User, user).build());
            LabelTotal { labels, count, weight: count, seen }
        };
        let mut sum = Sum::new(seen);
        assert_eq!(sum.value(LabelKey::AppName), None);
        for (name, role, user, count) in [
            ("", "executor", "spark", 90),
            ("job.py", "other", "ana", 43),
            ("nightly orders", "executor", "spark", 30),
            ("nightly orders", "driver", "ana", 30),
        ] {
            sum.add(&total(name, role, user, count));
        }
        assert_eq!(sum.value(LabelKey::AppName).as_deref(), Some("nightly orders"));
        assert_eq!(sum.value(LabelKey::User).as_deref(), Some("ana"), "its driver's");
        assert_eq!((sum.samples, sum.drivers.len()), (193, 0));
    }
}
